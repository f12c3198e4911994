"""Pairs of DualPipe in the step: how long they take and what they leave exposed.

The times are compared with a simulation that only has a clock: at every tick, each free rank checks
whether the inputs of its next actions are ready.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from figgen import catalog
from figgen.models.machine.layout import layout
from figgen.models.pipeline.schedule_work import carried_out
from figgen.models.pipeline.schedules import Action, Schedule, build
from figgen.models.pipeline.simulate import Durations, simulate
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.stage_time import StageTime, stage_times
from figgen.models.step.step import durations, step
from figgen.models.step.step_traffic import BACKWARD, FORWARD
from tests.models.jobs import H100

V3 = catalog.model("deepseek-v3").shape
EQUAL = replace(V3, layers=16, vocab=64, experts=replace(V3.experts, dense_layers=0))
"""Sixteen equal layers, and tables that take no time."""

BOTH = pytest.mark.parametrize(
    ("name", "ranks", "microbatches"),
    [("dualpipe", 2, 6), ("dualpipe", 4, 10), ("dualpipev", 2, 5), ("dualpipev", 4, 8)],
)


def run_of(schedule: str, ranks: int, microbatches: int) -> TrainingSetup:
    parallel = layout(nodes=4 * ranks, gpus_per_node=8, pp=ranks, ep=32)
    return TrainingSetup(
        shape=EQUAL, parallel=parallel, microbatches=microbatches, sequence=4096, schedule=schedule
    )


def staged(run: TrainingSetup, parts: Sequence[Sequence[int]]) -> tuple[StageTime, ...]:
    """Return stages of (forward, repeated forward, inputs, weights, sent forward, sent back) in
    seconds."""
    known = {entry.traffic.phase: entry for entry in stage_times(run, H100, 0.5)[1].traffic}
    return tuple(
        StageTime(
            *times,
            (
                replace(known[FORWARD], exposed_s=float(on)),
                replace(known[BACKWARD], exposed_s=float(back)),
            ),
        )
        for *times, on, back in parts
    )


def drawn(run: TrainingSetup, seed: int) -> list[list[int]]:
    """Return parts that differ on every stage, with one stage much slower than the others."""
    rng = np.random.default_rng(seed)
    parts = rng.integers(1, 9, (run.placement.stages, 6))
    parts[rng.integers(run.placement.stages)] *= 5
    return [list(map(int, row)) for row in parts]


def length_of(parts: Sequence[Sequence[int]]) -> Callable[[tuple[Action, ...]], int]:
    """Return how long an action or a pair takes: each half computes while the other one sends."""

    def halves(action: Action) -> tuple[int, int]:
        forward, again, inputs, weights, on, back = parts[action.stage]
        return {
            "F": (forward, on),
            "B": (again + inputs + weights, back),
            "I": (again + inputs, back),
            "W": (weights, 0),
        }[action.kind]

    def length(block: tuple[Action, ...]) -> int:
        both = [halves(action) for action in block]
        computed, sent = (sum(part) for part in zip(*both, strict=True))
        if len(block) == 1:
            return computed + sent
        return max(computed, sent, *map(sum, both))

    return length


def needed(action: Action, depth: int) -> set[tuple[str, int, int]]:
    stage, kind, microbatch = action
    if kind == "F":
        return {("F", stage - 1, microbatch)} if stage % depth else set()
    if kind == "W":
        return {("I", stage, microbatch)}
    behind = {("I", stage + 1, microbatch)} if (stage + 1) % depth else set()
    return {("F", stage, microbatch)} | behind


def ticked(schedule: Schedule, length: Callable[[tuple[Action, ...]], int]) -> list[list[int]]:
    """Return when each block of each rank starts, found second by second."""
    depth, ranks = schedule.placement.depth, range(schedule.placement.ranks)
    left = [list(schedule.blocks(rank)) for rank in ranks]
    there: dict[tuple[str, int, int], int] = {}
    free, starts, now = [0 for _ in ranks], [[] for _ in ranks], 0
    while any(left):
        for rank in ranks:
            if not left[rank] or free[rank] > now:
                continue
            block = left[rank][0]
            wanted = set().union(*(needed(action, depth) for action in block))
            if any(there.get(key, now + 1) > now for key in wanted):
                continue
            starts[rank].append(now)
            free[rank] = now + length(left[rank].pop(0))
            for stage, kind, microbatch in block:
                there["I" if kind == "B" else kind, stage, microbatch] = free[rank]
        now += 1
    return starts


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_pairs_of_unequal_stages_run_as_a_clock_says(
    name: str, ranks: int, microbatches: int, seed: int
) -> None:
    run = run_of(name, ranks, microbatches)
    parts = drawn(run, seed)
    trace = simulate(run.order, durations(run, staged(run, parts), 0.0))
    assert list(map(list, trace.starts)) == ticked(run.order, length_of(parts))


@BOTH
def test_a_slow_stage_lengthens_no_pair_of_another_rank(
    name: str, ranks: int, microbatches: int
) -> None:
    run = run_of(name, ranks, microbatches)
    alike = [[2, 0, 2, 2, 3, 3]] * run.placement.stages
    pairs = []
    for parts in (alike, [*alike[:-1], [9, 0, 9, 9, 3, 3]]):
        found = durations(run, staged(run, parts), 0.0).overlapped_pair
        assert isinstance(found, tuple)
        pairs.append(found)
    # Both compute: 2 + 4 s. A slow forward beside a backward, and a forward beside a slow backward.
    last, other = run.placement.stages - 1, run.placement.stages_of_rank(0)[0]
    assert run.placement.rank_of_stage[last] == 0
    assert set(pairs[0]) == {7}
    assert (pairs[1][last], pairs[1][other]) == (9 + 4, 18 + 3)
    assert [p for s, p in enumerate(pairs[1]) if s not in (last, other)] == [7] * (last - 1)


@BOTH
def test_idle_time_of_equal_stages_is_deepseeks(name: str, ranks: int, microbatches: int) -> None:
    run = run_of(name, ranks, microbatches)
    # F = I as in the table: 4 s computed and 2 s sent, which a pair hides.
    parts = [[4, 0, 4, 2, 2, 2]] * run.placement.stages
    pair, backward, weights = 4 + 6, 6 + 2, 2
    trace = simulate(run.order, durations(run, staged(run, parts), 0.0))
    idle = max(trace.makespan - busy for busy in trace.busy)
    # (PP/2 − 1)(F&B + B − 3W), deepseek-ai/DualPipe, README.
    assert idle == (run.placement.depth // 2 - 1) * (pair + backward - 3 * weights)


def test_dualpipev_of_equal_stages_exposes_what_dualpipe_does() -> None:
    names = ("1f1b", "dualpipe", "dualpipev")
    found = {name: step(run_of(name, 4, 40), H100) for name in names}
    exposed = {name: dict(estimate.exposed)["ep"] for name, estimate in found.items()}
    assert exposed["dualpipev"] == pytest.approx(exposed["dualpipe"], abs=0.02 * exposed["1f1b"])
    assert exposed["dualpipe"] < exposed["1f1b"] / 3


def test_one_time_of_pairs_follows_the_layers_of_their_stages() -> None:
    schedule = build("dualpipev", stages=2, microbatches=4)
    # Half of a forward of 1 hides behind a backward of 2; stages have 4, 2, 1 and 1 quarters of a
    # rank's layers, 0 and 3 on one rank. Longer half, and half of the shorter one.
    half = Durations(forward=1, backward_input=1, backward_weight=1, overlapped_pair=2.5)
    trace = carried_out(schedule, half, (4, 2, 1, 1))
    pairs = (1 + 0.5 / 2, 0.5 + 0.5 / 2, 1 + 0.25 / 2, 2 + 0.25 / 2)
    assert trace.durations.overlapped_pair == pairs
    assert carried_out(schedule, half).durations.overlapped_pair == (2.5 / 2,) * 4


@BOTH
@pytest.mark.parametrize(
    ("forward", "inputs", "weights", "pair"),
    [(1.0, 1.0, 1.0, 2.25), (3.0, 0.5, 0.5, 3.5), (1.0, 0.0, 0.0, 1.5), (2.0, 1.0, 0.0, 2.0)],
)
def test_equal_layers_cut_a_rank_s_times_alike(
    name: str,
    ranks: int,
    microbatches: int,
    forward: float,
    inputs: float,
    weights: float,
    pair: float,
) -> None:
    schedule = build(name, stages=ranks, microbatches=microbatches)
    times = Durations(
        forward=forward,
        backward_input=inputs,
        backward_weight=weights,
        latency=0.25,
        overlapped_pair=pair,
    )
    whole = simulate(schedule, times.per_chunk(schedule.placement.chunks))
    assert carried_out(schedule, times, (5.0,) * ranks).ends == whole.ends
    # A rank of which neither half takes time hides nothing either.
    idle = schedule.placement.rank_of_stage
    some = tuple(0.0 if idle[stage] else forward for stage in range(schedule.placement.stages))
    none = tuple(0.0 for _ in some)
    free = carried_out(
        schedule,
        Durations(forward=some, backward_input=none, backward_weight=none, overlapped_pair=some),
    )
    assert free.busy[1:] == (0.0,) * (ranks - 1)


@BOTH
def test_what_hides_nothing_takes_the_sum_and_what_hides_all_is_never_too_short(
    name: str, ranks: int, microbatches: int
) -> None:
    schedule = build(name, stages=ranks, microbatches=microbatches)
    layers = tuple(7.0 - rank % 3 for rank in range(ranks))
    forward, inputs, weights = 0.1, 0.7, 1 / 3
    sums = [
        carried_out(
            schedule,
            Durations(
                forward=forward,
                backward_input=inputs,
                backward_weight=weights,
                overlapped_pair=pair,
            ),
            layers,
        )
        for pair in (None, forward + inputs + weights)
    ]
    assert sums[1].busy == pytest.approx(sums[0].busy)
    hidden = Durations(
        forward=forward,
        backward_input=inputs,
        backward_weight=weights,
        overlapped_pair=inputs + weights,
    )
    assert carried_out(schedule, hidden, layers).makespan < sums[0].makespan
