"""All twelve schedules over the whole domain P ≤ 8, M ≤ 16, V ≤ 4.

Each can be built exactly where it is defined, and runs with stages that all differ. The times are
then compared with the simulator's rule, written down again from its description: an action starts
exactly when its rank is free and its last input has arrived.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from figgen.errors import InputError
from figgen.formulas import evaluate
from figgen.models.pipeline import schedules
from figgen.models.pipeline.schedules import SCHEDULES, Schedule, build
from figgen.models.pipeline.simulate import Durations, PlacedAction, Trace, critical_path, simulate
from figgen.models.pipeline.trace import PerStage

Sizes = tuple[int, int, int]
DOMAIN = list(itertools.product(range(1, 9), range(1, 17), range(1, 5)))
ONE_CHUNK = ("naive", "gpipe", "1f1b", "zb2p", "dualpipe")
TWO_CHUNKS = ("zbv", "v-half", "v-min", "dualpipev")
SPLIT = ("zb1p", "zb2p", "zbv", "v-half", "v-min")

every_schedule = pytest.mark.parametrize("name", SCHEDULES)


def defined(name: str, stages: int, microbatches: int, chunks: int) -> bool:
    """Return whether a schedule is defined for these sizes."""
    if name in ONE_CHUNK and chunks != 1:
        return False
    if name in TWO_CHUNKS and chunks != 2:
        return False
    if name == "dualpipe":
        return stages % 2 == 0 and microbatches % 2 == 0 and microbatches >= 2 * stages
    return name != "dualpipev" or microbatches >= 2 * stages


@cache
def built(name: str, stages: int, microbatches: int, chunks: int) -> Schedule:
    return build(name, stages=stages, microbatches=microbatches, chunks=chunks)


def test_what_has_too_many_stages_or_visits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # Sizes that no other test builds, since what is built once is kept.
    sizes = {"stages": 3, "microbatches": 19, "chunks": 2}
    for limit, least in (("MOST_STAGES", 3), ("MOST_VISITS", 3 * 19 * 2)):
        monkeypatch.setattr(schedules, limit, least - 1)
        with pytest.raises(InputError, match=f"at most {least - 1}, got {least}"):
            build("zb1p", **sizes)
        monkeypatch.setattr(schedules, limit, least)
    assert build("zb1p", **sizes).microbatches == 19


def all_of(name: str) -> Iterator[tuple[Sizes, Schedule]]:
    for sizes in DOMAIN:
        if defined(name, *sizes):
            yield sizes, built(name, *sizes)


@every_schedule
def test_a_schedule_is_refused_exactly_where_it_is_not_defined(name: str) -> None:
    refused = 0
    for stages, microbatches, chunks in DOMAIN:
        if not defined(name, stages, microbatches, chunks):
            with pytest.raises(InputError, match=f"of schedule '{name}': expected"):
                build(name, stages=stages, microbatches=microbatches, chunks=chunks)
            refused += 1
    assert refused < len(DOMAIN)


def times(schedule: Schedule, pair: PerStage | None) -> Durations:
    """Return times that differ from stage to stage and are exact in binary."""
    stages = range(schedule.placement.stages)
    return Durations(
        forward=tuple(1 + s % 3 for s in stages),
        backward_input=tuple(2 + s % 2 for s in stages),
        backward_weight=tuple(1 + s % 4 / 2 for s in stages),
        latency=0.25,
        overlapped_pair=pair,
    )


def check_every_action_once(sizes: Sizes, schedule: Schedule) -> None:
    """Check for one F, and either one B or one I and one W, per stage per microbatch on the stage's
    rank."""
    ranks, microbatches, chunks = sizes
    split, folded = schedule.name in SPLIT, schedule.name in (*TWO_CHUNKS, "dualpipe")
    done: dict[tuple[int, int], str] = {}
    for rank, order in enumerate(schedule.orders):
        for action in order:
            stage = action.stage
            assert rank == (2 * ranks - 1 - stage if folded and stage >= ranks else stage % ranks)
            key = stage, action.microbatch
            done[key] = done.get(key, "") + action.kind
    both_ways = schedule.name == "dualpipe"
    stages = 2 * ranks if both_ways else ranks * chunks
    wanted = {
        (stage, microbatch)
        for stage in range(stages)
        for microbatch in range(microbatches)
        if not both_ways or (stage < ranks) == (microbatch < microbatches // 2)
    }
    assert set(done) == wanted
    kinds = {"".join(sorted(word)) for word in done.values()}
    assert kinds <= ({"FIW"} if split else {"FIW", "BF"} if "dual" in schedule.name else {"BF"})


def inputs(action: PlacedAction, last_stages: tuple[int, ...], depth: int) -> list[tuple]:
    """Return the keys of an action's inputs: its own forward, its own I, and its
    neighbor's result."""
    stage, microbatch = action.action.stage, action.action.microbatch
    match action.action.kind:
        case "F":
            return [("F", stage - 1, microbatch)] if stage % depth else []
        case "W":
            return [("B", stage, microbatch)]
    own = [("F", stage, microbatch)]
    return own if stage in last_stages else [*own, ("B", stage + 1, microbatch)]


