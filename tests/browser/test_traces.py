"""The traces that the tools write, in a real browser, compared with those of the command line."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from figgen.__main__ import main
from figgen.models.pipeline.schedules import SCHEDULES
from tests.browser.engine import Ask
from tests.browser.test_schedule_lab import said_by
from tests.thorough import one_in

SUITES = "trace_suites.js"
NANOSECOND = 0.001
"""A nanosecond in microseconds: times are rounded to it, and sums may differ in their
last digits."""

STEPS = (
    "nodes=12&tp=8&pp=4&microbatches=8",
    "nodes=4&tp=2&pp=2&cp=2&microbatches=4",
    "model=llama-3-8b&nodes=2&zero=3&microbatches=2",
    "model=llama-3-8b&nodes=2&zero=2&overlap=0&microbatches=3",
    "model=gpt-3-175b&nodes=8&tp=8&pp=4&schedule=interleaved-1f1b&microbatches=8&recompute=full",
    "model=mixtral-8x7b&nodes=4&tp=2&ep=4&pp=2&microbatches=4&schedule=zbv",
    "model=llama-3-70b&nodes=8&tp=8&pp=4&schedule=dualpipev&microbatches=8",
    "model=llama-3-8b&nodes=1&tp=1&sp=0",
    "preset=deepseek-v3",
    "model=llama-3-405b&nodes=64&tp=8&pp=16&microbatches=128",
)


def close(shown: Any, printed: Any) -> bool:
    """Return whether values are equal up to the last digits of rates and a nanosecond of times."""
    if shown == printed:  # as nearly all of a hundred thousand events are
        return True
    if isinstance(shown, dict):
        return shown.keys() == printed.keys() and all(
            abs(shown[key] - printed[key]) <= 1.001 * NANOSECOND
            if key in ("ts", "dur")
            else close(shown[key], printed[key])
            for key in shown
        )
    if isinstance(shown, float | int) and isinstance(printed, float | int):
        return math.isclose(shown, printed, rel_tol=1e-6, abs_tol=1e-12)
    return False


def agree(shown: dict[str, Any], printed: dict[str, Any]) -> None:
    """Assert that both traces have the same events."""
    assert {**shown, "traceEvents": 0} == {**printed, "traceEvents": 0}
    ours, theirs = shown["traceEvents"], printed["traceEvents"]
    assert len(ours) == len(theirs)
    wrong = [pair for pair in zip(ours, theirs, strict=True) if not close(*pair)]
    assert wrong[:2] == []


def test_steps_are_the_traces_of_the_command_line(ask: Ask, tmp_path: Path) -> None:
    for query in one_in(3, STEPS):
        [found] = ask("steps", [query])  # one by one: a pipe is slow with an answer of 20 MB
        file = tmp_path / "trace.json"
        words = shlex.split(found["command"].replace("trace.json", str(file)))
        assert main(words[1:]) == 0, query
        text = file.read_text(encoding="utf-8")
        assert found["text"].count("\n") == text.count("\n")
        agree(trace := json.loads(found["text"]), json.loads(text))
        [step] = {e["dur"] for e in trace["traceEvents"] if e["name"] == "ProfilerStep#0"}
        assert step == pytest.approx(found["step_time_s"] * 1e6, abs=NANOSECOND)
        assert found["planned"], "the planner writes the same for the modeler's query"
    assert "--together" in found["command"], "the last one has many calls"


def test_schedules_are_the_traces_of_the_command_line(ask: Ask, tmp_path: Path) -> None:
    queries = [
        urlencode({"a": name, "stages": 4, "microbatches": 8, "message": 0.3} | more)
        for name in SCHEDULES
        for more in ({}, {"layers": "9,9,9,5"})
    ]
    for query, found in zip(queries, ask("schedules", queries), strict=True):
        assert found["trace"] == json.loads(said_by(found["command"])), query


def test_a_profile_of_a_schedules_trace_finds_its_idle_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in SCHEDULES:
        command = f"figgen schedule {name} --stages 4 --microbatches 8 --pair 2.5"
        file = tmp_path / "trace.json"
        file.write_text(said_by(f"{command} --as trace"), encoding="utf-8")
        idle = json.loads(said_by(f"{command} --json"))["bubble_fraction_by_rank"]
        assert main(["profile", str(file), "--json"]) == 0
        ranks = json.loads(capsys.readouterr().out)["ranks"]
        assert [rank["idle_s"] / rank["wall_s"] for rank in ranks] == pytest.approx(idle, abs=1e-9)
