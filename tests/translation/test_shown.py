"""Pages write quantities exactly as Python does."""

from __future__ import annotations

import math
import random
from pathlib import Path

from figgen.quantity_shown import format_number, power_of_ten, shown
from tests.translation.run import imported, ran

PROGRAM = """
import fs from "node:fs";
import { format_number, power_of_ten, shown } from "./assets/javascripts/quantity_shown.js";
const write = { format_number, power_of_ten, shown };
const said = ([name, given]) => {
  try { return write[name](...given); } catch (error) { return error.name; }
};
const number = (_, value) => (value === "inf" ? Infinity : value);
const cases = JSON.parse(fs.readFileSync("data.json", "utf8"), number);
console.log(JSON.stringify(cases.map(said)));
"""
UNITS = (
    *("1", "B", "B/s", "s", "FLOP", "FLOP/s", "FLOP/B", "W", "Hz", "param", "token", "token/s"),
    *("switch", "batch", "GPU", "GPU-h", "USD", "USD/GPU-h", "nat", "month", "s/step", "B/param"),
)
SPECS = (
    *(
        "",
        "si",
        "si.4",
        "si.1",
        "unit",
        "unit.6",
        ",",
        ".1%",
        ".0%",
        ".2f",
        "+.1f",
        "+,.0f",
        ",.1f",
    ),
    *(".3g", ".1g", ".2e", ".0f", "+.1%", ".6g", "d"),
)
FOR_UNIT = {"B": ("bytes", "gib", "gib.4"), "s": ("time", "time.2"), "FLOP": ("flops",)}
WRITERS = {one.__name__: one for one in (format_number, power_of_ten, shown)}


def numbers(draw: random.Random) -> list[float]:
    """Return numbers of every size, whole ones, and ties, which Python rounds to the even digit."""
    found = [0, 1, 0.5, 1.5, 2.5, 0.125, 0.375, 999.5, 9.995, 9996, 1e15, 1e22, 1e-20, 60, 86_400]
    found += [math.inf, 59.99, 3599.9, 172_800.0, 0.0005, 0.00005, 1234.5, 2**53, 1e21, 12345678.5]
    found += [draw.uniform(1, 10) * 10.0 ** draw.randint(-16, 24) for _ in range(300)]
    found += [draw.randint(0, 10 ** draw.randint(1, 15)) for _ in range(200)]
    found += [draw.randint(0, 10**6) / 2 ** draw.randint(1, 12) for _ in range(300)]
    return found + [-one for one in found if one != math.inf]


def test_pages_write_what_python_writes(tmp_path: Path) -> None:
    draw = random.Random(27)
    cases: list[tuple[str, list[object]]] = []
    for number in numbers(draw):
        unit = draw.choice(UNITS)
        specs = SPECS + FOR_UNIT.get(unit.partition("/")[0], ())
        if number in (math.inf,) or number != int(number):
            specs = tuple(spec for spec in specs if spec != "d")
        cases += [("shown", [number, unit, spec]) for spec in draw.sample(specs, 8)]
        cases += [("format_number", [number, digits]) for digits in (2, 3, 6)]
        if number not in (math.inf, -math.inf):
            cases.append(("power_of_ten", [number, draw.randint(1, 7)]))
    given = [[name, ["inf" if one == math.inf else one for one in what]] for name, what in cases]
    printed = ran(tmp_path, PROGRAM, imported(PROGRAM), given)
    expected = [WRITERS[name](*what) for name, what in cases]
    assert len(cases) > 10_000
    assert [
        (one, got) for one, got, right in zip(cases, printed, expected, strict=True) if got != right
    ] == []


def test_a_format_that_python_does_not_know_is_refused(tmp_path: Path) -> None:
    given = [["shown", [1, "1", spec]] for spec in ("apples", ".1x", "si2")]
    scripts = imported(PROGRAM)
    assert ran(tmp_path, PROGRAM, scripts, given) == ["Error"] * 3
