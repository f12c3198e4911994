"""The modeled step as events: as long as the step, and a trace that viewers can read."""

from __future__ import annotations

import gzip
import json
import math
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from figgen.__main__ import main
from figgen.models.machine.cluster import Cluster
from figgen.models.profiles.chrome_trace import trace_events
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.layer_traffic import BOUNDARY
from figgen.models.step.stage_time import stage_times
from figgen.models.step.step import StepEstimate, step
from figgen.models.step.step_timeline import AGAIN, StepEvent, StepTimeline, _stacked, step_timeline
from figgen.models.step.step_traffic import END
from figgen.scenarios.options.resolve import training_step

SMALL = {"model": "llama-3-8b", "nodes": 2, "gpus_per_node": 8, "microbatches": 4}
CASES: dict[str, dict[str, Any]] = {
    "data parallel": SMALL,
    "sharded each microbatch": SMALL | {"zero_stage": 3},
    "scattered each microbatch": SMALL | {"zero_stage": 2, "tp": 2},
    "no overlap": SMALL | {"zero_stage": 1, "overlap_data_parallel": False},
    "weights waited for": SMALL | {"zero_stage": 1, "overlap_weights": False, "pp": 2},
    "tensor and pipeline": SMALL | {"tp": 2, "pp": 4, "recompute": "full"},
    "context": SMALL | {"cp": 4, "sequence": 32_768},
    "zero bubble": SMALL | {"pp": 4, "schedule": "zb1p"},
    "interleaved": SMALL | {"pp": 4, "schedule": "interleaved-1f1b", "chunks": 2},
    "tied table": SMALL | {"model": "gpt-2-xl", "pp": 2, "sequence": 1024},
    "routed": SMALL | {"model": "mixtral-8x7b", "ep": 8, "pp": 2},
}


class Simulated(NamedTuple):
    """A step without a prediction: links as in datasheets, matmuls at half of the peak."""

    setup: TrainingSetup
    cluster: Cluster
    estimate: StepEstimate


def simulated(**chosen: Any) -> Simulated:
    found = training_step(**chosen)
    return Simulated(found.setup, found.cluster, step(found.setup, found.cluster))


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Simulated, StepTimeline]:
    found = simulated(**CASES[request.param])
    return found, _timeline(found)


def _timeline(found: Simulated, **how: bool) -> StepTimeline:
    return step_timeline(found.setup, stage_times(found.setup, found.cluster, 0.5), **how)


@pytest.mark.parametrize("name", CASES)
def test_a_predicted_step_is_carried_out_in_the_time_that_was_predicted(name: str) -> None:
    """All work in the pictures takes as long as in the table up to one factor near 1, because a
    pipeline's closed form idles a little more or less than its simulation."""
    found = training_step(**CASES[name])
    timeline = step_timeline(found.setup, found.stages)
    estimate = found.estimate
    assert estimate.step_time_s == found.predicted.step_time_s
    assert timeline.step_time_s == pytest.approx(estimate.step_time_s, rel=1e-12)
    ends = max(event.end_s for event in timeline.events)
    assert ends == pytest.approx(timeline.step_time_s, rel=1e-9), "no time without an event"
    parts = estimate.compute_s + estimate.recompute_s + estimate.bubble_s + estimate.exposed_s
    assert parts == pytest.approx(estimate.step_time_s, rel=1e-12)
    assert math.fsum(row.exposed_s for row in estimate.rows) == pytest.approx(estimate.exposed_s)
    assert all(row.exposed_s <= row.time_s * (1 + 1e-9) for row in estimate.rows)
    mine = [event for event in timeline.events if event.rank == estimate.bottleneck]
    computed = math.fsum(event.end_s - event.start_s for event in mine if event.sent is None)
    factor = computed / (estimate.compute_s + estimate.recompute_s)
    assert factor == pytest.approx(1, abs=1e-9 if found.setup.parallel.pp == 1 else 0.05)
    sent = math.fsum(event.end_s - event.start_s for event in mine if event.sent is not None)
    assert sent == pytest.approx(factor * math.fsum(row.time_s for row in estimate.rows))


