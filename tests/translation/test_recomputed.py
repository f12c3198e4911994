"""Figures that a page recomputes: the printed code draws what Python draws."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from figgen.charts import Curves
from figgen.errors import InputError
from figgen.guide.explored_scripts import explored_scripts
from figgen.guide.tool_scripts import printed_models
from figgen.registry import all_figures, build, controls, inputs, one_of
from figgen.renderers import explore_plots, plotly
from figgen.translation.modules import FOLDER
from tests.thorough import THOROUGH
from tests.translation.run import ran

DOCS = Path(__file__).parents[2] / "docs"
NAMES = ("explore", "explore_parameters", "explore_drawn", "dom")
ASKED: dict[str, tuple[dict[str, Any], ...]] = {
    "bubble-curves": ({"stages": [4, 8, 64], "chunks": [1, 3]}, {"most_microbatches": 1}),
    "communication-roofline": ({"preset": "h100-ndr"},),
    "critical-batch": ({}, {"octaves": 7, "per_octave": 1}),
    "goodput-by-size": ({},),
    "idle-by-sequence": (
        {"model": "llama-3-8b", "sequences": [4096, 65536], "schedules": ["1f1b", "zb1p"]},
    ),
    "in-flight-by-rank": ({}, {"stages": 2, "microbatches": 6, "chunks": 3}),
    "in-flight-over-time": ({}, {"rank": 2, "stages": 3, "microbatches": 6}),
    "memory-roofline": ({"preset": "h100-ndr"},),
    "moe-balance": ({}, {"experts": 64, "top_k": 6}),
    "pipeline-latency": ({}, {"stages": 3, "microbatches": 12, "chunks": [3]}),
    "pipeline-timeline": (
        {"schedule": "1f1b"},
        {"schedule": "interleaved-1f1b", "stages": 2, "microbatches": 4, "chunks": 3},
        {"schedule": "dualpipe", "stages": 4, "microbatches": 10, "backward": 1.5},
    ),
    "product-times": ({}, {"split": True}),
    "schedule-frontier": ({}, {"stages": 4, "microbatches": 8}),
    "schedules-compared": ({"schedules": ["1f1b", "zb1p"], "times": [0.01, 0.012, 0.005]},),
    "stage-memory": ({"model": "gpt-3-175b", "stages": 8, "microbatches": 16},),
    "strategies-roofline": ({"preset": "h100-ndr"},),
}
"""Inputs of each figure's first comparison, where they differ from its defaults."""
REFUSED = {
    "bubble-curves": {"most_microbatches": 0},
    "pipeline-timeline": {"schedule": "2f2b"},
    "in-flight-over-time": {"rank": 4},
}
PROGRAM = """
import fs from "node:fs";
globalThis.addEventListener = () => {}; // a script of pages listens to them
const tools = "./assets/javascripts/tools";
const { explored, recomputed } = await import(`${tools}/explore.js`);
const fields = await import(`${tools}/explore_parameters.js`);
const { readParameter, readSearched, shownChoices, shownParameter } = fields;
const { asked, typed, searched } = JSON.parse(fs.readFileSync("data.json", "utf8"));
const unless = (compute) => { try { return compute(); } catch (error) { return error.message; } };
console.log(JSON.stringify({
  drawn: await Promise.all(asked.map(async ([name, values]) => {
    const found = await explored(name);
    return unless(() => recomputed(found, values));
  })),
  typed: typed.map(([one, text]) => unless(() => readParameter(one, text ?? shownParameter(one)))),
  searched: searched.map(([one, names, text]) =>
    unless(() => readSearched(one, names, text ?? shownChoices(one, names)))),
}));
"""


def parameter(value: object, unit: str = "1", kind: str = "int", **more: object) -> dict[str, Any]:
    given = {"list": isinstance(value, list), "optional": False}
    return {"name": "p", "value": value, "unit": unit, "kind": kind, **given, **more}


TYPED = (
    (parameter(4), "8", 8),
    (parameter(4), "2.5", "p: expected a whole number up to 64, got '2.5'"),
    (parameter(4), "65", "p: expected a whole number up to 64, got '65'"),
    (parameter(4), " many ", "p: expected a number, got 'many'"),
    (parameter([4, 16]), "2, 128", [2, 128]),
    (parameter(None, optional=True), " ", None),
    (parameter(1.23456789e8, "B", "float"), None, 1.23456789e8),
    (parameter(1e8, "B", "float"), "1 MiB", 2**20),
    (parameter(1e8, "B", "float"), "1 s", "p: expected a quantity in B, got '1 s'"),
    (parameter(2.0, kind="float"), "0.5", 0.5),
    (
        parameter([1.0, 2.0], count=2, kind="float"),
        "1, 2, 3",
        "p: expected 2 values, got (1, 2, 3)",
    ),
    (parameter("1f1b", kind="str"), " zb1p ", "zb1p"),
    (parameter(["1f1b", "gpipe"], kind="str"), "zb1p, zbv", ["zb1p", "zbv"]),
)


