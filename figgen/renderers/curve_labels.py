"""Places the labels of a chart of curves before anything is drawn.

A line is named at its right end, next to the plot. Lines that end together are named where they are
apart, on the plot, because a name next to a point that several lines share tells nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from figgen.charts import Curves, Mark, Series
from figgen.renderers.markup import text_width, wrapped
from figgen.renderers.placing import (
    Places,
    Point,
    Rect,
    Spot,
    around,
    covered,
    obstacles,
    place,
    points_of,
    spread,
    squares,
)
from figgen.renderers.scale import ScaledAxis

LINE_PX = 15
LEADER_PX = 14
STEP_PX = 8.0
"""Distance between the sample points by which labels avoid a line."""
TOGETHER_PX = 9
FREE_PX = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFrame:
    """The rectangle of a plot and the data range that it shows."""

    x: ScaledAxis
    y: ScaledAxis
    box: Rect

    def pixel(self, a: float, b: float) -> Point:
        """The position in px of a point of the data."""
        wide, high = self.box.right - self.box.left, self.box.bottom - self.box.top
        return self.box.left + self.x.share(a) * wide, self.box.bottom - self.y.share(b) * high


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A series or horizontal rule to label, with the points that it runs through.

    `series` is the index of the series, None for a rule.
    """

    series: int | None
    lines: tuple[str, ...]
    role: str
    trace: tuple[Point, ...]

    @property
    def size(self) -> Point:
        return max(map(text_width, self.lines)), LINE_PX * len(self.lines)

    @property
    def end(self) -> Point:
        return max(self.trace)


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Lines of text in a rectangle, and the corners of their leader line, if any."""

    lines: tuple[str, ...]
    role: str
    rect: Rect
    leader: tuple[Point, ...] = ()
    dotted: bool = False
    on_plot: bool = False


def places(frame: LabelFrame, series: Series) -> list[Point]:
    """The points of a series in px; NaN for points that cannot be drawn."""
    return [
        frame.pixel(a, b)
        if math.isfinite(a)
        and math.isfinite(b)
        and (a > 0 or not frame.x.logarithmic)
        and (b > 0 or not frame.y.logarithmic)
        else (math.nan, math.nan)
        for a, b in zip(series.x, series.y, strict=True)
    ]


def corners(frame: LabelFrame, series: Series) -> list[Point]:
    """The corners of a series' line; a step line holds its value until the next point."""
    points = places(frame, series)
    if series.style != "steps":
        return points
    treads = ((x, y) for (_, y), (x, _) in pairwise(points))
    return [*points[:1], *chain.from_iterable(zip(treads, points[1:], strict=True))]


def trace(frame: LabelFrame, series: Series) -> tuple[Point, ...]:
    """Return closely spaced points on the visible part of a series."""
    turns = corners(frame, series)
    if series.style != "points":
        turns = [point for pair in pairwise(turns) for point in between(*pair)] + turns[-1:]
    box = frame.box.grown(0.5)
    return tuple(point for point in turns if box.contains(Rect(*point, *point)))


def between(start: Point, end: Point) -> list[Point]:
    """Return closely spaced points on a line, without its end."""
    length = math.hypot(end[0] - start[0], end[1] - start[1])
    if not math.isfinite(length):
        return [start]
    pieces = max(1, math.ceil(length / STEP_PX))
    return [
        (
            start[0] + (end[0] - start[0]) * piece / pieces,
            start[1] + (end[1] - start[1]) * piece / pieces,
        )
        for piece in range(pieces)
    ]


def names(chart: Curves, frame: LabelFrame, label_px: float) -> list[Name]:
    """Return the names to place: visible series, then horizontal rules."""
    found = [
        Name(
            series=index,
            lines=tuple(wrapped(series.name, label_px)),
            role=series.role,
            trace=points,
        )
        for index, series in enumerate(chart.series)
        if (points := trace(frame, series))
    ]
    for rule in chart.rules:
        if rule.axis == "y" and frame.y.shows(rule.at):
            ends = (frame.pixel(x, rule.at) for x in (frame.x.low, frame.x.high))
            line = tuple(between(*ends))
            last = (frame.box.right, line[0][1])
            lines = tuple(wrapped(rule.label, label_px))
            found.append(Name(series=None, lines=lines, role=rule.role, trace=(*line, last)))
    return found


def crowded(found: Sequence[Name], frame: LabelFrame) -> list[Name]:
    """Return names of lines that end near a different line's end, or far from the plot's edge."""

    def together(one: Name, other: Name) -> bool:
        aside, down = one.end[0] - other.end[0], one.end[1] - other.end[1]
        return one is not other and abs(aside) < FREE_PX and abs(down) < TOGETHER_PX

    return [
        name
        for name in found
        if name.end[0] < frame.box.right - FREE_PX or any(together(name, n) for n in found)
    ]


