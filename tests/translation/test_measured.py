"""A file of measure.py is read or refused on a page exactly as in Python."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from figgen.catalog import load
from figgen.catalog.measured_file import FORMAT, VERSION, read_measured
from figgen.errors import InputError
from figgen.scenarios.runs.machine_rates import MeasuredRates, rates_of
from tests.translation.run import imported, ran

PROGRAM = """
import fs from "node:fs";
import { ratesOf } from "./assets/javascripts/tools/measured_file.js";
const said = (text) => {
  try {
    return ratesOf(text);
  } catch (error) {
    return error.name === "InputError" ? error.message : error.stack;
  }
};
console.log(JSON.stringify(JSON.parse(fs.readFileSync("data.json", "utf8")).map(said)));
"""


def test_a_page_reads_and_refuses_a_measured_file_as_the_command_line_does(tmp_path: Path) -> None:
    rng = random.Random(3)
    samples = Path(__file__).parents[1] / "catalog" / "measured_cpu.json"
    published = [load.content(f"measured-{name}.json") for name in ("h100", "h200")]
    texts = [samples.read_text("utf-8"), *published, *(random_file(rng) for _ in range(40))]
    texts += [*refused_files(published[0]), "{", "[]", '{"a": 1, "a": 2}', "[" * 300]
    said = ran(tmp_path, PROGRAM, imported(PROGRAM), texts)
    for text, got in zip(texts, said, strict=True):
        assert got == _python(text), text[:200]


def test_a_rate_has_six_digits_and_no_exponent() -> None:
    rng = random.Random(4)
    for value in (0.0, 1.0, 9.999995, 999_999.5, *(10 ** rng.uniform(-12, 12) for _ in range(500))):
        line = MeasuredRates({"bf16": (value * 1e9, value * 1e-6)}).text
        _, *shown = line.split("-")
        want = np.format_float_positional(float(f"{value * 1e9 / 1e9:.6g}"), trim="-")
        assert shown[0] == want
        assert math.isclose(float(shown[1]), value, rel_tol=1e-5)


def _python(text: str) -> str:
    try:
        return rates_of(read_measured(text)).text
    except InputError as error:
        return str(error)


def refused_files(text: str) -> Iterator[str]:
    """Return files with one mistake each."""
    for key, wrong in (("format", 1), ("version", 3), ("version", True), ("machine", None)):
        yield json.dumps(json.loads(text) | {key: wrong})
    for key in ("device", "memory_bytes", "ranks"):
        file = json.loads(text)
        file["machine"].pop(key)
        yield json.dumps(file)
    for table, wrong in (("products", {}), ("kernels", None), ("kernels", [1]), ("loss", [])):
        yield json.dumps(json.loads(text) | {table: wrong})
    for key, wrong in (
        *(("seconds", 0), ("seconds", True), ("m", 2.5), ("k", "4"), ("n", None), ("n", -1)),
        *(("format", "int8"), ("formt", 1), ("side", 0)),
    ):
        file = json.loads(text)
        file["products"][2][key] = wrong
        yield json.dumps(file)
    file = json.loads(text)
    empty = file["machine"] | {"memory_bytes": 0}
    yield json.dumps({"format": FORMAT, "version": VERSION, "machine": empty})
    yield text.replace('"seconds":', '"seconds": 1e999, "x":', 1)


def random_file(rng: random.Random) -> str:
    """Return what measure.py might write, or a part of it, on one node or several."""

    def spent() -> float:
        return 10 ** rng.uniform(-6, -1)

    nodes = rng.choice((1, 2, 4))
    machine = {
        "device": "GPU",
        "kind": "cuda",
        "memory_bytes": rng.choice((0, 80e9)),
        "ranks": 8,
        "nodes": nodes,
        "torch": "2",
        "runtime": "",
        "date": "",
    }
    attention = {
        "format": "bf16",
        "batch": 1,
        "heads": 8,
        "head_dim": rng.choice((64, 128, 256)),
        "sequence": 4096,
    }
    tables: dict[str, list[dict[str, Any]]] = {
        "products": [
            {"format": name, "m": n, "n": 2 * n, "k": 4096, "seconds": spent()}
            for name in ("bf16", "fp8")
            for n in (1024, 4096, 8192)
        ],
        "attention": [
            attention | {"pass": way, "seconds": spent()} for way in ("forward", "backward")
        ],
        "kernels": [{"kernel": "copy", "bytes": 2**28, "seconds": spent()}],
        "collectives": [
            {
                "collective": name,
                "ranks": 8 * across,
                "nodes": across,
                "message_bytes": 2**power,
                "seconds": spent(),
            }
            for name in ("all_reduce", "all_gather", "all_to_all")
            for power in (12, 20, 28)
            for across in {1, nodes}
        ],
    }
    kept = {"kernels", *rng.sample(sorted(tables), rng.randint(0, 3))}
    about = {"format": FORMAT, "version": VERSION, "machine": machine}
    return json.dumps(about | {name: tables[name] for name in kept})
