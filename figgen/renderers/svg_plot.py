"""Curves as inline SVG: lines labeled at their ends or where they are far apart, in two shapes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from figgen.charts import Curves
from figgen.renderers.curve_labels import LINE_PX, LabelFrame, corners, places
from figgen.renderers.curve_plan import (
    GAP_PX,
    SAMPLE_PX,
    SLIM,
    WIDE,
    CurvePlan,
    Shape,
    plan,
    upright,
)
from figgen.renderers.fluid import Drawing, fluid
from figgen.renderers.markup import element, text_width
from figgen.renderers.placing import Rect
from figgen.renderers.scale import fitting
from figgen.renderers.svg_canvas import Look, Markers, Stroke, Words, clipping, strokes, texts

# Shapes distinguish series without color; the order alternates dissimilar filled shapes.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
MOST_MARKERS = 14
MARKER_PX, POINT_PX, RING_PX = 7, 8, 9
DASHES, RULE_DASHES, FAR_DASHES = (7, 4), (5, 3), (1, 3)
RULE_PX = 1.2


def render_curves(chart: Curves, figure_id: str) -> str:
    """Draw lines, points, rules and marks, each with its name next to it.

    Anything outside the axes' limits is clipped.
    """
    wide = _draw(chart, plan(chart, WIDE), WIDE, f"{figure_id}--w")
    slim = _draw(chart, plan(chart, SLIM), SLIM, f"{figure_id}--n")
    return fluid("curves", wide, slim)


def _draw(chart: Curves, made: CurvePlan, shape: Shape, prefix: str) -> Drawing:
    """Draw all layers from the grid at the bottom to the text on top."""
    within = Rect(0, 0, shape.width, made.height)
    markers, clip = Markers(prefix), f"{prefix}--clip"
    body = "".join(
        (
            strokes([*_grid(made.frame), *_ticks(made.frame), *_level(chart, made)], within),
            *(
                _series(chart, index, made.frame, within, markers, clip)
                for index in reversed(range(len(chart.series)))
            ),
            *_rings(chart, made.frame, markers),
            strokes(_leaders(made), within),
            *_symbols(chart, made, markers),
            strokes(_upright(chart, made), within),
            texts(_words(chart, made, shape)),
        )
    )
    if f"#{clip}" in body:
        body += clipping(clip, made.frame.box)
    return Drawing(shape.width, round(made.height, 6), element("g", body, stroke_linejoin="round"))


def _shown(frame: LabelFrame) -> tuple[tuple[float, str], ...]:
    """Return the ticks below the plot whose labels fit."""
    return fitting(frame.x, frame.box.right - frame.box.left)


def _grid(frame: LabelFrame) -> Iterator[Stroke]:
    box = frame.box
    for value, _ in frame.y.ticks:
        _, y = frame.pixel(frame.x.low, value)
        yield Stroke([(box.left, y), (box.right, y)], "grid")
    for value, _ in _shown(frame) if frame.x.logarithmic else ():
        x, _ = frame.pixel(value, frame.y.low)
        yield Stroke([(x, box.top), (x, box.bottom)], "grid")


def _ticks(frame: LabelFrame) -> Iterator[Stroke]:
    """Draw tick marks, longer ones at labels, and the edge of the plot."""
    box, shown = frame.box, [value for value, _ in _shown(frame)]
    silent = [value for value, _ in frame.x.ticks if value not in shown]
    for value in (*shown, *silent, *frame.x.minor):
        x, _ = frame.pixel(value, frame.y.low)
        yield Stroke([(x, box.bottom), (x, box.bottom + (5 if value in shown else 3))], "muted")
    yield Stroke([(box.left, box.bottom), (box.right, box.bottom)], "muted")


def _level(chart: Curves, made: CurvePlan) -> Iterator[Stroke]:
    """Draw rules across the plot, and a piece of each line of the key."""
    frame, box = made.frame, made.frame.box
    for rule in chart.rules:
        if rule.axis == "y" and frame.y.shows(rule.at):
            _, y = frame.pixel(frame.x.low, rule.at)
            yield Stroke([(box.left, y), (box.right, y)], rule.role, RULE_PX, RULE_DASHES)
    for (x, y), name, _ in made.key:
        ends = [(x, y + LINE_PX / 2), (x + SAMPLE_PX, y + LINE_PX / 2)]
        if name.series is None:
            yield Stroke(ends, name.role, RULE_PX, RULE_DASHES)
        elif (style := chart.series[name.series].style) != "points":
            yield Stroke(ends, name.role, 2, DASHES if style == "dashed" else ())


def _series(
    chart: Curves, index: int, frame: LabelFrame, within: Rect, markers: Markers, clip: str
) -> str:
    """Draw a line and its markers."""
    series, points = chart.series[index], places(frame, chart.series[index])
    seen = [frame.x.shows(a) and frame.y.shows(b) for a, b in zip(series.x, series.y, strict=True)]
    outside = any(math.isfinite(x) and not ok for ok, (x, _) in zip(seen, points, strict=True))
    clipped = f"url(#{clip})" if outside else None
    dotted = series.style == "points"
    spots = [at for at, ok in enumerate(seen) if ok] if dotted else _spots(seen, index)
    line = Stroke(corners(frame, series), series.role, 2, DASHES * (series.style == "dashed"))
    drawn = "" if dotted else strokes([line], within, clipped)
    if shape := _marker(chart, index):
        look = Look(shape, POINT_PX if dotted else MARKER_PX, series.role)
        drawn += markers.at([points[at] for at in spots], look, clipped)
    return element("g", drawn, data_series=str(index)) if drawn else ""


def _marker(chart: Curves, index: int) -> str:
    """Return one shape per role; a single line and step lines need none."""
    series = chart.series[index]
    roles = list(dict.fromkeys(s.role for s in chart.series))
    marked = series.style == "points" or (len(chart.series) > 1 and series.style != "steps")
    return MARKERS[roles.index(series.role) % len(MARKERS)] if marked else ""


def _spots(seen: Sequence[bool], index: int) -> list[int]:
    """Return the points with a marker: all of few, some of many, not at a neighbor's markers."""
    visible = [at for at, ok in enumerate(seen) if ok]
    if len(visible) <= MOST_MARKERS:
        return visible
    return [visible[int(len(visible) * (part + 0.2 + 0.3 * (index % 3)) / 5)] for part in range(5)]


