"""Activations that a schedule holds, counted at every moment, and its slots as a table."""

from __future__ import annotations

from csv import DictReader
from itertools import pairwise

import pytest

from figgen.models.pipeline.schedule_work import carried_out, held, peak_held, slots_csv
from figgen.models.pipeline.schedules import build
from figgen.models.pipeline.simulate import Durations, simulate


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "zb1p", "zbv", "dualpipe"])
def test_a_microbatch_is_held_from_its_forward_to_its_last_backward(name: str) -> None:
    schedule = build(name, stages=4, microbatches=8)
    trace = simulate(
        schedule, Durations(forward=1.0, backward_input=1.5, backward_weight=0.75, latency=0.25)
    )
    shares = tuple(2.0**stage for stage in range(schedule.placement.stages))
    for rank in range(4):
        spans: dict[tuple[int, int], list[float]] = {}
        for placed in trace.placed_on(rank):
            action = placed.action
            spans.setdefault((action.stage, action.microbatch), []).extend(
                (placed.start, placed.end)
            )
        found = held(trace.placed_on(rank), shares)
        assert found[0][0] == 0
        moments = [time for time, _ in found]
        assert moments == sorted(set(moments))
        # Nothing is told twice, and between two moments what is told is what is there.
        assert all(before != after for (_, before), (_, after) in pairwise(found))
        for (time, amount), until in zip(found, [*moments[1:], trace.makespan + 1], strict=True):
            for now in (time + 1e-6, (time + until) / 2, until - 1e-6):
                there = [at for (at, _), times in spans.items() if min(times) <= now < max(times)]
                assert amount == sum(shares[stage] for stage in there)
        assert peak_held(trace.placed, shares)[rank] == max(amount for _, amount in found)


def test_a_table_of_slots_has_the_digits_that_give_times_back() -> None:
    schedule = build("1f1b", stages=2, microbatches=3)
    trace = carried_out(
        schedule, Durations(forward=0.1, backward_input=1.0, backward_weight=1.0), (2, 1)
    )
    rows = list(DictReader(slots_csv(trace).splitlines()))
    for rank in (0, 1):
        mine = [row for row in rows if row["rank"] == str(rank)]
        assert [int(row["place"]) for row in mine] == list(range(6))
        for row, slot in zip(mine, trace.placed[rank], strict=True):
            assert (float(row["start"]), float(row["end"])) == (slot.start, slot.end)
            assert row["action"] == row["stage"] + row["kind"] + row["microbatch"]
    assert rows[0]["start"] == "0"
