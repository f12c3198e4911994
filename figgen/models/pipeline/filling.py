"""The idle time of a stage while a pipeline fills and drains, in times of one microbatch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from figgen.equations.ops import Number, maximum, minimum, where
from figgen.models.pipeline.pass_lines import (
    Lines,
    Passes,
    largest,
    less,
    lines_of,
    longest_chain,
)
from figgen.models.pipeline.schedules import build

CLOSED = ("1f1b", "gpipe", "looped-bfs", "interleaved-1f1b")
"""Schedules whose idle time is (P − 1)/V if there are microbatches for every stage (Narayanan et
al. 2021, arXiv:2104.04473, section 2.2)."""
GROWING = ("v-half", "v-min")
"""Schedules that idle in every microbatch unless their three passes take equally long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineIdle:
    """The idle time of a stage, in times of one microbatch, if all stages take equally long.

    The largest of the lines `filling` is the idle time with `held` microbatches. The largest of
    `stalling` is what every further microbatch adds. Both depend on the split into passes.
    """

    filling: Lines
    stalling: Lines
    held: Number


@lru_cache(maxsize=8192)
def pipeline_idle(schedule: str, stages: int, microbatches: int, chunks: int) -> PipelineIdle:
    """Return the idle time of a stage under a schedule.

    1F1B, GPipe, interleaving and the naive schedule have closed forms, also for fewer microbatches
    than stages. Other schedules are simulated with just enough microbatches to fill the pipeline;
    once it is full, every further microbatch repeats the same actions.

    Raises InputError for an unknown schedule.
    """
    if stages == 1:
        return idle_for(0.0)
    if schedule in CLOSED:
        inside = min(microbatches, stages)
        return idle_for(stages - inside + (inside - 1) / chunks)
    if schedule == "naive":
        return idle_for(float(microbatches * (stages - 1)))
    held = int(alike(schedule, stages, microbatches, chunks))
    growing = schedule in GROWING
    return PipelineIdle(
        filling=_filling(schedule, stages, held, chunks),
        stalling=_stalling(schedule, stages, chunks) if growing else (_always(0.0),),
        held=held,
    )


def idle_for(microbatches: float) -> PipelineIdle:
    """Return an idle time of `microbatches` microbatches, whatever the split into passes."""
    return PipelineIdle(filling=(_always(microbatches),), stalling=(_always(0.0),), held=1)


def _always(value: float) -> Passes:
    """Return the line that has this value at every split."""
    return Passes(forward=value, inputs=value, weights=value)


def idle_times(idle: PipelineIdle, split: Passes) -> tuple[Number, Number]:
    """Return a stage's idle time in a step, and the idle time that every microbatch adds.

    Both are in times of one microbatch. The second is 0, except in schedules whose order suits only
    passes of equal length; there a stage that works longer than the others idles less.
    """
    whole = maximum(0, largest(idle.filling, split))
    each = minimum(maximum(0, largest(idle.stalling, split)), whole / idle.held)
    return whole - idle.held * each, each


@lru_cache(maxsize=1024)
def _filling(schedule: str, stages: int, microbatches: int, chunks: int) -> Lines:
    order = build(schedule, stages=stages, microbatches=microbatches, chunks=chunks)

    def idle(split: Passes) -> Passes:
        return less(longest_chain(order, split), _always(microbatches))

    return lines_of(idle)


@lru_cache(maxsize=1024)
def _stalling(schedule: str, stages: int, chunks: int) -> Lines:
    """Return the idle time that each further microbatch adds to a full pipeline."""
    fewer = build(schedule, stages=stages, microbatches=3 * stages, chunks=chunks)
    more = build(schedule, stages=stages, microbatches=4 * stages, chunks=chunks)

    def idle(split: Passes) -> Passes:
        added = less(longest_chain(more, split), longest_chain(fewer, split))
        return Passes(
            forward=added.forward / stages - 1,
            inputs=added.inputs / stages - 1,
            weights=added.weights / stages - 1,
        )

    return lines_of(idle)


def alike(schedule: str, stages: int, microbatches: Number, chunks: int) -> Number:
    """Return the fewest microbatches with which a schedule fills and holds as with these.

    A full pipeline repeats itself with every microbatch, or every P of them if chunks take turns. A
    test checks this for every schedule.
    """
    if schedule == "1f1b":
        return minimum(microbatches, stages)
    if schedule in ("naive", "gpipe", "looped-bfs"):
        return microbatches
    if schedule == "interleaved-1f1b" or (schedule == "zb1p" and chunks > 1):
        whole = microbatches % stages == 0
        return where(whole, minimum(microbatches, 4 * stages), microbatches)
    odd = microbatches % 2 if schedule == "dualpipe" else 0
    return minimum(microbatches, 4 * stages + odd)
