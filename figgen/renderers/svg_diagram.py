"""Boxes and the arrows between them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from figgen.charts import Box, Diagram, DiagramLink
from figgen.errors import unknown
from figgen.renderers.diagram_routes import BoxPlace, Point, route, runs_down
from figgen.renderers.fluid import NARROW, Drawing, fluid, moved, reflowing
from figgen.renderers.markup import (
    COLUMN,
    MIN_TEXT,
    TEXT,
    arrow,
    element,
    figure,
    number,
    words,
    wrapped,
)
from figgen.theme import colour, soft

LINE = 16
LARGEST_UNIT = 72
"""The most px per grid unit: always downward, and across if a diagram is as wide as a phone."""

Span: TypeAlias = tuple[float, float]

SLIM = NARROW * TEXT / MIN_TEXT
"""Width in px that a phone has for a diagram with its text at the smallest size."""

APART, BELOW = 4, 18
"""Least px of empty space between two parts of a diagram, and between them on a phone."""

TALLEST = 800
"""The largest height in px at which parts below each other can still be compared."""


def unit(chart: Diagram) -> float:
    """Return px per grid unit down, and across on a phone: never more than `LARGEST_UNIT`."""
    return min(LARGEST_UNIT, COLUMN / chart.width)


def render_diagram(chart: Diagram) -> str:
    """Draw frames first, then arrows, then boxes, so that no line crosses text.

    A diagram fills the column. An arrow runs straight if its boxes face each other, around anything
    between them, and otherwise with one bend each way. On a phone a diagram is drawn narrower if
    its boxes still hold their text; otherwise parts that are side by side with nothing between them
    are placed below each other. Raises InputError for a link to a box that does not exist.
    """
    if chart.width * LARGEST_UNIT <= SLIM:
        return fluid("diagram", _whole(chart, COLUMN / chart.width), _whole(chart, unit(chart)))
    places, routes = arranged(chart, COLUMN / chart.width)
    width, height = _size(chart, COLUMN / chart.width, routes)
    parts = _parts(places, routes)
    rows = _stacked(parts)
    tall = (rows[-1][1] + 1) * (height + BELOW) - BELOW
    fitting = max(right - left for left, right in parts) <= SLIM and tall <= TALLEST
    if width <= SLIM or len(parts) == 1 or not fitting:
        whole = _drawn(chart, places, routes, (-math.inf, math.inf))
        return figure("diagram", width, height, whole)
    drawn = [
        moved(_drawn(chart, places, routes, part), (0, 0), (x - part[0], line * (height + BELOW)))
        for part, (x, line) in zip(parts, rows, strict=True)
    ]
    used = [x + right - left for (left, right), (x, _) in zip(parts, rows, strict=True)]
    slim = max(NARROW, max(used) + 1)
    return reflowing("diagram", (width, height), (slim, tall), "".join(drawn))


def _whole(chart: Diagram, across: float) -> Drawing:
    """Return the whole drawing with a given number of px per grid unit across."""
    places, routes = arranged(chart, across)
    body = _drawn(chart, places, routes, (-math.inf, math.inf))
    return Drawing(*_size(chart, across, routes), body)


def _size(chart: Diagram, across: float, routes: Sequence[list[Point]]) -> Point:
    """Return width and height in px; a link around its neighbors may leave the grid."""
    corners = [point for line in routes for point in line]
    width = max([chart.width * across, *(x + 7 for x, _ in corners)]) + 1
    return width, max([chart.height * unit(chart), *(y + 7 for _, y in corners)]) + 1


def _drawn(
    chart: Diagram, places: Mapping[str, BoxPlace], routes: Sequence[list[Point]], part: Span
) -> str:
    """Return the parts of the drawing within a range of x."""
    inside = [box for box in chart.boxes if part[0] <= places[box.name].left <= part[1]]
    links = [
        _link(link, corners)
        for link, corners in zip(chart.links, routes, strict=True)
        if part[0] <= corners[0][0] <= part[1]
    ]
    frames = [_frame(box, places[box.name]) for box in inside if box.frame]
    boxes = [_box(box, places[box.name]) for box in inside if not box.frame]
    return "".join([*frames, *(line for line, _ in links), *boxes, *(text for _, text in links)])


def _parts(places: Mapping[str, BoxPlace], routes: Sequence[list[Point]]) -> list[Span]:
    """Return the ranges of x that boxes and links fill, left to right, with gaps between them."""
    spans = [(place.left, place.right) for place in places.values()]
    spans += [(min(x for x, _ in line), max(x for x, _ in line)) for line in routes]
    parts: list[Span] = []
    for left, right in sorted(spans):
        if parts and left - parts[-1][1] < APART:
            parts[-1] = parts[-1][0], max(parts[-1][1], right)
        else:
            parts.append((left, right))
    return parts


def _stacked(parts: Sequence[Span]) -> list[tuple[float, int]]:
    """Return the left edge and the row of each part if only `SLIM` px are available."""
    rows, x, line = [], 0.0, 0
    for left, right in parts:
        if x and x + right - left > SLIM:
            x, line = 0.0, line + 1
        rows.append((x, line))
        x += right - left + BELOW
    return rows


def arranged(chart: Diagram, across: float) -> tuple[dict[str, BoxPlace], list[list[Point]]]:
    """Return the rectangle of every box by name, and the corners of every link, in px.

    `across` is px per grid unit from left to right.
    """
    places = {box.name: _place(box, across, unit(chart)) for box in chart.boxes}
    for link in chart.links:
        for end in (link.source, link.target):
            if end not in places:
                raise unknown("box", end, places)
    solid = [places[box.name] for box in chart.boxes if box.role and not box.frame]
    ends = [(places[link.source], places[link.target]) for link in chart.links]
    down = runs_down(ends)
    return places, [
        route(source, target, solid, lane, down)
        for (source, target), lane in zip(ends, _lanes(chart.links), strict=True)
    ]


def _place(box: Box, across: float, down: float) -> BoxPlace:
    left, top = box.x * across + 0.5, box.y * down + 0.5
    return BoxPlace(left, top, left + box.width * across, top + box.height * down)


def _rectangle(place: BoxPlace, fill: str, stroke: str, dash: str | None = None) -> str:
    small = min(place.right - place.left, place.bottom - place.top)
    return element(
        "rect",
        x=place.left,
        y=place.top,
        width=place.right - place.left,
        height=place.bottom - place.top,
        rx=min(5, small / 6),
        fill=fill,
        stroke=stroke,
        stroke_dasharray=dash,
    )


def _frame(box: Box, place: BoxPlace) -> str:
    edge = _rectangle(place, fill="none", stroke=colour(box.role), dash="5 3")
    ink = colour("muted")
    lines = [
        words(place.left + 8, place.top + 15 + LINE * at, line, fill=ink)
        for at, line in enumerate(box.lines)
    ]
    return element("g", edge + "".join(lines), class_="surround", data_name=box.name)


def _text(box: Box, place: BoxPlace) -> str:
    """Draw the words of a box without a role, in lines as wide as the box, from its top left."""
    lines = [part for line in box.lines for part in wrapped(line, place.right - place.left)]
    drawn = [words(place.left, place.top + TEXT + LINE * at, s) for at, s in enumerate(lines)]
    return element("g", "".join(drawn), class_="box", data_name=box.name)


def _box(box: Box, place: BoxPlace) -> str:
    if not box.role:
        return _text(box, place)
    x, y = place.centre
    first = y - LINE * (len(box.lines) - 1) / 2 + TEXT * 0.35
    lines = [
        words(
            x,
            first + LINE * at,
            line,
            font_weight="600" if at == 0 and len(box.lines) > 1 else None,
        )
        for at, line in enumerate(box.lines)
    ]
    text = element("g", "".join(lines), text_anchor="middle") if lines else ""
    shape = _rectangle(place, soft(box.role), colour(box.role))
    return element("g", shape + text, class_="box", data_name=box.name)


def _lanes(links: Sequence[DiagramLink]) -> list[float]:
    """Return each link's offset from the middle in px, so that links of a pair are parallel."""
    together = Counter(frozenset((link.source, link.target)) for link in links)
    seen: Counter[frozenset[str]] = Counter()
    lanes = []
    for link in links:
        pair = frozenset((link.source, link.target))
        lanes.append((seen[pair] - (together[pair] - 1) / 2) * 14)
        seen[pair] += 1
    return lanes


