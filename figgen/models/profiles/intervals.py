"""Sets of moments as sorted, disjoint intervals, with their union, difference and length."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import TypeAlias

Intervals: TypeAlias = tuple[list[float], list[float]]
"""Starts and ends."""


def union(starts: Sequence[float], ends: Sequence[float]) -> Intervals:
    """Return the moments within any interval; touching intervals merge, empty ones vanish."""
    some = [at for at in range(len(starts)) if ends[at] > starts[at]]
    some.sort(key=lambda at: starts[at])
    opened: list[float] = []
    closed: list[float] = []
    for at in some:
        if not closed or starts[at] > closed[-1]:
            opened.append(starts[at])
            closed.append(ends[at])
        elif ends[at] > closed[-1]:
            closed[-1] = ends[at]
    return opened, closed


def together(sets: Sequence[Intervals]) -> Intervals:
    """Return the moments within any of the sets."""
    starts: list[float] = []
    ends: list[float] = []
    for some in sets:
        starts.extend(some[0])
        ends.extend(some[1])
    return union(starts, ends)


def within(some: Intervals, start: float, end: float) -> Intervals:
    """Return the moments of a set from `start` to `end`."""
    return union(
        [min(max(moment, start), end) for moment in some[0]],
        [min(max(moment, start), end) for moment in some[1]],
    )


def outside(some: Intervals, start: float, end: float) -> Intervals:
    """Return the moments from `start` to `end` that are not in the set."""
    inner = within(some, start, end)
    return union([start, *inner[1]], [*inner[0], end])


def without(some: Intervals, other: Intervals) -> Intervals:
    """Return the moments of the first set that are not in the second."""
    if not some[0]:
        return some
    start, end = some[0][0], some[1][-1]
    # Removing the moments in neither set and those in the second leaves the difference.
    rest = outside(some, start, end)
    return outside(together([rest, within(other, start, end)]), start, end)


def length(some: Intervals) -> float:
    """Return the total length of all intervals."""
    return fsum(some[1][at] - some[0][at] for at in range(len(some[0])))