NAMES_KNOWN = [["llama-3-8b", "Llama 3.1 8B"], ["qwen-3-32b", "Qwen3-32B"], ["b300", "B300, HGX"]]
SEARCHED = (
    (parameter("qwen-3-32b", kind="str"), None, "qwen-3-32b"),
    (parameter("qwen-3-32b", kind="str"), "llama 3.1 8b", "llama-3-8b"),
    (parameter("qwen-3-32b", kind="str"), "llama-3-8b", "llama-3-8b"),
    (parameter("qwen-3-32b", kind="str"), "hgx", "b300"),
    (parameter(["b300", "qwen-3-32b"], kind="str"), None, ["b300", "qwen-3-32b"]),
    (parameter(["b300"], kind="str"), "Qwen3 32B; b300, HGX;", ["qwen-3-32b", "b300"]),
    (parameter(None, kind="str", optional=True), " ", None),
    (parameter(["b300"], kind="str"), ";", "p: expected at least one"),
    (
        parameter("b300", kind="str"),
        "Lamma 3.1 8B",
        "p: expected a title from the list, got 'Lamma 3.1 8B' (did you mean Llama 3.1 8B?)",
    ),
)
"""Names that a reader types if there are many: as titles or names, several with semicolons."""


def shown(name: str, given: dict[str, Any]) -> tuple[object, object]:
    """Return Python's traces and layout of a figure."""
    chart = build(name, given)
    if isinstance(chart, Curves):
        explored = explore_plots.recomputed_curves(chart)
        made = {"data": explored.data, "layout": explored.layout}
        return made["data"], made["layout"]
    made = json.loads(plotly.render(chart))
    return made["data"], made["layout"]


def differences(mine: Any, theirs: Any, where: str = "") -> Iterator[str]:
    """Return where the two differ, numbers by more than 1e-12; empty parts may be omitted."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for key in {k for part in (mine, theirs) for k, v in part.items() if v not in ([], {})}:
            if key != "template":
                yield from differences(mine.get(key), theirs.get(key), f"{where}.{key}")
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        for at, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            yield from differences(one, other, f"{where}[{at}]")
    elif mine != (pytest.approx(theirs, rel=1e-12) if isinstance(mine, float) else theirs):
        yield f"{where}: {mine} in Python, {theirs} in the page"


EVERY_NAME = ("two-times", "zero3-tokens", "goodput-by-size", "model-growth")
"""Figures that are compared for every value of their parameters; others for two values."""


def others(annotation: Any, value: Any, every: bool) -> list[Any]:
    """Return other values of a parameter: possible names, or a number near its own."""
    known = one_of(annotation)
    if known is not None:
        names = list(known if isinstance(known, Mapping) else vars(known)["stored_names"]())
        chosen = names if every or THOROUGH else names[:: max(1, len(names) // 2)]
        is_list = isinstance(value, list | tuple)
        return [[one] if is_list else one for one in chosen if one != value]
    match value:
        case bool():
            return [not value]
        case int():
            return [2 * value, value + 1]
        case float():
            return [1.5 * value]
        case [int(), *_]:
            return [[2 * one for one in value], value[:1]]
        case [float(), *_]:
            return [[1.5 * one for one in value]]
    return []


def asked_for(name: str) -> list[dict[str, Any]]:
    """Return the inputs for which a figure is compared: its first ones, and those with
    one changed."""
    first = ASKED.get(name, ({},))
    now = inputs(name, first[0])
    changed = [
        {**first[0], one.name: value}
        for one in all_figures()[name].parameters
        for value in others(one.annotation, now[one.name], name in EVERY_NAME)
    ]
    return [*first, *changed]


def drawn(name: str, given: dict[str, Any]) -> Any:
    """Return what Python draws for these inputs, or its message if it refuses them."""
    try:
        traces, layout = shown(name, given)
    except InputError as error:
        return str(error).removeprefix(f"figure {name!r}: ")
    return json.loads(json.dumps({"data": traces, "layout": layout}))


def test_what_is_printed_draws_what_python_draws(tmp_path: Path) -> None:
    named = sorted(name for name, figure in all_figures().items() if figure.recomputed)
    assert named
    assert set(named) >= set(ASKED)
    hand = {
        f"{FOLDER}/tools/{name}.js": (DOCS / FOLDER / f"tools/{name}.js").read_text("utf-8")
        for name in NAMES
    } | explored_scripts()
    cases = [(name, given) for name in named for given in asked_for(name)]
    cases += REFUSED.items()
    data = {
        "asked": [[name, list(inputs(name, given).values())] for name, given in cases],
        "typed": [[one, text] for one, text, _ in TYPED],
        "searched": [[one, NAMES_KNOWN, text] for one, text, _ in SEARCHED],
    }
    found = ran(tmp_path, PROGRAM, {**hand, **printed_models(hand)}, data)
    wrong = [
        (name, given, differing)
        for (name, given), made in zip(cases, found["drawn"], strict=True)
        if (differing := list(differences(drawn(name, given), made, name))[:2])
    ]
    assert not wrong
    for (name, _), said in zip(REFUSED.items(), found["drawn"][-len(REFUSED) :], strict=True):
        assert isinstance(said, str), name
    assert found["typed"] == [wanted for *_, wanted in TYPED]
    assert found["searched"] == [wanted for *_, wanted in SEARCHED]


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