def _link(link: DiagramLink, corners: list[Point]) -> tuple[str, str]:
    """Return the arrow and its label separately, since labels are drawn on top."""
    path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in corners)
    ink = colour(link.role)
    heads = arrow(*corners[-2], *corners[-1])
    if link.both_ways:
        heads += arrow(*corners[1], *corners[0])
    line = element("path", d=path, fill="none", stroke=ink, stroke_width=1.5)
    line += element("path", d=heads, fill=ink)
    drawn = element("g", line, class_="link", data_source=link.source, data_target=link.target)
    return drawn, _label(link, corners) if link.label else ""


def _label(link: DiagramLink, corners: list[Point]) -> str:
    """Place a label above a horizontal arrow, next to a vertical one, on the longest bent part."""
    pieces = list(pairwise(corners))
    (x0, y0), (x1, y1) = max(pieces, key=lambda p: abs(p[1][0] - p[0][0]) + abs(p[1][1] - p[0][1]))
    level, bent = y0 == y1, len(corners) > 2
    return words(
        (x0 + x1) / 2 if level or bent else x0 + 7,
        y0 - 5 if level and not bent else (y0 + y1) / 2 + 4,
        link.label,
        text_anchor="middle" if level or bent else None,
        paint_order="stroke",
        stroke=colour("paper"),
        stroke_width=5,
    )