def check_times(trace: Trace) -> None:
    placement = trace.schedule.placement
    depth = placement.stages // placement.pipes
    last = tuple(range(depth - 1, placement.stages, depth))
    made = {
        ("B" if p.action.kind in "BI" else p.action.kind, p.action.stage, p.action.microbatch): p
        for lane in trace.placed
        for p in lane
    }
    for lane in trace.placed:
        free = 0.0
        for start, pair in itertools.groupby(lane, key=lambda placed: placed.start):
            block = list(pair)
            ready = free
            for source in (made[key] for p in block for key in inputs(p, last, depth)):
                hop = trace.durations.latency if source.rank != block[0].rank else 0
                ready = max(ready, source.end + hop)
            assert start == ready
            assert len(block) <= 1 + block[0].overlapped
            if len(block) > 1 and isinstance(pairs := trace.durations.overlapped_pair, tuple):
                assert block[0].end - start == pairs[block[0].action.stage]
            free = block[0].end


@every_schedule
def test_every_action_runs_once_and_starts_when_its_rank_and_inputs_allow(name: str) -> None:
    for sizes, schedule in all_of(name):
        check_every_action_once(sizes, schedule)
        pairs = tuple(6.5 + stage % 3 / 4 for stage in range(schedule.placement.stages))
        trace = simulate(schedule, times(schedule, pairs if schedule.overlapped else None))
        check_times(trace)
        path = critical_path(trace)
        hops = sum(before.rank != after.rank for before, after in itertools.pairwise(path))
        work = sum(step.end - step.start for step in path)
        assert work + hops * trace.durations.latency == trace.makespan


Idle = Callable[[int, float, float, float], float]
FROM_P: dict[str, tuple[Callable[[int], int], Idle]] = {
    "zb1p": (lambda p: p, lambda p, f, i, w: (p - 1) * (f + i - w)),
    "zb2p": (lambda p: 2 * p - 1, lambda p, f, i, w: (p - 1) * max(0, f + i - 2 * w)),
    "zbv": (lambda p: 2 * p - 1, lambda p, f, i, w: 0),
    "dualpipe": (lambda p: 2 * p, lambda p, f, i, w: (p // 2 - 1) * (2 * f + i - w)),
    "dualpipev": (lambda p: 2 * p, lambda p, f, i, w: (p - 1) * (2 * f + i - w)),
}
"""Smallest M for which the published idle time holds (DeepSeek-V3 table 2; Qi et al. 2023)."""

TIMES = [(1, 1, 1), (2, 2, 1), (4, 4, 3)]


@pytest.mark.parametrize("name", FROM_P)
def test_idle_time_is_the_published_one_for_every_m_from_which_it_holds(name: str) -> None:
    least, idle = FROM_P[name]
    for (stages, microbatches, _), schedule in all_of(name):
        if microbatches < least(stages):
            continue
        for forward, inputs_, weights in TIMES if name != "zbv" else TIMES[:1]:
            trace = simulate(
                schedule,
                Durations(forward=forward, backward_input=inputs_, backward_weight=weights),
            )
            # Between the first start and last end of a rank, where steps may follow each other.
            rolling = name in ("zb2p", "zbv")
            wall = max(trace.span_by_rank) if rolling else trace.makespan
            expected = idle(stages, forward, inputs_, weights)
            assert max(wall - busy for busy in trace.busy) == expected


@pytest.mark.parametrize("name", ["v-half", "v-min"])
def test_v_schedules_idle_as_little_for_every_m_of_at_least_p(name: str) -> None:
    for (stages, microbatches, _), schedule in all_of(name):
        if stages > 1 and microbatches >= stages:
            trace = simulate(schedule)
            half = 3 * (stages - 1) - stages % 2
            third = 4 * (stages - 1) + (1 if stages % 3 == 0 else -1)
            idle = {trace.makespan - busy for busy in trace.busy}
            assert idle == {half if name == "v-half" else third}


def test_formulas_of_interleaving_are_defined_exactly_where_the_simulator_agrees() -> None:
    # In flight, V = 1 is left to 1F1B: the formula counts the longer warm-up that chunks bring.
    for stages, microbatches, chunks in DOMAIN:
        sizes = {"stages": stages, "microbatches": microbatches, "chunks": chunks}
        trace = simulate(built("interleaved-1f1b", **sizes))
        idle, held = trace.bubble_fraction, trace.peak_in_flight[0]
        anywhere = microbatches >= stages or chunks == 1
        cases = {
            "interleaved_bubble_fraction": (idle, anywhere),
            "pipeline_efficiency": (1 - idle, anywhere),
            "interleaved_in_flight": (held, microbatches % stages == 0 and chunks > 1),
        }
        for name, (simulated, holds) in cases.items():
            if holds:
                value = evaluate(name, **sizes).value
                assert value == pytest.approx(simulated, rel=1e-12, abs=1e-15)
            else:
                with pytest.raises(InputError, match="is not defined there"):
                    evaluate(name, **sizes)


def test_looped_bfs_takes_as_long_as_interleaved_1f1b_for_every_m() -> None:
    for stages, microbatches, chunks in DOMAIN:
        sizes = {"stages": stages, "microbatches": microbatches, "chunks": chunks}
        both = [simulate(built(name, **sizes)) for name in ("looped-bfs", "interleaved-1f1b")]
        assert both[0].makespan == both[1].makespan