def test_every_kind_of_work_lasts_as_long_as_in_the_step(
    case: tuple[Simulated, StepTimeline],
) -> None:
    found, timeline = case
    estimate = found.estimate
    mine = [event for event in timeline.events if event.rank == estimate.bottleneck]
    computed: dict[str, float] = defaultdict(float)
    sent: dict[tuple[str, ...], tuple[float, int]] = {}
    for event in mine:
        seconds = event.end_s - event.start_s
        if event.sent is None:
            computed[event.name] += seconds
        else:
            traffic = event.sent.traffic
            key = (traffic.axis, traffic.purpose, traffic.collective)
            time_s, calls = sent.get(key, (0.0, 0))
            sent[key] = (time_s + seconds, calls + event.calls)
    again = computed.pop(AGAIN, 0.0)
    assert again == pytest.approx(estimate.recompute_s)
    assert sum(computed.values()) == pytest.approx(estimate.compute_s)
    rows: dict[tuple[str, ...], tuple[float, int]] = {}
    for row in estimate.rows:
        key = (row.axis, row.purpose, row.collective)
        time_s, calls = rows.get(key, (0.0, 0))
        rows[key] = (time_s + row.time_s, calls + row.calls)
    assert {key: calls for key, (_, calls) in sent.items()} == {
        key: calls for key, (_, calls) in rows.items()
    }
    for key, (time_s, _) in rows.items():
        assert sent[key][0] == pytest.approx(time_s), key


def test_a_rank_computes_one_thing_at_a_time_and_only_messages_between_stages_have_a_way(
    case: tuple[Simulated, StepTimeline],
) -> None:
    _, timeline = case
    assert_one_at_a_time(timeline)
    for event in timeline.events:
        assert (event.calls > 0) == (event.sent is not None)
        between_stages = event.sent is not None and event.sent.traffic.purpose == BOUNDARY
        plain = event.lane.partition(" (")[0]
        assert plain.endswith((" on", " back")) == between_stages, event.lane


def test_lanes_are_as_few_as_overlaps_ask_for() -> None:
    times = [(0, 1), (1, 2), (2, 3), (2.5, 4), (3, 5), (4, 6), (4.5, 4.6)]
    events = [StepEvent(0, "lane", "call", start, end, None) for start, end in times]
    rows = {event.start_s: event.lane for event in _stacked(events)}
    second, third = "lane (2)", "lane (3)"
    assert rows == {0: "lane", 1: "lane", 2: "lane", 2.5: second, 3: "lane", 4: second, 4.5: third}


def assert_one_at_a_time(timeline: StepTimeline) -> None:
    for rank in {event.rank for event in timeline.events}:
        mine = [e for e in timeline.events if e.rank == rank and e.sent is None]
        for before, after in pairwise(sorted(mine, key=lambda event: event.start_s)):
            assert before.end_s <= after.start_s * (1 + 1e-9)


def test_the_step_is_as_long_and_nothing_happens_outside(
    case: tuple[Simulated, StepTimeline],
) -> None:
    found, timeline = case
    chunks = found.setup.placement.chunks
    assert timeline.step_time_s == found.estimate.step_time_s
    assert min(event.start_s for event in timeline.events) >= 0
    last = max(event.end_s for event in timeline.events)
    assert last <= timeline.step_time_s * (1 + 1e-12)
    # Buckets of two chunks differ in size; the closed form counts with their mean.
    assert last == pytest.approx(timeline.step_time_s, rel=1e-12 if chunks == 1 else 1e-3)


def test_what_computing_waits_for_is_what_the_step_leaves_exposed(
    case: tuple[Simulated, StepTimeline],
) -> None:
    """The bottleneck's gaps are idle or exposed; within a pass they are only calls."""
    found, timeline = case
    estimate = found.estimate
    mine = [event for event in timeline.events if event.rank == estimate.bottleneck]
    computed = sum(e.end_s - e.start_s for e in mine if e.sent is None)
    gaps = timeline.step_time_s - computed
    assert gaps == pytest.approx(estimate.exposed_s + estimate.bubble_s, abs=1e-12)


def test_the_trace_is_one_that_viewers_read(case: tuple[Simulated, StepTimeline]) -> None:
    found, timeline = case
    lanes: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    named = set()
    for event in trace_events(found.setup, timeline):
        place: Any = (event["pid"], event["tid"])
        if event["ph"] == "M":
            assert set(event) == {"ph", "pid", "tid", "name", "args"}
            named |= {place} if event["name"] == "thread_name" else set()
            continue
        assert event["ph"] == "X"
        assert isinstance(event["name"], str)
        assert isinstance(event["cat"], str)
        start, took = event["ts"], event["dur"]
        if event["cat"] == "user_annotation":  # microseconds, to the nanosecond
            assert took == pytest.approx(found.estimate.step_time_s * 1e6, abs=1e-3)
        assert isinstance(start, float)
        assert isinstance(took, float)
        assert 0 <= start < math.inf
        assert 0 <= took < math.inf
        lanes[place].append((start, start + took))
    assert set(lanes) == named
    for events in lanes.values():
        for (_, end), (start, _) in pairwise(events):
            assert end <= start + 1e-3, "a nanosecond, as times are written"


