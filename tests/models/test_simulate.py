"""What every simulated trace must satisfy, and the times of small orders by hand."""

import itertools

import pytest

from figgen.errors import InputError
from figgen.models.pipeline.schedules import (
    Placement,
    build,
    looping,
    v_shape,
)
from figgen.models.pipeline.simulate import Durations, critical_path, simulate
from tests.models.by_hand import of_orders

UNIT = Durations(forward=2, backward_input=1, backward_weight=1)  # t_f = t_b, in halves


def all_schedules():
    for stages, microbatches in itertools.product((1, 2, 3, 5), (1, 2, 5, 6, 10)):
        for name in ("naive", "gpipe", "1f1b"):
            yield build(name, stages=stages, microbatches=microbatches)
        for name, chunks in itertools.product(
            ("interleaved-1f1b", "looped-bfs", "zb1p"), (1, 2, 3)
        ):
            yield build(name, stages=stages, microbatches=microbatches, chunks=chunks)
        for name in ("zb2p", "zbv", "v-half", "v-min"):
            yield build(name, stages=stages, microbatches=microbatches)
        if microbatches >= 2 * stages:
            yield build("dualpipev", stages=stages, microbatches=microbatches)
    for stages, microbatches in ((2, 4), (4, 8), (4, 10), (6, 16)):
        yield build("dualpipe", stages=stages, microbatches=microbatches)


def uneven(schedule, latency, overlapped_pair=None):
    """Return durations that differ on every stage and are exact in binary."""
    stages = schedule.placement.stages
    return Durations(
        forward=tuple(1 + s % 3 for s in range(stages)),
        backward_input=tuple(2 + s % 2 for s in range(stages)),
        backward_weight=tuple(1 + s % 4 / 2 for s in range(stages)),
        latency=latency,
        overlapped_pair=overlapped_pair,
    )


@pytest.mark.parametrize("latency", [0, 0.25])
def test_no_action_starts_before_its_inputs_or_on_a_busy_rank(latency):
    for schedule in all_schedules():
        durations = uneven(schedule, latency)
        assert_lawful(simulate(schedule, durations), durations)


def assert_lawful(trace, durations):
    placement = trace.schedule.placement
    at = {str(p.action): p for lane in trace.placed for p in lane}
    for lane in trace.placed:
        for earlier, later in itertools.pairwise(lane):
            shared = earlier.action in trace.schedule.overlapped
            assert later.start == earlier.start if shared else later.start >= earlier.end
    for placed in at.values():
        stage, m = placed.action.stage, placed.action.microbatch
        kind = placed.action.kind
        pipe_start = stage - stage % placement.depth
        sources = {
            "F": [f"{stage - 1}F{m}"] if stage > pipe_start else [],
            "W": [f"{stage}I{m}"],
        }.get(kind, [f"{stage}F{m}"])
        if kind in "BI" and stage < pipe_start + placement.depth - 1:
            behind = f"{stage + 1}B{m}"
            sources.append(behind if behind in at else f"{stage + 1}I{m}")
        for source in sources:
            hop = durations.latency if at[source].rank != placed.rank else 0
            assert placed.start >= at[source].end + hop


@pytest.mark.parametrize("latency", [0, 0.25])
@pytest.mark.parametrize("overlapped_pair", [None, 6.5])
def test_critical_path_adds_up_to_the_makespan(latency, overlapped_pair):
    for schedule in all_schedules():
        trace = simulate(schedule, uneven(schedule, latency, overlapped_pair))
        path = critical_path(trace)
        work = sum(step.end - step.start for step in path)
        hops = sum(before.rank != after.rank for before, after in itertools.pairwise(path))
        assert path[0].start == 0
        assert path[-1].end == trace.makespan
        assert work + hops * latency == trace.makespan


def test_work_is_conserved():
    for schedule in all_schedules():
        durations = uneven(schedule, 0.25)
        per_stage = zip(
            durations.forward, durations.backward_input, durations.backward_weight, strict=True
        )
        passes = schedule.microbatches // schedule.placement.pipes
        work = passes * sum(map(sum, per_stage))
        assert sum(simulate(schedule, durations).busy) == work


