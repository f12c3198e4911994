"""Writes schedules as one line of actions per rank."""

from __future__ import annotations

from figgen.models.pipeline.schedules import Placement, Schedule, contiguous, parse_order


def of_orders(
    *orders: str,
    placement: Placement | None = None,
    microbatches: int = 1,
    overlapped: tuple[str, ...] = (),
) -> Schedule:
    """Return the schedule of these orders, `0F0 0B0` for rank 0 and so on."""
    return Schedule(
        name="by hand",
        placement=placement or contiguous(len(orders)),
        microbatches=microbatches,
        orders=tuple(map(parse_order, orders)),
        overlapped=frozenset(parse_order(" ".join(overlapped))),
    )
