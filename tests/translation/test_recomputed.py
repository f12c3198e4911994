"""Figures that a page recomputes: what is printed of them draws what Python draws."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from figgen.charts import Curves
from figgen.errors import InputError
from figgen.guide.tool_scripts import printed_models
from figgen.registry import all_figures, build, controls, inputs
from figgen.renderers import explore_plots, plotly
from figgen.translation.modules import FOLDER
from tests.translation.run import ran

DOCS = Path(__file__).parents[2] / "docs"
NAMES = ("explore", "explore_parameters", "explore_drawn", "dom")
ASKED: dict[str, tuple[dict[str, Any], ...]] = {
    "all-reduce-factor": ({}, {"most_ranks": 1000}),
    "all-to-all-by-fabric": ({}, {"message_bytes": 1e6, "rate": 4e11}),
    "bubble-curves": ({"stages": [4, 8, 64], "chunks": [1, 3]}, {"most_microbatches": 1}),
    "bytes-by-recipe": ({}, {"parameters": 1.23e11}),
    "critical-batch": ({}, {"octaves": 7, "per_octave": 1}),
    "in-flight-by-rank": ({}, {"stages": 2, "microbatches": 6, "chunks": 3}),
    "in-flight-over-time": ({}, {"rank": 2, "stages": 3, "microbatches": 6}),
    "loss-by-parameters": ({}, {"decades": 3}),
    "moe-balance": ({}, {"experts": 64, "top_k": 6}),
    "pipeline-latency": ({}, {"stages": 3, "microbatches": 12, "chunks": [3]}),
    "pipeline-timeline": (
        {"schedule": "1f1b"},
        {"schedule": "interleaved-1f1b", "stages": 2, "microbatches": 4, "chunks": 3},
        {"schedule": "dualpipe", "stages": 4, "microbatches": 10, "backward": 1.5},
    ),
    "schedule-frontier": ({}, {"stages": 4, "microbatches": 8}),
    "schedules-compared": ({"schedules": ["1f1b", "zb1p"], "times": [0.01, 0.012, 0.005]},),
    "state-redundancy": ({}, {"ranks": 4}),
}
REFUSED = {
    "bubble-curves": {"most_microbatches": 0},
    "pipeline-timeline": {"schedule": "2f2b"},
    "in-flight-over-time": {"rank": 4},
}
PROGRAM = """
import fs from "node:fs";
globalThis.addEventListener = () => {}; // a script of pages listens to them
const tools = "./assets/javascripts/tools";
const { FIGURES, recomputed } = await import(`${tools}/explore.js`);
const { readParameter, shownParameter } = await import(`${tools}/explore_parameters.js`);
const { asked, typed } = JSON.parse(fs.readFileSync("data.json", "utf8"));
const unless = (compute) => { try { return compute(); } catch (error) { return error.message; } };
console.log(JSON.stringify({
  names: Object.keys(FIGURES).sort(),
  drawn: asked.map(([name, values]) => unless(() => recomputed(name, values))),
  typed: typed.map(([one, text]) => unless(() => readParameter(one, text ?? shownParameter(one)))),
}));
"""


def parameter(value: object, unit: str = "1", kind: str = "int", **more: bool) -> dict[str, Any]:
    given = {"list": isinstance(value, list), "optional": False}
    return {"name": "p", "value": value, "unit": unit, "kind": kind, **given, **more}


TYPED = (
    (parameter(4), "8", 8),
    (parameter(4), "2.5", "p: expected a whole number up to 64, got '2.5'"),
    (parameter(4), "65", "p: expected a whole number up to 64, got '65'"),
    (parameter([4, 16]), "2, 128", [2, 128]),
    (parameter(None, optional=True), " ", None),
    (parameter(1.23456789e8, "B", "float"), None, 1.23456789e8),
    (parameter(1e8, "B", "float"), "1 MiB", 2**20),
    (parameter(1e8, "B", "float"), "1 s", "p: expected a quantity in B, got '1 s'"),
    (parameter(2.0, kind="float"), "0.5", 0.5),
    (parameter("1f1b", kind="str"), " zb1p ", "zb1p"),
    (parameter(["1f1b", "gpipe"], kind="str"), "zb1p, zbv", ["zb1p", "zbv"]),
)


def shown(name: str, given: dict[str, Any]) -> tuple[object, object]:
    """The traces and the layout that Python has for it."""
    chart = build(name, given)
    if isinstance(chart, Curves):
        explored = explore_plots.recomputed_curves(chart)
        made = {"data": explored.data, "layout": explored.layout}
        return made["data"], made["layout"]
    made = json.loads(plotly.render(chart))
    return made["data"], made["layout"]


def differences(mine: Any, theirs: Any, where: str = "") -> Iterator[str]:
    """Where the two differ, numbers beyond 1e-12; what is empty may be left out."""
    if isinstance(mine, dict):
        for key in {k for part in (mine, theirs) for k, v in part.items() if v not in ([], {})}:
            if key != "template":
                yield from differences(mine.get(key), theirs.get(key), f"{where}.{key}")
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        for at, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            yield from differences(one, other, f"{where}[{at}]")
    elif mine != (pytest.approx(theirs, rel=1e-12) if isinstance(mine, float) else theirs):
        yield f"{where}: {mine} in Python, {theirs} in the page"


def test_what_is_printed_draws_what_python_draws(tmp_path: Path) -> None:
    named = {name for name, figure in all_figures().items() if figure.recomputed}
    assert named == set(ASKED)
    hand = {
        f"{FOLDER}/tools/{name}.js": (DOCS / FOLDER / f"tools/{name}.js").read_text("utf-8")
        for name in NAMES
    }
    cases = [(name, given) for name, several in ASKED.items() for given in several]
    data = {
        "asked": [[n, list(inputs(n, given).values())] for n, given in [*cases, *REFUSED.items()]],
        "typed": [[one, text] for one, text, _ in TYPED],
    }
    found = ran(tmp_path, PROGRAM, {**hand, **printed_models(hand)}, data)
    assert found["names"] == sorted(ASKED)
    for (name, given), made in zip(cases, found["drawn"], strict=False):
        assert isinstance(made, dict), (name, given, made)
        traces, layout = shown(name, given)
        drawn = json.loads(json.dumps({"data": traces, "layout": layout}))
        assert not list(differences(drawn, made, name))
    for (name, given), said in zip(REFUSED.items(), found["drawn"][len(cases) :], strict=True):
        with pytest.raises(InputError) as error:
            build(name, given)
        assert str(error.value).endswith(said), name
    assert found["typed"] == [wanted for *_, wanted in TYPED]


def test_nothing_printed_takes_the_place_of_a_script() -> None:
    scripts = {
        f"{FOLDER}/tools/a.js": 'import { label } from "../theme.js";\n',
        f"{FOLDER}/theme.js": "",
    }
    with pytest.raises(InputError, match=r"theme\.js"):
        printed_models(scripts)


def test_numbers_and_texts_have_fields() -> None:
    found = controls("pipeline-timeline", {"schedule": "1f1b"})
    assert found is not None
    assert [(one["name"], one.get("kind")) for one in found][:4] == [
        ("schedule", "str"), ("stages", "int"), ("microbatches", "int"), ("chunks", "int"),
    ]  # fmt: skip
    assert controls("rank-grid", {}) is None
