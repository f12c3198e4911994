"""Computes when every action of a pipeline schedule runs, given the durations of actions.

A rank follows its order without skipping; an action starts as soon as the rank is free and its
inputs have arrived. Sending costs the sender nothing, and links never queue.
"""

from __future__ import annotations

import math

from figgen.errors import InputError
from figgen.models.pipeline.carry import KIND_ORDER
from figgen.models.pipeline.order import Schedule
from figgen.models.pipeline.trace import Durations, PerStage, PlacedAction, Trace, critical_path

__all__ = ["Durations", "PlacedAction", "Trace", "critical_path", "simulate"]

Lanes = tuple[tuple[float, ...], ...]


def simulate(schedule: Schedule, durations: Durations | None = None) -> Trace:
    """Run every action of `schedule` at the earliest time that order and inputs allow.

    Takes time linear in the number of actions. Raises InputError if an action is missing, repeated
    or on the wrong rank, if per-stage durations do not match the stages, or if the order cannot be
    executed; the message then names the action and what it waits for.
    """
    durations = durations or Durations()
    starts, ends = _carried_out(schedule, durations)
    # Rounded once, since the last digit would differ from Python 3.12 on.
    busy = tuple(
        math.fsum(end - start for start, end in zip(*lanes, strict=True))
        for lanes in zip(starts, ends, strict=True)
    )
    makespan = max((lane[-1] for lane in ends if lane), default=0)
    return Trace(
        schedule=schedule,
        durations=durations,
        starts=starts,
        ends=ends,
        busy=busy,
        makespan=makespan,
    )


def _carried_out(schedule: Schedule, durations: Durations) -> tuple[Lanes, Lanes]:
    """Return the start and end of each block of each rank."""
    plan = schedule.plan
    times, pairs = action_times(durations, schedule.placement.stages)
    hops = (0, durations.latency)
    there: list[float] = [0] * plan.outputs
    free: list[float] = [0] * schedule.placement.ranks
    starts: list[list[float]] = [[] for _ in free]
    ends: list[list[float]] = [[] for _ in free]
    # An action's input from its own stage is available: its rank has computed it before.
    for rank, (time, _, sent, changes_rank, made), partner in plan.steps:
        start, took = free[rank], times[time]
        arrival = there[sent] + hops[changes_rank]
        if arrival > start:
            start = arrival
        if partner:
            stage = time  # The first half is a forward, and the times of forwards come first.
            time, _, sent, changes_rank, second = partner
            start = max(start, there[sent] + hops[changes_rank])
            pair = pairs[stage] if pairs else took + times[time]
            if pair < max(took, times[time]):
                raise _too_short(schedule, pair, max(took, times[time]), rank, len(ends[rank]))
            took = pair
            there[second] = start + took
        there[made] = free[rank] = end = start + took
        starts[rank].append(start)
        ends[rank].append(end)
    return tuple(map(tuple, starts)), tuple(map(tuple, ends))


def _too_short(schedule: Schedule, pair: float, longer: float, rank: int, block: int) -> InputError:
    """Return the error for an overlapped pair that is shorter than the longer of its halves."""
    first, second = schedule.blocks(rank)[block]
    return InputError(
        f"overlapped_pair is shorter than one half of {first} & {second}",
        expected=f"at least {longer}",
        got=pair,
    )


def action_times(
    durations: Durations, stages: int
) -> tuple[tuple[float, ...], tuple[float, ...] | None]:
    """Return the time of each kind of action on each stage, and of pairs if given.

    Times are in the order of `figgen.models.pipeline.carry`: by kind, then by stage.
    """

    inputs = per_stage("backward_input", durations.backward_input, stages)
    weights = per_stage("backward_weight", durations.backward_weight, stages)
    by_kind = {
        "F": per_stage("forward", durations.forward, stages),
        "B": tuple(i + w for i, w in zip(inputs, weights, strict=True)),
        "I": inputs,
        "W": weights,
    }
    pair = durations.overlapped_pair
    return (
        tuple(time for kind in KIND_ORDER for time in by_kind[kind]),
        None if pair is None else per_stage("overlapped_pair", pair, stages),
    )


def per_stage(name: str, value: PerStage, stages: int) -> tuple[float, ...]:
    """Return the duration `name` on each stage. Raises InputError for a wrong number of times."""
    if not isinstance(value, tuple):
        return (value,) * stages
    if len(value) != stages:
        raise InputError(
            f"duration {name}", expected=f"one time per virtual stage, {stages}", got=len(value)
        )
    return value
