"""The models as one module for other programs: it returns what Python returns, with its types."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import figgen
from figgen.formulas import FORMULAS
from figgen.guide.tool_scripts import TOOLS, printed_modules
from figgen.publish.scripts import FOLDER, plain_scripts
from figgen.publish.tools import joined_tools
from figgen.scenarios.options.schema import OPTIONS
from tests.translation.run import ran

DOCS = Path(__file__).parents[2] / "docs"
MODULE = f"{FOLDER}/tools/figgen.js"
JOBS: tuple[dict[str, Any], ...] = (
    {"model": "llama-3-70b", "nodes": 8, "gpus_per_node": 8, "tp": 8, "pp": 4},
    {"model": "deepseek-v3", "nodes": 16, "gpus_per_node": 8, "ep": 64, "pp": 2},
    {"preset": "gpt-3-175b"},
)
PROGRAM = f"""
import fs from "node:fs";
import {{ estimate, formula, names }} from "./{MODULE}";
const refused = (job) => {{ try {{ estimate(job); }} catch (error) {{ return error.message; }} }};
const jobs = JSON.parse(fs.readFileSync("data.json", "utf8"));
console.log(JSON.stringify({{
  answers: jobs.map(estimate),
  bubble: formula("bubble_fraction", {{ stages: 4, microbatches: 8 }}),
  refused: [{{ modell: 1 }}, {{ nodes: 8 }}, {{ ...jobs[0], tp: 3 }}].map(refused),
  names,
}}));
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    scripts = plain_scripts(DOCS)
    made = printed_modules([])
    parts = {**scripts, **TOOLS.imported(made)}
    module = joined_tools(parts, replace(TOOLS, later={"figgen": ()}))
    return ran(tmp_path_factory.mktemp("module"), PROGRAM, module, JOBS)


def test_steps_and_memory_are_those_of_python(found: Any) -> None:
    for job, answer in zip(JOBS, found["answers"], strict=True):
        step, memory = figgen.step(**job), figgen.memory(**job)
        assert answer["step"]["step_time_s"] == pytest.approx(step["step_time_s"], rel=1e-12)
        assert answer["step"]["kinds_s"] == pytest.approx(step["kinds_s"], rel=1e-12)
        assert answer["memory"]["ranks"][0]["bytes"] == memory["ranks"][0]["bytes"]
        assert answer["memory"]["fits"] == memory["fits"]
    assert found["bubble"] == figgen.formula("bubble_fraction", stages=4, microbatches=8).value


def test_what_does_not_fit_is_refused(found: Any) -> None:
    option, model, layout = found["refused"]
    assert "unknown option 'modell'" in option
    assert "model is missing" in model
    assert "expected a divisor of 64" in layout


def test_types_name_every_option_formula_and_answer(found: Any) -> None:
    types = printed_modules([])[f"{FOLDER}/tools/figgen.d.ts"]

    def fields(interface: str) -> set[str]:
        body = re.search(rf"interface {interface}(?: extends \w+)? {{(.*?)\n}}", types, re.S)
        assert body
        inside = re.sub(r"/\*\*.*?\*/|\[[^\]]*\]|{[^}]*}", "", body[1])
        return set(re.findall(r"(\w+)\??:", inside))

    assert fields("Job") == {"preset", *OPTIONS}
    assert fields("Formulas") == set(FORMULAS) == set(found["names"]["formulas"])
    for answer in found["answers"]:
        for name in ("Step", "Memory"):
            assert answer[name.lower()].keys() <= fields(name) | fields("Setup")
        assert all(one.keys() == fields("RankMemory") for one in answer["memory"]["ranks"])
