"""The pipeline page's figures: from the simulator, equal to what others published."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from figgen.charts import Bars, Curves, Table, Timeline
from figgen.errors import InputError
from figgen.registry import build

ORDERS = json.loads(
    (Path(__file__).parents[1] / "oracles" / "pipeline_orders.json").read_text(encoding="utf-8")
)


def test_the_drawn_order_is_megatrons():
    chart = build("pipeline-timeline", {"schedule": "1f1b", "stages": 4, "microbatches": 8})
    drawn = [
        [
            f"{slot.role[0].upper()}{slot.label}"
            for slot in sorted(chart.slots, key=lambda s: s.start)
            if slot.lane == lane
        ]
        for lane in range(4)
    ]
    oracle = ORDERS["megatron_1f1b"]["orders"]["P4 M8"]

    assert drawn == [[action[1:] for action in order.split()] for order in oracle]


@pytest.mark.parametrize("schedule", ["naive", "gpipe", "1f1b", "interleaved-1f1b"])
def test_slots_of_a_lane_never_overlap_and_idle_time_is_what_is_said(schedule):
    chart = build("pipeline-timeline", {"schedule": schedule, "stages": 4, "microbatches": 8})
    assert isinstance(chart, Timeline)
    busy = 0.0
    for lane in range(len(chart.lanes)):
        slots = sorted((s.start, s.end) for s in chart.slots if s.lane == lane)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(slots))
        busy += sum(end - start for start, end in slots)

    idle_share = 1 - busy / (chart.end * len(chart.lanes))
    assert chart.values["bubble_fraction"].value == pytest.approx(idle_share)


def test_both_measures_agree_with_the_simulator_in_every_row():
    chart = build(
        "bubble-table", {"stages": [2, 4, 8], "microbatches": [4, 8, 16], "chunks": [1, 2, 2]}
    )
    assert isinstance(chart, Table)

    for row in chart.rows:
        assert row[3] == pytest.approx(row[4])
        assert row[5] == pytest.approx(row[6])


def test_a_table_of_unequal_lists_is_refused():
    with pytest.raises(InputError, match="stages, microbatches and chunks: expected equal lengths"):
        build("bubble-table", {"stages": [4], "microbatches": [8, 16], "chunks": [1]})


def test_interleaving_is_drawn_only_where_it_is_defined():
    chart = build("bubble-curves", {"stages": [8], "chunks": [1, 2], "most_microbatches": 64})
    assert isinstance(chart, Curves)

    assert chart.series[0].x[0] == 1
    assert chart.series[1].x == (8, 16, 32, 64)


def test_stage_memory_equals_the_published_closed_form():
    """34·s·b·h/t per layer (Korthikanti et al. 2022), 12 layers, P − p microbatches."""
    chart = build("stage-memory", {"model": "gpt-3-175b", "stages": 8, "microbatches": 32})
    assert isinstance(chart, Bars)
    one_f_one_b = next(s for s in chart.segments if s.name == "1F1B")
    layer = 34 * 2048 * 12288 / 8

    assert one_f_one_b.lengths == pytest.approx([(8 - p) * 12 * layer for p in range(8)])
    assert one_f_one_b.lengths[0] == 10_267_656_192


def test_layers_that_stages_do_not_divide_are_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"does not divide the 96 layers .*did you mean 6 or 8"):
        build("stage-memory", {"model": "gpt-3-175b", "stages": 7, "microbatches": 32})
