"""The layout of a bar chart in one shape: the positions of bars and text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from figgen.charts import Bars, Rule
from figgen.renderers.markup import text_width, wrapped
from figgen.renderers.placing import Flag, Rect, flags
from figgen.renderers.scale import ScaledAxis, bar_scale, bar_totals, value_text

LINE_PX = 15
GAP_PX = 8
LABEL_PX = 170
STACK_PX, BETWEEN_PX = 26, 14
GROUPED_PX = 18
SWATCH_PX = 14


class Part(NamedTuple):
    """One segment of a bar in px, with its text."""

    bar: int
    segment: int
    rect: Rect
    length: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BarPlan:
    """Where bars, labels and the key go; `above` puts a bar's label on a line above it.

    If numbers are `told` in the labels, they are not at the ends of the bars.
    """

    width: float
    x: ScaledAxis
    box: Rect
    above: bool
    labels: tuple[tuple[str, ...], ...]
    tops: tuple[float, ...]
    key: tuple[tuple[tuple[float, int], ...], ...]
    flags: tuple[Flag, ...]
    told: bool = False

    def pixel(self, value: float) -> float:
        """Return the position of a value in px, clamped to the plot."""
        share = self.x.share(min(max(value, self.x.low), self.x.high))
        return self.box.left + share * (self.box.right - self.box.left)

    def number_at(self, end: float) -> float:
        """Return the left edge in px of the number of a bar that ends at a value."""
        return (self.pixel(end) if math.isfinite(end) else self.box.left) + 5


def plan(chart: Bars, width: float, *, above: bool) -> BarPlan:
    """Lay the bars out for one shape of the picture.

    If a limit leaves a number no space after its bar's end, all numbers move to the labels: beyond
    the limit a number would contradict its bar, and over the bar it could not be read.
    """
    made = _plan(chart, width, above=above)
    if not (chart.stacked and any(_cramped(chart, made))):
        return made
    told = {bar: value_text(chart.axis, value) for _, value, (bar, _) in ends(chart)}
    labels = tuple(f"{label}, {told[bar]}" for bar, label in enumerate(chart.labels))
    return replace(_plan(replace(chart, labels=labels), width, above=above), told=True)


def _cramped(chart: Bars, made: BarPlan) -> Iterator[bool]:
    """Yield for every number whether a vertical rule runs through it."""
    for end, value, _ in ends(chart):
        at, wide = made.number_at(end), text_width(value_text(chart.axis, value))
        yield any(at - 4 <= flag.at <= at + wide + 5 for flag in made.flags)


def _plan(chart: Bars, width: float, *, above: bool) -> BarPlan:
    x = bar_scale(chart)
    label_px = width if above else LABEL_PX
    labels = tuple(tuple(wrapped(label, label_px)) for label in chart.labels)
    widest = max((text_width(line) for lines in labels for line in lines), default=0.0)
    first = text_width(x.ticks[0][1]) / 2 if x.ticks else 0.0
    left = max(2.0, first) if above else widest + GAP_PX + 6
    values = [value for _, value, _ in ends(chart)]
    room = max((text_width(value_text(chart.axis, value)) for value in values), default=0.0)
    last = text_width(x.ticks[-1][1]) / 2 if x.ticks else 0.0
    right = width - max(room + GAP_PX, last) - 2
    key = _key(chart, 0.0 if above else left, width)
    ruled = [left + x.share(rule.at) * (right - left) for rule in rules(chart, x)]
    placed = flags(ruled, [text_width(r.label) + GAP_PX for r in rules(chart, x)], width)
    top = LINE_PX * (1.4 * len(key) + max((flag.row + 1 for flag in placed), default=0))
    tops, at = [], top + BETWEEN_PX
    for lines in labels:
        # A label next to its bar may be taller than the bar and the gap below it.
        spare = LINE_PX * (len(lines) + 0.4) - thickness(chart) - BETWEEN_PX
        before, after = (LINE_PX * len(lines) + 2, 0.0) if above else (max(spare, 0.0) / 2,) * 2
        tops.append(at + before)
        at += before + thickness(chart) + BETWEEN_PX + after
    return BarPlan(
        width=width,
        x=x,
        box=Rect(left, top, right, at),
        above=above,
        labels=labels,
        tops=tuple(tops),
        key=key,
        flags=tuple(placed),
    )


def rules(chart: Bars, x: ScaledAxis) -> list[Rule]:
    """Return the rules within the visible axis."""
    return [rule for rule in chart.rules if x.shows(rule.at)]


def thickness(chart: Bars) -> float:
    """Return the height of a bar, or of a group of bars."""
    return STACK_PX if chart.stacked else GROUPED_PX * len(chart.segments) - 2


def ends(chart: Bars) -> list[tuple[float, float, tuple[int, float]]]:
    """Return where each value is written (its bar's end), the value, and its bar and offset in px.

    Shares that add up to 1 get no totals, and a missing bar of a group gets no value.
    """
    if chart.stacked:
        middle, totals = STACK_PX / 2, bar_totals(chart)
        if chart.axis.spec.endswith("%") and all(abs(total - 1) < 1e-9 for total in totals):
            return []
        return [(end, end, (bar, middle)) for bar, end in enumerate(totals)]
    return [
        (length, length, (bar, GROUPED_PX * (index + 0.5) - 1))
        for index, segment in enumerate(chart.segments)
        for bar, length in enumerate(segment.lengths)
        if length
    ]


def parts(chart: Bars, made: BarPlan) -> list[Part]:
    """Return each segment of nonzero length as a rectangle."""
    base = made.x.low if made.x.logarithmic else 0.0
    found = []
    for bar, top in enumerate(made.tops):
        reached = 0.0
        for index, segment in enumerate(chart.segments):
            length = segment.lengths[bar]
            if not math.isfinite(length):
                continue
            down = top if chart.stacked else top + GROUPED_PX * index
            high = STACK_PX if chart.stacked else GROUPED_PX - 2
            start = max(reached, base) if chart.stacked else base
            end = reached + length if chart.stacked else length
            reached = end
            low, far = sorted((made.pixel(start), made.pixel(end)))
            if far > low:
                found.append(Part(bar, index, Rect(low, down, far, down + high), length))
    return found


def _key(chart: Bars, left: float, width: float) -> tuple[tuple[tuple[float, int], ...], ...]:
    """Return the rows of the key, with the start of each segment's entry; none for one segment."""
    if len(chart.segments) < 2:
        return ()
    rows: list[list[tuple[float, int]]] = [[]]
    at = left
    for index, segment in enumerate(chart.segments):
        needed = SWATCH_PX + 6 + text_width(segment.name)
        if rows[-1] and at + needed > width:
            rows.append([])
            at = left
        rows[-1].append((at, index))
        at += needed + 18
    return tuple(map(tuple, rows))
