"""Exported traces: a schedule's slots and a step's calls, in the formats of viewers and
profilers."""

from __future__ import annotations

import json
from collections import defaultdict
from csv import DictReader
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from figgen.__main__ import main
from figgen.models.profiles.chrome_trace import trace_events, written
from figgen.models.step.stage_time import stage_times
from figgen.models.step.step_timeline import step_timeline
from figgen.scenarios.options.resolve import training_step

Event = dict[str, Any]


def said(capsys: pytest.CaptureFixture[str], name: str, *how: str) -> str:
    assert main(["schedule", name, "--stages", "4", "--microbatches", "8", *how]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "makespan_ms"),
    # (M + P − 1)(F + I + W); ZB1P: M(F + I + W) + (P − 1)(F + I − W).
    [("1f1b", 11.0), ("zb1p", 9.0), ("dualpipe", None)],
)
def test_a_schedule_is_a_trace_of_its_slots(
    name: str, makespan_ms: float | None, capsys: pytest.CaptureFixture[str]
) -> None:
    third = str(1 / 3)  # which no trace writes whole
    times = ("--forward", third, "--backward", third, "--weight", third)
    trace = json.loads(said(capsys, name, *times, "--as", "trace"))
    table = DictReader(said(capsys, name, *times, "--as", "csv").splitlines())
    slots = {f"{row['action']}@{row['rank']}": row for row in table}
    assert trace["displayTimeUnit"] == "ms"
    of: dict[str, list[Event]] = defaultdict(list)
    for event in trace["traceEvents"]:
        of[event.get("cat", event["name"])].append(event)
    # Metadata of processes belong to no thread but the first, which shows the step.
    for kind in ("process_name", "process_sort_index", "user_annotation"):
        assert [(event["pid"], event["tid"]) for event in of[kind]] == [(r, 0) for r in range(4)]
    assert [event["args"] for event in of["process_sort_index"]] == [
        {"sort_index": rank} for rank in range(4)
    ]
    last = max(float(row["end"]) for row in slots.values())
    for step in of["user_annotation"]:
        assert step["ph"] == "X"
        assert step["ts"] == 0
        assert step["dur"] == pytest.approx(1e3 * (makespan_ms or last), abs=1e-3)
    lanes: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in of["computing"]:
        row, args = slots.pop(f"{event['name']}@{event['pid']}"), event["args"]
        assert event["ph"] == "X"
        assert event["name"] == f"{args['stage']}{args['kind']}{args['microbatch']}"
        assert event["ts"] == pytest.approx(1e3 * float(row["start"]), abs=1e-3)
        assert event["ts"] + event["dur"] == pytest.approx(1e3 * float(row["end"]), abs=1e-3)
        lanes[event["pid"], event["tid"]].append(event)
    assert not slots
    # A thread for what a rank does, and one for what it does beside it, where it does two things.
    assert {tid for _, tid in lanes} == ({1, 2} if name == "dualpipe" else {1})
    for events in lanes.values():
        for before, after in pairwise(events):
            assert before["ts"] + before["dur"] <= after["ts"] + 1e-9
    if name == "dualpipe":
        starts = {
            (rank, event["ts"])
            for (rank, tid), found in lanes.items()
            if tid == 1
            for event in found
        }
        assert {
            (rank, event["ts"])
            for (rank, tid), found in lanes.items()
            if tid == 2
            for event in found
        } < starts


def test_names_are_written_as_they_are_and_numbers_as_json_has_them() -> None:
    event: Event = {"ph": "M", "name": "Übung"}
    text = "".join(written([event, event], "modèle"))
    assert json.loads(text)["traceEvents"] == [event, event]
    assert "Übung" in text
    with pytest.raises(ValueError, match="JSON"):
        list(written([{"ts": float("nan")}], ""))


# nccl-tests, doc/PERFORMANCE.md: bus bandwidth over size by time.
FACTORS = {
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "all-gather": lambda n: (n - 1) / n,
    "reduce-scatter": lambda n: (n - 1) / n,
    "all-to-all": lambda n: (n - 1) / n,
    "send": lambda n: 1,
}


@pytest.mark.parametrize("each_call", [True, False])
def test_calls_of_a_step_say_their_group_their_bytes_and_how_fast_they_were(
    each_call: bool,
) -> None:
    found = training_step(
        model="llama-3-8b",
        nodes=4,
        gpus_per_node=8,
        tp=2,
        cp=2,
        pp=4,
        microbatches=4,
        sequence=32_768,
    )
    timeline = step_timeline(found.setup, found.stages, each_call=each_call)
    events: list[Event] = [dict(event) for event in trace_events(found.setup, timeline)]
    # Stages are the slowest axis of Megatron's order: eight GPUs apart, of which one is named.
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == [
        f"pipeline rank {rank}: GPU {8 * rank} (8 alike)" for rank in range(4)
    ]
    indices = [
        (e["pid"], e["tid"], e["args"]["sort_index"])
        for e in events
        if e["name"].endswith("sort_index")
    ]
    assert [(pid, index) for pid, tid, index in indices if not tid] == [(r, r) for r in range(4)]
    lanes: dict[int, list[int]] = defaultdict(list)
    for pid, tid, index in indices:
        if tid:
            assert tid == index
            lanes[pid].append(tid)
    assert all(tids == list(range(1, len(tids) + 1)) for tids in lanes.values())
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    for rank in range(4):
        assert [names[rank, 0], names[rank, 1]] == ["step", "compute"]
    sizes = {"tp": 2, "cp": 2, "dp": 2, "dp-cp": 4, "pp": 2}  # GPUs, and a message's two ends
    seen = set()
    for event in events:
        name, args = event["name"], event["args"]
        if event.get("cat") == "computing":
            assert names[event["pid"], event["tid"]] == "compute"
            assert args.keys() == {"microbatch"}
            assert args["microbatch"] in range(4)
        if event.get("cat") != "communication":
            continue
        kind, axis = args["Collective name"], args["Process Group Description"]
        seen.add((kind, axis))
        size = args["Group size"]
        assert name == f"{kind} {axis}"
        assert size == (2 if kind == "send" else sizes[axis])
        assert ("microbatch" in args) == (args["purpose"] not in ("gradients", "weights"))
        moved = FACTORS[kind](size) * args["buffer bytes"] * args["calls"]
        assert args["bus bandwidth (B/s)"] == pytest.approx(
            moved / event["dur"] * 1e6, rel=0.01 + 2e-3 / event["dur"]
        )
        if each_call:
            assert args["calls"] == 1
    assert seen >= {("send", "pp"), ("send", "cp"), ("all-gather", "tp")}
    assert any(e["args"]["calls"] > 1 for e in events if "calls" in e["args"]) != each_call


def test_calls_that_take_no_time_are_written_too() -> None:
    found = training_step(model="llama-3-8b", nodes=1, gpus_per_node=8, tp=2, microbatches=2)
    free = replace(found.cluster, scale_up_bandwidth_bytes_per_s=1e40, scale_up_latency_s=0.0)
    timeline = step_timeline(found.setup, stage_times(found.setup, free, 0.5))
    events = json.loads("".join(written(trace_events(found.setup, timeline), "")))["traceEvents"]
    rates = [e["args"]["bus bandwidth (B/s)"] for e in events if e.get("cat") == "communication"]
    assert rates
    assert min(rates) == 0