def inside(
    wanting: Iterable[Name], found: Sequence[Name], frame: LabelFrame, taken: Sequence[Rect]
) -> dict[Name, Label]:
    """Return labels on the plot, for names with a free position closest to their own line."""
    labels: dict[Name, Label] = {}
    rects = [rect.grown(4) for rect in taken]
    for name in wanting:
        others = points_of(p for other in found if other is not name for p in other.trace)
        spot = _apart(name, others, frame, rects)
        if spot:
            rects.append(spot.rect.grown(4))
            labels[name] = Label(lines=name.lines, role=name.role, rect=spot.rect, on_plot=True)
    return labels


def _apart(name: Name, others: Places, frame: LabelFrame, taken: Sequence[Rect]) -> Spot | None:
    """Return a free position next to a line, where the line is furthest from the others."""
    own = points_of(name.trace)
    clearance = _clearance(own, others)
    blocked = np.concatenate([obstacles(taken), squares(others, 9), squares(own, 2.5)])
    # Far from others first, and among equals the middle of the line, away from its ends.
    middle = np.abs(own[:, 0] - own[:, 0].mean())
    order = np.lexsort((middle, -np.minimum(clearance, 60).round(-1)))
    within = frame.box.grown(-2)
    for at in order[:60]:
        if clearance[at] < LINE_PX:
            break
        spot = place(name.trace[at], name.size, blocked, within, distances=(6, 9))
        if spot and spot.covered == 0:
            return spot
    return None


def _clearance(own: Places, others: Places) -> Places:
    """Return the distance of each point of a line from the nearest point of any other line."""
    across, down = (own[:, None, axis] - others[None, :, axis] for axis in (0, 1))
    nearest: Places = np.sqrt((across**2 + down**2).min(axis=1, initial=np.inf))
    return nearest


def beside(found: Sequence[Name], box: Rect) -> list[Label]:
    """Return labels in the right margin, moved apart, each with a leader from its line's end."""
    ordered = sorted(found, key=lambda n: (n.end[1], math.fsum(y for _, y in n.trace)))
    sizes = [name.size[1] + 2 for name in ordered]
    wanted = [name.end[1] for name in ordered]
    centres = spread(wanted, sizes, box.top - LINE_PX / 2, box.bottom + LINE_PX / 2)
    labels = []
    for name, centre in zip(ordered, centres, strict=True):
        (x, y), (width, height) = name.end, name.size
        left = box.right + LEADER_PX + 2
        leader = ((min(x + 5, box.right + 2), y), (box.right + 2, y), (left - 4, centre))
        rect = Rect(left, centre - height / 2, left + width, centre + height / 2)
        far = x < box.right - 2 * LEADER_PX
        labels.append(Label(lines=name.lines, role=name.role, rect=rect, leader=leader, dotted=far))
    return labels


def beside_marks(
    marks: Sequence[Mark], frame: LabelFrame, taken: Sequence[Rect], label_px: float
) -> list[Label]:
    """Labels near ringed points; a leader line connects labels that are further away."""
    places = [frame.pixel(mark.x, mark.y) for mark in marks]
    rects = [*taken, *(around(place, 7) for place in places)]
    labels: list[Label] = []
    for mark, at in zip(marks, places, strict=True):
        lines = tuple(wrapped(mark.label, label_px))
        size = max(map(text_width, lines)), LINE_PX * len(lines)
        spot = place(at, size, obstacles(rects), frame.box.grown(4))
        if spot is None:
            left = min(max(at[0] + 8, frame.box.left), frame.box.right - size[0])
            rect = Rect(left, at[1] - size[1] / 2, left + size[0], at[1] + size[1] / 2)
            spot = Spot(rect, 8, covered(rect, obstacles(rects)))
        rects.append(spot.rect)
        leader: tuple[Point, ...] = ()
        if spot.distance > 16:
            near = _nearest(spot.rect, at)
            long = math.hypot(near[0] - at[0], near[1] - at[1])
            start = tuple(c + (n - c) * 6 / long for c, n in zip(at, near, strict=True))
            leader = ((start[0], start[1]), near)
        labels.append(
            Label(lines=lines, role=mark.role, rect=spot.rect, leader=leader, on_plot=True)
        )
    return labels


def _nearest(rect: Rect, point: Point) -> Point:
    return (
        min(max(point[0], rect.left), rect.right),
        min(max(point[1], rect.top), rect.bottom),
    )