def test_in_flight_over_time_rises_to_the_peak_and_ends_at_zero():
    for schedule in all_schedules():
        trace = simulate(schedule, uneven(schedule, 0.25))
        for rank, peak in enumerate(trace.peak_in_flight):
            steps = trace.in_flight(rank)
            assert max(held for _, held in steps) == peak
            assert steps[-1] == (trace.placed[rank][-1].end, 0)


def test_only_ranks_that_there_are_have_a_place_in_time():
    trace = simulate(build("1f1b", stages=2, microbatches=2), UNIT)
    for rank in (-1, 2):
        with pytest.raises(InputError, match=f"rank: expected 0 to 1, got {rank}"):
            trace.placed_on(rank)


def test_in_flight_of_1f1b_over_time_on_the_last_but_one_rank():
    trace = simulate(build("1f1b", stages=2, microbatches=2), UNIT)
    # Timeline F0 F1 . B0 . B1, in halves: one for one from 4 on, released at 8 and 12.
    assert trace.in_flight(0) == ((0, 1), (2, 2), (8, 1), (12, 0))


def test_latency_delays_each_change_of_rank_only():
    assert simulate(build("1f1b", stages=4, microbatches=1), Durations(latency=0.5)).makespan == 15
    turn = of_orders("0F0 3F0 3B0 0B0", "1F0 2F0 2B0 1B0", placement=v_shape(2))
    # Stages 1 and 2 share a rank: two of the three boundaries cost, each forward and backward.
    assert simulate(turn, Durations(latency=0.5)).makespan == 4 * 3 + 4 * 0.5


def test_an_overlapped_pair_shares_its_time_and_counts_once():
    schedule = of_orders("0F0 0F1 0B0 0B1", microbatches=2, overlapped=("0F1",))
    assert (
        simulate(schedule, Durations(forward=1, backward_input=1, backward_weight=1)).makespan
        == 9 - 3
    )
    trace = simulate(
        schedule, Durations(forward=1, backward_input=1, backward_weight=1, overlapped_pair=2.5)
    )
    assert trace.makespan == 1 + 2.5 + 2
    assert trace.busy == (5.5,)
    assert [(p.start, p.end) for p in trace.placed[0]] == [(0, 1), (1, 3.5), (1, 3.5), (3.5, 5.5)]
    assert [p.overlapped for p in trace.placed[0]] == [False, True, True, False]


def test_a_split_backward_costs_what_a_full_one_does():
    split = of_orders("0F0 0I0 0W0", "1F0 1I0 1W0")
    trace = simulate(split, Durations(forward=1, backward_input=1, backward_weight=1))
    # The gradient travels after I; W of stage 1 hides behind I of stage 0.
    assert trace.makespan == 5
    assert trace.busy == (3, 3)


def test_idle_without_a_flush_leaves_out_the_ends():
    trace = simulate(
        build("gpipe", stages=2, microbatches=1),
        Durations(forward=1, backward_input=1, backward_weight=1),
    )
    assert trace.span_by_rank == (6, 3)
    assert trace.bubble_fraction_without_flush == trace.bubble_fraction == 0.5
    alone = simulate(
        of_orders("0F0 0I0 0W0", "1F0 1I0 1W0"),
        Durations(forward=1, backward_input=1, backward_weight=1),
    )
    assert alone.span_by_rank == (5, 3)


def test_an_unequal_stage_sets_the_pace():
    trace = simulate(
        build("1f1b", stages=4, microbatches=32),
        Durations(forward=(1, 1, 2, 1), backward_input=1, backward_weight=0),
    )
    # On the slow stage: fill 2, work 32·3, drain 2. It waits once, at the end: stage 3 needs 2
    # for the last microbatch and the backward of the one before fills only 1.
    assert trace.makespan == 2 + 32 * 3 + 1 + 2
    assert trace.bubble_fraction_by_rank[2] == 5 / 101


def test_one_stage_of_a_looping_placement_may_follow_itself():
    trace = simulate(of_orders("0F0 1F0 1B0 0B0", placement=looping(1, 2)), Durations(latency=9))
    assert trace.makespan == 6
    assert Placement("one", (0, 0)).chunks == 2
