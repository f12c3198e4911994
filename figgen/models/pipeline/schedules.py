"""Pipeline schedules by name, and everything that describes one.

These are orders only; `figgen.models.pipeline.simulate` computes when an action runs.
"""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Protocol

from figgen.errors import InputError, unknown
from figgen.models.pipeline.action import ACTION_NAMES, Action, Order, parse_order
from figgen.models.pipeline.dualpipe import dualpipe, dualpipev
from figgen.models.pipeline.one_f_one_b import (
    gpipe,
    interleaved_1f1b,
    looped_bfs,
    microbatch_group_size,
    naive,
    one_f_one_b,
)
from figgen.models.pipeline.order import Schedule, check_orders, peak_in_flight
from figgen.models.pipeline.stage_placement import (
    Placement,
    bidirectional,
    contiguous,
    looping,
    v_shape,
)
from figgen.models.pipeline.v_schedules import v_half, v_min
from figgen.models.pipeline.zero_bubble import zb1p, zb2p, zbv

__all__ = [
    "ACTION_NAMES",
    "CHUNKED",
    "MOST_VISITS",
    "SCHEDULES",
    "TITLES",
    "USUAL_CHUNKS",
    "Action",
    "Order",
    "Placement",
    "Schedule",
    "ScheduleFunction",
    "bidirectional",
    "build",
    "build_short",
    "check_orders",
    "contiguous",
    "looping",
    "microbatch_group_size",
    "parse_order",
    "peak_in_flight",
    "schedule_title",
    "v_shape",
]


class ScheduleFunction(Protocol):
    """Orders P stages and M microbatches; its default for `chunks` is the usual V."""

    def __call__(self, stages: int, microbatches: int, chunks: int = ...) -> Schedule: ...


SCHEDULES: dict[str, ScheduleFunction] = {
    "naive": naive,
    "gpipe": gpipe,
    "looped-bfs": looped_bfs,
    "1f1b": one_f_one_b,
    "interleaved-1f1b": interleaved_1f1b,
    "zb1p": zb1p,
    "zb2p": zb2p,
    "zbv": zbv,
    "v-half": v_half,
    "v-min": v_min,
    "dualpipe": dualpipe,
    "dualpipev": dualpipev,
}


USUAL_CHUNKS: dict[str, int] = {
    name: inspect.signature(function).parameters["chunks"].default
    for name, function in SCHEDULES.items()
}
"""The usual V of each schedule, the default of its function."""

CHUNKED = ("looped-bfs", "interleaved-1f1b", "zb1p")
"""Schedules that take any number of chunks; the others only take their usual V."""


TITLES: dict[str, str] = {
    "naive": "naive",
    "gpipe": "GPipe",
    "looped-bfs": "looped BFS",
    "1f1b": "1F1B",
    "interleaved-1f1b": "interleaved 1F1B",
    "zb1p": "ZB1P (ZB-H1)",
    "zb2p": "ZB2P (ZB-H2)",
    "zbv": "ZBV",
    "v-half": "V-Half",
    "v-min": "V-Min",
    "dualpipe": "DualPipe",
    "dualpipev": "DualPipeV",
}
"""The titles of schedules that readers see."""


def schedule_title(name: str, chunks: int) -> str:
    """Return the title of schedule `name` with V `chunks`, by which ZB1P becomes another one."""
    title = TITLES[name]
    return f"interleaved {title}" if name == "zb1p" and chunks > 1 else title


MOST_VISITS = 2**17
"""Most visits of stages by microbatches, P·M·V: 64 ranks, 512 microbatches, 4 chunks."""

MOST_STAGES = 512


# Figures show the same few schedules, and a setup needs its own many times.
@lru_cache(maxsize=256, typed=True)
def build(name: str, *, stages: int, microbatches: int, chunks: int | None = None) -> Schedule:
    """Return the schedule `name` for P `stages` (ranks), M `microbatches`, V `chunks` per rank.

    V defaults to the schedule's usual value: 2 if it cuts a rank's share of the model, else 1.
    DualPipe keeps two uncut copies, so its V is 1. Raises InputError for an unknown name, for sizes
    that the schedule cannot have, and for more than `MOST_STAGES` stages or `MOST_VISITS` visits of
    them.
    """
    if name not in SCHEDULES:
        raise unknown("schedule", name, SCHEDULES)
    if chunks is None:
        chunks = USUAL_CHUNKS[name]
    _check_effort(name, stages, microbatches, chunks)
    return SCHEDULES[name](stages, microbatches, chunks)


# Every rank and stage of a setup asks for it.
@lru_cache(maxsize=256, typed=True)
def build_short(
    name: str, *, stages: int, microbatches: int, chunks: int | None = None
) -> Schedule:
    """Return a schedule that holds as much as that of `build`, of fewer microbatches if possible.

    Its placement, `in_flight` and `most_in_flight` are equal. 1F1B holds the same microbatches
    again and again between warm-up and drain, so a thousand of them need not be listed. Raises
    InputError where `build` does.
    """
    if name in SCHEDULES and chunks is None:
        chunks = USUAL_CHUNKS[name]
    if chunks is not None:
        _check_effort(name, stages, microbatches, chunks)
    fewer = _enough_microbatches(name, stages, microbatches)
    return build(name, stages=stages, microbatches=fewer, chunks=chunks)


def _enough_microbatches(name: str, stages: int, microbatches: int) -> int:
    """Return a number after which a schedule repeats what it holds, or else `microbatches`.

    A rank of 1F1B runs at most P forwards before a backward. Interleaved, it runs fewer than 2·P +
    V·group ahead and then repeats itself after V·group, so three groups and the remainder show
    everything.
    """
    if not all(isinstance(size, int) and size > 0 for size in (stages, microbatches)):
        return microbatches
    if name == "1f1b":
        return min(stages, microbatches)
    if name != "interleaved-1f1b":
        return microbatches
    group = microbatch_group_size(stages, microbatches)
    for fewer in range(3 * group + microbatches % group, microbatches, group):
        if microbatch_group_size(stages, fewer) == group:
            return fewer
    return microbatches


def _check_effort(name: str, stages: int, microbatches: int, chunks: int) -> None:
    """Raise InputError for sizes that would take minutes.

    Invalid sizes pass; the schedule itself refuses them.
    """
    if not all(isinstance(size, int) for size in (stages, microbatches, chunks)):
        return
    if stages > MOST_STAGES:
        raise InputError(
            f"stages of schedule {name!r}",
            expected=f"at most {MOST_STAGES:,}",
            got=stages,
            key="stages",
        )
    if stages * microbatches * chunks > MOST_VISITS:
        raise InputError(
            f"stages · microbatches · chunks of schedule {name!r}",
            expected=f"at most {MOST_VISITS:,}",
            got=stages * microbatches * chunks,
            key="microbatches",
        )
