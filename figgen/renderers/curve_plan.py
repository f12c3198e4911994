"""The layout of a chart of curves in one shape: the positions of plot and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from figgen.charts import Curves, Rule
from figgen.renderers.curve_labels import (
    LEADER_PX,
    LINE_PX,
    Label,
    LabelFrame,
    Name,
    beside,
    beside_marks,
    between,
    crowded,
    inside,
    names,
)
from figgen.renderers.fluid import NARROW
from figgen.renderers.markup import COLUMN, text_width, wrapped
from figgen.renderers.placing import Flag, Point, Rect, around, flags
from figgen.renderers.scale import ScaledAxis, curve_scales

GAP_PX = 8
SAMPLE_PX = 24
MARK_PX = 3
"""The width that a mark's label adds to the desired width of a plot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The measures from which the layout of a chart of curves follows.

    They are the size of the plot, the width of a line of its labels, and the plot width, without
    marks, from which there is room for names next to it.
    """

    width: float
    plot_height: float
    label_px: float
    least_px: float


WIDE = Shape(width=COLUMN, plot_height=320, label_px=170, least_px=300)
SLIM = Shape(width=NARROW, plot_height=250, label_px=92, least_px=190)


class KeyEntry(NamedTuple):
    """An entry of the key: its position and the name that it explains."""

    at: Point
    name: Name
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePlan:
    """The layout without the data; `above` and `below` are the lines that name the axes."""

    frame: LabelFrame
    height: float
    above: tuple[str, ...]
    below: tuple[str, ...]
    labels: tuple[Label, ...]
    flags: tuple[Flag, ...]
    key: tuple[KeyEntry, ...]


def plan(chart: Curves, shape: Shape) -> CurvePlan:
    """Lay out with room next to the plot for all names, then only for names that need it.

    Names that would leave too little of the plot go to a key above it.
    """
    first = _frame(chart, shape, _lines_beside(chart, shape))
    found = names(chart, first, shape.label_px)
    marked = _mark_labels(chart, first, found, shape)
    on_plot = inside(crowded(found, first), found, first, _blocks(chart, first, marked))
    kept = [name not in on_plot for name in found]
    still_beside = [line for name, ok in zip(found, kept, strict=True) if ok for line in name.lines]
    frame, key = _frame(chart, shape, still_beside), list[KeyEntry]()
    if still_beside and frame.box.right - frame.box.left < _least(chart, shape):
        key = _key([name for name, ok in zip(found, kept, strict=True) if ok], chart, shape)
        frame = _frame(chart, shape, [], key[-1].at[1] + LINE_PX)
    again = names(chart, frame, shape.label_px)
    marked = _mark_labels(chart, frame, again, shape)
    inner = inside(
        [name for name, ok in zip(again, kept, strict=True) if not ok],
        again,
        frame,
        _blocks(chart, frame, marked),
    )
    outer = [] if key else beside([name for name in again if name not in inner], frame.box)
    labels = (*outer, *inner.values(), *marked)
    below = wrapped(frame.x.label, shape.width)
    bottom = frame.box.bottom + 14 + LINE_PX * (1.4 + len(below))
    return CurvePlan(
        frame=frame,
        height=max([bottom - LINE_PX / 2, *(label.rect.bottom for label in labels)]),
        above=tuple(wrapped(frame.y.label, shape.width)),
        below=tuple(below),
        labels=labels,
        flags=tuple(_flags(chart, frame, shape)),
        key=tuple(key),
    )


def _least(chart: Curves, shape: Shape) -> float:
    """Return the plot width from which there is room for names next to it."""
    return shape.least_px + MARK_PX * len(chart.marks)


def _key(found: Sequence[Name], chart: Curves, shape: Shape) -> list[KeyEntry]:
    """Return the key's entries in rows below the name of the vertical axis."""
    x, y = 0.0, LINE_PX * len(wrapped(chart.y.label, shape.width)) + 4.0
    entries = []
    for name in found:
        text = " ".join(name.lines)
        wide = SAMPLE_PX + 6 + text_width(text)
        if x and x + wide > shape.width:
            x, y = 0.0, y + LINE_PX + 2
        entries.append(KeyEntry((x, y), name, text))
        x += wide + 14
    return entries


def _lines_beside(chart: Curves, shape: Shape) -> list[str]:
    level = [rule.label for rule in chart.rules if rule.axis == "y"]
    every = [*(series.name for series in chart.series), *level]
    return [line for name in every for line in wrapped(name, shape.label_px)]


def _frame(
    chart: Curves, shape: Shape, lines_beside: Sequence[str], key_px: float = 0.0
) -> LabelFrame:
    """Return the plot's rectangle, with just enough room for ticks and for names next to it."""
    x, y = curve_scales(chart)
    left = max([text_width(text) for _, text in y.ticks], default=0.0) + GAP_PX + 2
    widest = max([text_width(line) + LEADER_PX + 4 for line in lines_beside], default=0.0)
    right = shape.width - max([widest, *(text_width(text) / 2 for _, text in x.ticks[-1:])])
    frame = LabelFrame(x=x, y=y, box=Rect(left, 0, right, shape.plot_height))
    rows = max([flag.row + 1 for flag in _flags(chart, frame, shape)], default=0)
    named = LINE_PX * len(wrapped(y.label, shape.width))
    top = max(named, key_px) + LINE_PX * rows + GAP_PX
    return replace(frame, box=Rect(left, top, right, top + shape.plot_height))


def upright(chart: Curves, x: ScaledAxis) -> list[Rule]:
    """Return the rules that run down the plot."""
    return [rule for rule in chart.rules if rule.axis == "x" and x.shows(rule.at)]


def _flags(chart: Curves, frame: LabelFrame, shape: Shape) -> list[Flag]:
    shown = upright(chart, frame.x)
    lines = [frame.pixel(rule.at, frame.y.low)[0] for rule in shown]
    return flags(lines, [text_width(rule.label) + GAP_PX for rule in shown], shape.width)


def _upright_blocks(chart: Curves, frame: LabelFrame) -> list[Rect]:
    at = (frame.pixel(rule.at, frame.y.low)[0] for rule in upright(chart, frame.x))
    return [Rect(x - 2, frame.box.top, x + 2, frame.box.bottom) for x in at]


def _mark_labels(
    chart: Curves, frame: LabelFrame, found: Sequence[Name], shape: Shape
) -> list[Label]:
    if not chart.marks:
        return []
    blocks = [around(point, 3) for name in found for point in name.trace]
    taken = [*blocks, *_upright_blocks(chart, frame)]
    return beside_marks(chart.marks, frame, taken, shape.label_px)


def _blocks(chart: Curves, frame: LabelFrame, labels: Sequence[Label]) -> list[Rect]:
    """Return obstacles for names besides lines: rings, their labels and vertical rules."""
    rings = [around(frame.pixel(mark.x, mark.y), 8) for mark in chart.marks]
    leaders = [around(p, 3) for label in labels if label.leader for p in between(*label.leader)]
    return [*rings, *leaders, *(label.rect for label in labels), *_upright_blocks(chart, frame)]
