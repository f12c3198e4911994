"""Route the arrows between the boxes of a diagram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Point = tuple[float, float]


class BoxPlace(NamedTuple):
    """A box in px."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def centre(self) -> Point:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2


def route(
    source: BoxPlace, target: BoxPlace, solid: Sequence[BoxPlace], lane: float, down: bool
) -> list[Point]:
    """Return the corners of an arrow from edge to edge; bent arrows start downward if `down`."""
    straight = _straight(source, target, lane)
    others = [place for place in solid if place not in (source, target)]
    if straight and not any(_crosses(straight, place) for place in others):
        return straight
    if straight:
        return _around(source, target, others, straight[0][1] == straight[1][1])
    return _bent(source, target, lane, down)


def _straight(source: BoxPlace, target: BoxPlace, lane: float) -> list[Point] | None:
    """Return a straight arrow in the middle of the boxes' overlap, or None."""
    low, high = max(source.top, target.top), min(source.bottom, target.bottom)
    if high - low > abs(lane) * 2 + 4:
        y = (low + high) / 2 + lane
        if source.right <= target.left:
            return [(source.right, y), (target.left, y)]
        if target.right <= source.left:
            return [(source.left, y), (target.right, y)]
    low, high = max(source.left, target.left), min(source.right, target.right)
    if high - low > abs(lane) * 2 + 4:
        x = (low + high) / 2 + lane
        if source.bottom <= target.top:
            return [(x, source.bottom), (x, target.top)]
        if target.bottom <= source.top:
            return [(x, source.top), (x, target.bottom)]
    return None


def _crosses(line: Sequence[Point], place: BoxPlace) -> bool:
    (x0, y0), (x1, y1) = line
    return (
        min(x0, x1) < place.right
        and max(x0, x1) > place.left
        and min(y0, y1) < place.bottom
        and max(y0, y1) > place.top
    )


def _around(
    source: BoxPlace, target: BoxPlace, others: Sequence[BoxPlace], level: bool
) -> list[Point]:
    """Return an arrow around all boxes in between, leaving and entering below (or at the right)."""
    if level:
        low, high = sorted((source.centre[0], target.centre[0]))
        between = [p for p in others if low < p.centre[0] < high and p.top < source.bottom]
        beyond = max(place.bottom for place in (source, target, *between)) + 14
        (x0, _), (x1, _) = source.centre, target.centre
        return [(x0, source.bottom), (x0, beyond), (x1, beyond), (x1, target.bottom)]
    low, high = sorted((source.centre[1], target.centre[1]))
    between = [p for p in others if low < p.centre[1] < high and p.left < source.right]
    beyond = max(place.right for place in (source, target, *between)) + 14
    (_, y0), (_, y1) = source.centre, target.centre
    return [(source.right, y0), (beyond, y0), (beyond, y1), (target.right, y1)]


def _gaps(source: BoxPlace, target: BoxPlace) -> tuple[float, float]:
    """Return the gaps between two boxes, vertical and horizontal; negative if they overlap."""
    down = max(target.top - source.bottom, source.top - target.bottom)
    return down, max(target.left - source.right, source.left - target.right)


def runs_down(ends: Sequence[tuple[BoxPlace, BoxPlace]]) -> bool:
    """Return whether the diagram reads from top to bottom.

    It is decided by how its branches spread, else by the direction of its straight arrows, else by
    which way gives all arrows more room.
    """
    bent = [pair for pair in ends if not _straight(*pair, 0)]
    spread = sum(_spread(place, bent) for place in dict.fromkeys(p for pair in bent for p in pair))
    if spread:
        return spread > 0
    straight = [line for source, target in ends if (line := _straight(source, target, 0))]
    upright = sum(line[0][0] == line[1][0] for line in straight)
    if 2 * upright != len(straight):
        return 2 * upright > len(straight)
    gaps = [_gaps(*pair) for pair in bent]
    return not gaps or min(down for down, _ in gaps) >= min(aside for _, aside in gaps)


def _spread(place: BoxPlace, bent: Sequence[tuple[BoxPlace, BoxPlace]]) -> int:
    """Return 1 if a box's partners are all below (or above), left and right of it; −1 if turned."""
    partners = [(b if a == place else a).centre for a, b in bent if place in (a, b)]
    sides = [
        len({x < place.centre[0] for x, _ in partners}),
        len({y < place.centre[1] for _, y in partners}),
    ]
    return sides[0] - sides[1]


def _bent(source: BoxPlace, target: BoxPlace, lane: float, down: bool) -> list[Point]:
    """Return a bent arrow: halfway in the diagram's direction, across, on; or the other way."""
    (x0, y0), (x1, y1) = source.centre, target.centre
    free_down, free_aside = _gaps(source, target)
    if free_aside < 12 or (down and free_down >= 12):
        start, end = (source.bottom, target.top) if y1 > y0 else (source.top, target.bottom)
        half = (start + end) / 2
        return [(x0 + lane, start), (x0 + lane, half), (x1 + lane, half), (x1 + lane, end)]
    start, end = (source.right, target.left) if x1 > x0 else (source.left, target.right)
    half = (start + end) / 2
    return [(start, y0 + lane), (half, y0 + lane), (half, y1 + lane), (end, y1 + lane)]
