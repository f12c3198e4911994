"""The search over numbers of nodes as a page runs it, compared with Python's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from figgen.catalog.interruptions import interruption
from figgen.errors import InputError
from figgen.guide.tool_scripts import printed_modules
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.sizing import sizing, wanted_of
from figgen.scenarios.tools.data import configurations
from tests.thorough import one_in
from tests.translation.run import imported, started

PROGRAM = Path(__file__).with_name("sizing.js").read_text("utf-8")
JOB = {"model": "llama-3-8b", "gpus_per_node": 8, "sequence": 4096, "recompute": "full", "cp": 1}
QUESTION = {"tokens": 100, "price": 2.0, "failures": "llama-3-405b", "days": 30, "budget": 1e6,
            "chance": 0.95}  # fmt: skip
CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (JOB, {**QUESTION, "kind": "deadline", "days": 5}),
    ({**JOB, "global_batch": 96}, {**QUESTION, "kind": "budget", "budget": 9000, "chance": 0.6}),
    ({**JOB, "global_batch": 64}, {**QUESTION, "kind": "fewest"}),
]
REFUSED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (JOB, {**QUESTION, "kind": "deadline", "tokens": None}),
    (JOB, {**QUESTION, "kind": "budget", "price": None}),
]


def test_a_page_asks_the_same_numbers_of_nodes_and_finds_what_python_finds(tmp_path: Path) -> None:
    cases = one_in(2, CASES)
    scripts = imported(PROGRAM, printed_modules(()))
    data = {"catalog": configurations(), "cases": cases + REFUSED}
    found = started(tmp_path, PROGRAM, scripts, data)
    wanted = [_python(job, question) for job, question in cases]
    said = found()
    for (job, question), got in zip(REFUSED, said[len(cases) :], strict=True):
        with pytest.raises(InputError, match=re.escape(got["error"])):
            _python(job, question)
    for got, want, case in zip(said, wanted, cases, strict=False):
        assert isinstance(got, list), got
        found_here = sorted(got, key=lambda one: int(one["nodes"]))
        assert [one["nodes"] for one in found_here] == [one.nodes for one in want.found], case
        assert got[-1]["best"] == (want.best and want.best.nodes)
        for one, other in zip(found_here, want.found, strict=True):
            assert (one["row"] is None) == (other.row is None)
            if other.row is None:
                continue
            assert one["row"]["step_s"] == other.row.step_s
            assert one["row"]["recompute"] == other.row.choices["recompute"]
            if other.days is None:
                assert one["days"] is None
                continue
            assert one["days"] == pytest.approx(other.days, rel=1e-12)
            assert [one["low_days"], one["high_days"]] == pytest.approx(
                [other.low_days, other.high_days], rel=1e-9
            )
            assert one["price"] == pytest.approx(other.price, rel=1e-12)
            assert one["energy_j"] == pytest.approx(other.energy_j, rel=1e-12)


def _python(job: dict[str, Any], question: dict[str, Any]) -> Any:
    kind = question["kind"]
    return sizing(
        scenario(**job, nodes=1),
        wanted_of(
            days=question["days"] if kind == "deadline" else None,
            budget=question["budget"] if kind == "budget" else None,
            fewest=kind == "fewest",
            tokens=None if kind == "fewest" or not question["tokens"] else question["tokens"] * 1e9,
            price=question["price"],
            failures=interruption(question["failures"]),
            fit_chance=question["chance"],
        ),
    )
