"""How long a stage idles while a pipeline fills and drains, in microbatches' worth of its time."""

from __future__ import annotations

from functools import lru_cache

from figgen.models.pipeline.schedules import build
from figgen.models.pipeline.simulate import Durations, simulate

CLOSED = ("1f1b", "gpipe", "interleaved-1f1b")
"""Schedules whose idle time is (P − 1)/V where there are microbatches for every stage; Narayanan et
al. 2021, arXiv:2104.04473, section 2.2."""


@lru_cache(maxsize=1024)
def filling(schedule: str, stages: int, microbatches: int, chunks: int) -> float:
    """Idle time of a stage over the time of one microbatch, for stages that are alike.

    Closed forms for 1F1B and its like, where fewer microbatches than stages leave the others idle
    in each round of chunks, and where microbatches pass one by one; else simulated with
    forward, gradients of inputs and gradients of weights of one length.
    Raises InputError for an unknown schedule.
    """
    if stages == 1:
        return 0.0
    if schedule in CLOSED:
        inside = min(microbatches, stages)
        return stages - inside + (inside - 1) / chunks
    if schedule == "naive":
        return float(microbatches * (stages - 1))
    order = build(schedule, stages=stages, microbatches=microbatches, chunks=chunks)
    parts = order.placement.stages / stages / order.placement.pipes
    unit = 1 / (3 * parts)
    trace = simulate(order, Durations(forward=unit, backward_input=unit, backward_weight=unit))
    return max(0.0, trace.makespan - microbatches)