def _rings(chart: Curves, frame: LabelFrame, markers: Markers) -> Iterator[str]:
    for mark in chart.marks:
        look = Look("o", RING_PX, "paper", mark.role, 2)
        yield element("g", markers.at([frame.pixel(mark.x, mark.y)], look), class_="mark")


def _leaders(made: CurvePlan) -> Iterator[Stroke]:
    for label in made.labels:
        if label.leader:
            yield Stroke(label.leader, label.role, 1, FAR_DASHES if label.dotted else ())


def _symbols(chart: Curves, made: CurvePlan, markers: Markers) -> Iterator[str]:
    """Draw the markers of the key, each in the middle of its piece of line."""
    shown = (
        (Look(shape, MARKER_PX, name.role), (x + SAMPLE_PX / 2, y + LINE_PX / 2))
        for (x, y), name, _ in made.key
        if name.series is not None and (shape := _marker(chart, name.series))
    )
    for look, alike in groupby(shown, key=itemgetter(0)):
        yield markers.at([place for _, place in alike], look)


def _upright(chart: Curves, made: CurvePlan) -> Iterator[Stroke]:
    """Draw rules down the plot, each from its label above."""
    box = made.frame.box
    for rule, flag in zip(upright(chart, made.frame.x), made.flags, strict=True):
        ends = [(flag.at, box.top - LINE_PX * (flag.row + 1)), (flag.at, box.bottom)]
        yield Stroke(ends, rule.role, RULE_PX, RULE_DASHES)


def _words(chart: Curves, made: CurvePlan, shape: Shape) -> Iterator[Words]:
    frame, box = made.frame, made.frame.box
    for value, text in frame.y.ticks:
        y = frame.pixel(frame.x.low, value)[1]
        yield Words((box.left - GAP_PX, y), text, "muted", "right")
    for line, text in enumerate(made.above):
        yield Words((0, LINE_PX * (line + 0.5)), text)
    for value, text in _shown(frame):
        x = frame.pixel(value, frame.y.low)[0]
        yield Words((x, box.bottom + 14), text, "muted", "center")
    half = max(map(text_width, made.below)) / 2
    middle = min(max((box.left + box.right) / 2, half), shape.width - half)
    for line, text in enumerate(made.below):
        yield Words((middle, box.bottom + 14 + LINE_PX * (1.4 + line)), text, align="center")
    for rule, flag in zip(upright(chart, frame.x), made.flags, strict=True):
        x, align = (flag.at - 5, "right") if flag.leftwards else (flag.at + 5, "left")
        y = box.top - LINE_PX * (flag.row + 0.5) - 1
        yield Words((x, y), rule.label, align=align)
    for label in made.labels:
        for line, text in enumerate(label.lines):
            place = (label.rect.left, label.rect.top + LINE_PX * (line + 0.5))
            yield Words(place, text, halo=label.on_plot)
    for (x, y), _, text in made.key:
        yield Words((x + SAMPLE_PX + 6, y + LINE_PX / 2), text)
