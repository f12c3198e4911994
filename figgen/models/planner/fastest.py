"""The fastest layout of a job that fits, without computing every layout.

The search first computes a bound for each entry: a step takes at least this long, whatever is
recomputed and however ZeRO divides state. It then tries entries in rounds, lowest bounds first,
until no other entry can be faster than the best layout so far.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from figgen.equations.columns import Column, between, chosen, least, most, over
from figgen.equations.ops import Number
from figgen.models.planner.plan import (
    MeshEntry,
    Mode,
    Pipeline,
    PlannedJob,
    Zero,
    job_of,
    pipelines_of,
)
from figgen.models.planner.ranking import TIED, Ranked, TriedPipeline, no_layout, ranked, tried
from figgen.models.step.timed_step import timed_step

WIDER = 1.2
"""Factor between the highest bounds of two rounds."""


def fastest(job: PlannedJob) -> Ranked:
    """Return the ranking of all layouts that are at most `TIED` slower than the fastest.

    Counts of layouts that do not fit are left out, as most of these are never computed. Raises
    InputError where no layout exists.
    """
    pipelines = list(pipelines_of(job))
    if not pipelines:
        raise no_layout(job)
    bounds = [bounds_of(one) for one in pipelines]
    last = max([most(one) for one in bounds])
    found: list[TriedPipeline] = []
    low, high, most_s = -inf, min([least(one) for one in bounds]), inf
    while low < min(last, most_s):
        for pipeline, bound in zip(pipelines, bounds, strict=True):
            places = between(bound, low, high)
            if not len(places):
                continue
            one = tried(
                replace(pipeline, entries=tuple(pipeline.entries[int(at)] for at in places))
            )
            if len(one.step_s):
                found.append(one)
                most_s = min(most_s, least(one.step_s) * (1 + TIED))
        low, high = high, min(high * WIDER, most_s)
    best = ranked([_within(one, most_s) for one in found])
    return replace(best, layouts=sum([one.count for one in pipelines]), refused={}, least_bytes=inf)


def bounds_of(found: Pipeline) -> Column:
    """Return a lower bound of the step time (s) of all layouts, for every entry of a pipeline."""
    (seconds,) = over(
        found.modes[:1],
        found.zeros[:1],
        found.entries,
        lambda mode, zero, entry: (_least_s(found, mode, zero, entry),),
    )
    return seconds


def _least_s(found: Pipeline, mode: Mode, zero: Zero, entry: MeshEntry) -> Number:
    """Return the seconds of a step that recomputes nothing and waits for no gradient or weight.

    This is a lower bound, since shorter passes never make a schedule longer.
    """
    job = replace(
        job_of(found, mode, zero, entry),
        repeats_layer=0.0,
        repeats_core=0.0,
        gathers=0,
        scatters=0,
        zero_stage=3,
    )
    step = timed_step(job, found.job.attained)
    running = step.total_s - step.straggling_s - step.fixed_s
    shortest = running - step.sharding_s - step.gradients_s
    return shortest * (1 + step.straggling_s / running) + step.fixed_s


def _within(found: TriedPipeline, most_s: float) -> TriedPipeline:
    """Return the layouts that take no longer than `most_s`."""
    kept = between(found.step_s, -inf, most_s)
    return replace(
        found,
        places=chosen(found.places, kept),
        step_s=chosen(found.step_s, kept),
        memory_bytes=chosen(found.memory_bytes, kept),
        ties=chosen(found.ties, kept),
        meshes=chosen(found.meshes, kept),
    )
