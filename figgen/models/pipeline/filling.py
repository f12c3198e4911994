"""The idle time of a stage while a pipeline fills and drains, in times of one microbatch."""

from __future__ import annotations

from functools import lru_cache

from figgen.equations.ops import Number, minimum, where
from figgen.models.pipeline.schedules import build
from figgen.models.pipeline.simulate import Durations, simulate

CLOSED = ("1f1b", "gpipe", "looped-bfs", "interleaved-1f1b")
"""Schedules whose idle time is (P − 1)/V where there are microbatches for every stage; Narayanan et
al. 2021, arXiv:2104.04473, section 2.2."""
UNSPLIT = (*CLOSED, "naive")
"""Schedules whose idle time does not depend on how a microbatch is divided into passes."""

GROWING = ("v-half", "v-min")
"""Schedules that idle in every microbatch unless their three passes are of one length."""

Split = tuple[float, float, float]
"""Shares of a microbatch's time: forward, gradients of inputs (with what is computed again before
them), gradients of weights."""
EVEN: Split = (1 / 3, 1 / 3, 1 / 3)


def filling(
    schedule: str, stages: int, microbatches: int, chunks: int, split: Split = EVEN
) -> float:
    """Return the idle time of a stage over the time of one microbatch, for stages that are alike.

    Closed forms for 1F1B and its like, where fewer microbatches than stages leave the others idle
    in each round of chunks, and where microbatches pass one by one. Other schedules are simulated
    with passes that take the shares of `split`; a full pipeline does the same again with every
    further microbatch, so that no more of them are simulated than it takes to fill one. What a
    stage idles in every microbatch is `stalled`, not here.
    Raises InputError for an unknown schedule.
    """
    if stages == 1:
        return 0.0
    if schedule in CLOSED:
        inside = min(microbatches, stages)
        return stages - inside + (inside - 1) / chunks
    if schedule == "naive":
        return float(microbatches * (stages - 1))
    fewer = int(alike(schedule, stages, microbatches, chunks))
    each = stalled(schedule, stages, microbatches, chunks, split)
    return _simulated(schedule, stages, fewer, chunks, split) - fewer * each


def stalled(
    schedule: str, stages: int, microbatches: int, chunks: int, split: Split = EVEN
) -> float:
    """Return the share of a microbatch's time that a stage idles in each, for stages alike.

    It is 0 but for schedules whose order fits passes of one length only. A stage that works longer
    than the others idles that much less.
    """
    if stages == 1 or schedule not in GROWING:
        return 0.0
    full = 4 * stages
    more = _simulated(schedule, stages, full, chunks, split)
    less = _simulated(schedule, stages, full - stages, chunks, split)
    few = min(microbatches, full)
    idle = _simulated(schedule, stages, few, chunks, split)
    return min((more - less) / stages, idle / few)


@lru_cache(maxsize=8192)
def _simulated(schedule: str, stages: int, microbatches: int, chunks: int, split: Split) -> float:
    """Return the idle time that the simulator gives."""
    order = build(schedule, stages=stages, microbatches=microbatches, chunks=chunks)
    parts = order.placement.stages / stages / order.placement.pipes
    forward, inputs, weights = split
    times = Durations(
        forward=forward / parts, backward_input=inputs / parts, backward_weight=weights / parts
    )
    return max(0.0, simulate(order, times).makespan - microbatches)


def alike(schedule: str, stages: int, microbatches: Number, chunks: int) -> Number:
    """Return the least number of microbatches with which a schedule fills and holds as with these.

    A pipeline that is full does the same again with every microbatch, or every P of them where
    chunks take turns. Tested for every schedule.
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
