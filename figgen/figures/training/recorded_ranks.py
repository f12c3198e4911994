"""The recordings of two ranks on one axis of time, which tells who waits for whom."""

from __future__ import annotations

from collections.abc import Sequence

from figgen.catalog.recorded_ranks import RecordedSpans, Span, recorded_ranks
from figgen.charts import Named, Slot, Timeline
from figgen.registry import figure
from figgen.units import format_quantity

DRAWN_AS_ONE_S = 0.5e-3
"""Operators closer than this are drawn as one."""


@figure("recorded-ranks")
def recorded_ranks_side_by_side() -> Timeline:
    """Two recorded steps of two ranks under DDP: what each computes, and when it's in a call."""
    ranks = recorded_ranks()
    slots: list[Slot] = []
    values: dict[str, Named] = {}
    for rank, found in enumerate(ranks):
        for start, end in _joined(found.operators_s, DRAWN_AS_ONE_S):
            slots.append(_slot(2 * rank, "computing", "series-1", (start, end)))
        for step, span in enumerate(_calls_by_step(found), 1):
            slots.append(_slot(2 * rank + 1, "all-reduces", "series-2", span))
            values[f"rank_{rank}_step_{step}"] = Named(span[1] - span[0], "s")
    lanes = [f"rank {rank} {does}" for rank in range(len(ranks)) for does in ("computes", "sends")]
    return Timeline(
        lanes=tuple(lanes),
        slots=tuple(slots),
        end=max(found.steps_s[-1][1] for found in ranks),
        time_label="time since rank 0 began",
        time_unit="s",
        values=values,
    )


def _slot(lane: int, what: str, role: str, span: Span) -> Slot:
    lasts_s = span[1] - span[0]
    return Slot(
        lane=lane,
        start=span[0],
        end=span[1],
        role=role,
        label=what if role == "series-2" else "",
        detail=f"{what}, {format_quantity(lasts_s, 's', 'time')}",
    )


def _calls_by_step(found: RecordedSpans) -> list[Span]:
    """Return the time from the start of a step's first call to the end of its last."""
    own = [
        [call for call in found.calls_s if start <= call[0] < end] for start, end in found.steps_s
    ]
    return [(min(call[0] for call in calls), max(call[1] for call in calls)) for calls in own]


def _joined(spans: Sequence[Span], gap_s: float) -> list[Span]:
    found: list[Span] = []
    for start, end in spans:
        if found and start - found[-1][1] < gap_s:
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return found
