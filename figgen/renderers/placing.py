"""Places labels so that they overlap neither each other nor the data.

All positions are pixels with y growing downward.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Point: TypeAlias = tuple[float, float]
Places: TypeAlias = NDArray[np.float64]

DISTANCES = (8, 16, 28, 44, 64)
# Right, left, then around: the directions of a label from its point.
DIRECTIONS = ((1, 0), (-1, 0), (0.7, -1), (-0.7, -1), (0.7, 1), (-0.7, 1), (0, -1), (0, 1))


class Rect(NamedTuple):
    """A rectangle by its edges."""

    left: float
    top: float
    right: float
    bottom: float

    def contains(self, other: Rect) -> bool:
        """Return whether `other` is inside this rectangle, edges included."""
        return (
            self.left <= other.left
            and self.top <= other.top
            and self.right >= other.right
            and self.bottom >= other.bottom
        )

    def grown(self, by: float) -> Rect:
        """Return the same rectangle with a margin."""
        return Rect(self.left - by, self.top - by, self.right + by, self.bottom + by)


class Spot(NamedTuple):
    """A position for a label: its distance from the anchor, and the obstacles' area it covers."""

    rect: Rect
    distance: float
    covered: float


def around(point: Point, half: float) -> Rect:
    """Return the square around a point."""
    return Rect(point[0] - half, point[1] - half, point[0] + half, point[1] + half)


def points_of(points: Iterable[Point]) -> Places:
    """Return points as rows of an array."""
    return np.array(list(points), dtype=np.float64).reshape(-1, 2)


def squares(points: Places, half: float) -> Places:
    """Return the squares around points, as obstacles."""
    return np.hstack([points - half, points + half])


def obstacles(rects: Iterable[Rect]) -> NDArray[np.float64]:
    """Return rectangles as rows of an array, in the form that `covered` needs."""
    return np.array(list(rects), dtype=np.float64).reshape(-1, 4)


def covered(rect: Rect, taken: NDArray[np.float64]) -> float:
    """Return the area of `rect` that obstacles cover; overlapping obstacles count several times."""
    width = np.minimum(rect.right, taken[:, 2]) - np.maximum(rect.left, taken[:, 0])
    height = np.minimum(rect.bottom, taken[:, 3]) - np.maximum(rect.top, taken[:, 1])
    return float((np.maximum(width, 0) * np.maximum(height, 0)).sum())


def spread(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Return centers for labels of `sizes`, in the given order, as near as possible to `wanted`.

    They do not overlap, lie between `low` and `high` if they fit, and have the least possible sum
    of squared shifts. After subtracting the room of the labels before it, each position only must
    not be smaller than the previous one, a problem that pooling adjacent violators solves.
    """
    before = [0.0, *accumulate(sizes)]
    means: list[float] = []
    counts: list[int] = []
    for want, size, room in zip(wanted, sizes, before, strict=False):
        mean, count = want - size / 2 - room, 1
        while means and means[-1] > mean:
            mean = (means[-1] * counts[-1] + mean * count) / (counts[-1] + count)
            count += counts.pop()
            means.pop()
        means.append(mean)
        counts.append(count)
    ceiling = max(low, high - before[-1])
    free = [m for mean, n in zip(means, counts, strict=True) for m in [mean] * n]
    return [
        min(max(start, low), ceiling) + room + size / 2
        for start, room, size in zip(free, before, sizes, strict=False)
    ]


def place(
    anchor: Point,
    size: tuple[float, float],
    taken: NDArray[np.float64],
    within: Rect,
    distances: Sequence[float] = DISTANCES,
) -> Spot | None:
    """Return the nearest free position for a label next to `anchor`, or the one that covers least.

    Returns None if no place lies `within`.
    """
    best: Spot | None = None
    for distance in distances:
        for direction in DIRECTIONS:
            found = _beside(anchor, size, distance, direction)
            if not within.contains(found):
                continue
            spot = Spot(found, distance, covered(found, taken))
            if spot.covered == 0:
                return spot
            if best is None or spot.covered < best.covered:
                best = spot
    return best


def _beside(anchor: Point, size: tuple[float, float], distance: float, way: Point) -> Rect:
    """Return a label whose nearest edge or corner is `distance` from the anchor."""
    reach = distance / math.hypot(*way)
    x, y = anchor[0] + way[0] * reach, anchor[1] + way[1] * reach
    left = x - size[0] / 2 + (math.copysign(size[0] / 2, way[0]) if way[0] else 0)
    top = y - size[1] / 2 + (math.copysign(size[1] / 2, way[1]) if way[1] else 0)
    return Rect(left, top, left + size[0], top + size[1])


class Flag(NamedTuple):
    """The label of a vertical line: its row above the plot, the line's x, and its direction."""

    row: int
    at: float
    leftwards: bool


def flags(lines: Sequence[float], sizes: Sequence[float], high: float) -> list[Flag]:
    """Return a label for every vertical line, next to its top, so that no line crosses a label.

    A line ends at its label's row, and a label is in a row above all lines that it spans. Labels
    are right of their line unless that is past `high`.
    """
    placed: dict[int, tuple[Flag, Rect]] = {}
    order = sorted(range(len(lines)), key=lambda i: (lines[i] + sizes[i] > high, -lines[i]))
    for index in order:
        at, size = lines[index], sizes[index]
        leftwards = at + size > high
        start = at - size if leftwards else at
        reached = [p.row for i, (p, _) in placed.items() if start < lines[i] < start + size]
        row = max(reached, default=-1) + 1
        spans = [(p.row, r) for p, r in placed.values()]
        while any(n == row and r.left < start + size and start < r.right for n, r in spans):
            row += 1
        placed[index] = Flag(row, at, leftwards), Rect(start, row, start + size, row + 1)
    return [placed[index][0] for index in range(len(lines))]
