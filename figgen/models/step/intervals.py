"""Sets of moments as sorted, disjoint intervals: union, difference, length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Intervals: TypeAlias = tuple[Floats, Floats]
"""Starts and ends."""


def union(starts: Sequence[float] | Floats, ends: Sequence[float] | Floats) -> Intervals:
    """The moments within any of the intervals; empty ones and touching ones vanish."""
    first, last = np.asarray(starts, dtype=np.float64), np.asarray(ends, dtype=np.float64)
    some = last > first
    order = np.argsort(first[some], kind="stable")
    first, last = first[some][order], np.maximum.accumulate(last[some][order])
    if not len(first):
        return first, last
    opens = np.concatenate(([True], first[1:] > last[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return first[opens], last[closes]


def together(*sets: Intervals) -> Intervals:
    """The moments within any of the sets."""
    return union(np.concatenate([s[0] for s in sets]), np.concatenate([s[1] for s in sets]))


def within(some: Intervals, start: float, end: float) -> Intervals:
    """The moments of a set from `start` to `end`."""
    return union(np.clip(some[0], start, end), np.clip(some[1], start, end))


def outside(some: Intervals, start: float, end: float) -> Intervals:
    """The moments from `start` to `end` that are not in the set."""
    inner = within(some, start, end)
    return union(np.concatenate(([start], inner[1])), np.concatenate((inner[0], [end])))


def without(some: Intervals, other: Intervals) -> Intervals:
    """The moments of the first set that are not in the second."""
    if not len(some[0]):
        return some
    start, end = float(some[0][0]), float(some[1][-1])
    # What is in neither, and what is in the second, are all that has to be taken away.
    rest = outside(some, start, end)
    return outside(together(rest, within(other, start, end)), start, end)


def length(some: Intervals) -> float:
    """How long all intervals last."""
    return float(np.sum(some[1] - some[0]))