def test_calls_together_take_as_long(case: tuple[Simulated, StepTimeline]) -> None:
    found, timeline = case
    together = _timeline(found, each_call=False)
    assert len(together.events) <= len(timeline.events)

    def seconds(of: StepTimeline) -> float:
        return math.fsum(event.end_s - event.start_s for event in of.events)

    assert seconds(together) == pytest.approx(seconds(timeline))


def test_pairs_that_overlap_share_what_their_rank_exposes() -> None:
    found = simulated(
        model="deepseek-v3",
        nodes=8,
        gpus_per_node=8,
        pp=8,
        ep=8,
        schedule="dualpipe",
        microbatches=16,
    )
    timeline, estimate = _timeline(found), found.estimate
    assert timeline.step_time_s == estimate.step_time_s
    mine = [event for event in timeline.events if event.rank == estimate.bottleneck]
    computed = math.fsum(event.end_s - event.start_s for event in mine if event.sent is None)
    assert computed == pytest.approx(estimate.compute_s + estimate.recompute_s)
    assert_one_at_a_time(timeline)


def test_a_bucket_leaves_when_its_part_of_the_last_backward_is_done() -> None:
    found = training_step(**SMALL, zero_stage=1)
    # Links on which no bucket waits for the one before it.
    free = replace(
        found.cluster,
        network_bandwidth_bytes_per_s=1e15,
        network_latency_s=0.0,
        scale_up_bandwidth_bytes_per_s=1e15,
        scale_up_latency_s=0.0,
    )
    events = step_timeline(found.setup, stage_times(found.setup, free, 0.5)).events
    work = [event for event in events if event.sent is None]
    ends = max(event.end_s for event in work)
    (last,) = (event for event in work if event.end_s == ends)
    buckets = sorted(
        event.start_s for event in events if event.sent and event.sent.traffic.phase == END
    )
    # Thirty-two layers, an embedding and a head, each as soon as it has its gradients.
    step_s = (last.end_s - last.start_s) / 34
    assert buckets == pytest.approx([last.start_s + (n + 1) * step_s for n in range(34)], rel=1e-6)


def test_a_call_tells_its_bytes_and_its_bus_bandwidth() -> None:
    found = training_step(**SMALL, tp=8)
    events = list(trace_events(found.setup, _timeline(found)))
    call: Any = next(e for e in events if e["name"] == "all-gather tp")["args"]
    # One sequence of 8,192 tokens times 4,096 channels of two bytes, gathered over eight ranks.
    assert call["buffer bytes"] == 8192 * 4096 * 2
    assert call["Group size"] == 8
    took = next(e["dur"] for e in events if e["name"] == "all-gather tp")
    assert isinstance(took, float)
    expected = 7 / 8 * call["buffer bytes"] / (took * 1e-6)
    assert call["bus bandwidth (B/s)"] == pytest.approx(expected, rel=1e-4)


SIZES = ["--model", "llama-3-8b", "--nodes", "2", "--gpus-per-node", "8", "--pp", "2"]


def test_the_command_writes_a_file_packed_or_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, packed = tmp_path / "step.json", tmp_path / "step.json.gz"
    for file in (plain, packed):
        assert main(["trace-export", str(file), *SIZES, "--json"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[0])
    main(["step", *SIZES, "--json"])
    step = json.loads(capsys.readouterr().out)
    for key in ("step_time_s", "step_time_interval_s", "interval_of"):
        assert said[key] == step[key]
    main(["trace-export", str(plain), *SIZES])
    assert "eight in ten runs of the class 'Megatron on Hopper, dense'" in capsys.readouterr().out
    found = json.loads(plain.read_text(encoding="utf-8"))
    assert len(found["traceEvents"]) == said["events"]
    assert json.loads(gzip.decompress(packed.read_bytes())) == found


def test_a_place_that_cannot_be_written_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace-export", str(tmp_path / "no" / "step.json"), *SIZES]) == 2
    assert "a file that can be written" in capsys.readouterr().err
