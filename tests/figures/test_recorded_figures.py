"""Figures of recorded steps: parts that follow one another, and times that add up."""

from __future__ import annotations

from itertools import pairwise

import pytest

from figgen.charts import Curves, Timeline
from figgen.errors import InputError
from figgen.figures.training.recorded import MATMULS
from figgen.registry import build
from figgen.scenarios.runs.device_run import measured_steps


def test_a_step_of_ddp_from_far_and_close_shows_the_same_messages() -> None:
    whole, close = (build("recorded-ddp", at) for at in ({}, {"start": 0.114, "end": 0.119}))
    assert isinstance(whole, Timeline)
    assert isinstance(close, Timeline)
    values = {name: float(each.value) for name, each in whole.values.items()}
    assert values["busy"] == pytest.approx(values["busy_share"] * values["step"])
    assert values["hidden"] + values["exposed"] == pytest.approx(values["sending"])
    # What the page says: a part of the step, mostly exposed, 31.5 MB in 2.67 ms.
    assert values["exposed_share"] < 0.05 < 0.5 < values["exposed"] / values["sending"]
    assert values["largest_bytes"] == pytest.approx(31.5e6, rel=1e-3)
    assert values["largest_time"] == pytest.approx(2.67e-3, rel=2e-3)
    lane = [slot for slot in close.slots if slot.lane == 1]
    assert len(lane) == close.values["shown"].value
    busy = sum(slot.end - slot.start for slot in lane) / close.end
    assert busy == pytest.approx(float(close.values["shown_busy"].value))
    with pytest.raises(InputError):
        build("recorded-ddp", {"start": 0.2, "end": 0.1})


def test_the_rank_that_came_last_is_in_its_calls_for_the_shortest_time() -> None:
    """`figgen profile` on the same files agrees with the page: each rank came last in one step."""
    chart = build("recorded-ranks", {})
    assert isinstance(chart, Timeline)
    spans = [[(s.start, s.end) for s in chart.slots if s.lane == lane] for lane in (1, 3)]
    for step, last in ((0, 1), (1, 0)):
        assert spans[last][step][0] > spans[1 - last][step][0]
        lasts = [float(chart.values[f"rank_{rank}_step_{step + 1}"].value) for rank in (0, 1)]
        assert lasts[last] < lasts[1 - last]
    assert spans[0][0][1] == pytest.approx(spans[1][0][1], abs=1e-4)


def test_the_gpu_runs_a_phase_after_its_first_launch() -> None:
    chart = build("recorded-step", {})
    assert isinstance(chart, Timeline)
    host, gpu = ({s.label: s for s in chart.slots if s.lane == lane} for lane in (0, 1))
    assert list(host) == ["forward", "backward", "update"]
    assert list(gpu) == ["step before", *host]
    for name, slot in host.items():
        assert slot.start < gpu[name].start
        assert slot.end < gpu[name].end
    shares = [
        chart.values[f"{kind}_share"].value
        for kind in ("product", "attention", "optimizer", "passes")
    ]
    assert sum(map(float, shares)) == pytest.approx(1)
    assert 0 < float(chart.values["forward_busy"].value) < 1


def test_the_parts_of_a_layer_follow_one_another_and_name_its_matmuls() -> None:
    chart = build("recorded-layer", {})
    assert isinstance(chart, Timeline)
    parts = [slot for slot in chart.slots if slot.lane == 0]
    assert all(one.end == other.start for one, other in pairwise(parts))
    assert (parts[0].start, parts[-1].end) == (0.0, chart.end)
    named = [slot.detail.split(",")[0] for slot in chart.slots if slot.lane == 1]
    assert named == [f"matmul {name}" for name in MATMULS]
    shares = ("product_share", "attention_share", "passes_share", "gaps_share")
    assert sum(float(chart.values[name].value) for name in shares) == pytest.approx(1)


def test_the_peak_of_the_snapshot_is_what_the_run_printed_and_what_was_predicted() -> None:
    chart = build("recorded-memory", {})
    assert isinstance(chart, Curves)
    record = next(one for one in measured_steps() if one["id"] == "llama1b-amp-eager")
    assert chart.values["peak"].value == pytest.approx(record["peak_allocated_bytes"], rel=0.01)
    assert abs(float(chart.values["off"].value)) < 0.03
