"""Strokes, markers and words of a plot as lean SVG: neighbours say once what they share.

All places are pixels with y growing downwards, written to a tenth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from figgen import theme
from figgen.renderers.markup import TEXT, element, escape
from figgen.renderers.placing import Point, Rect

ANCHORS = {"left": None, "center": "middle", "right": "end"}
THIRD, HALF, DIAGONAL = 1 / 3, 1 / 2, math.sqrt(2)
# Corners of markers that fill a square from -1 to 1.
CORNERS: dict[str, tuple[Point, ...]] = {
    "s": ((-1, 1), (1, 1), (1, -1), (-1, -1)),
    "^": ((0, -1), (-1, 1), (1, 1)),
    "v": ((0, 1), (1, -1), (-1, -1)),
    "D": ((0, DIAGONAL), (DIAGONAL, 0), (0, -DIAGONAL), (-DIAGONAL, 0)),
    "P": (
        (-THIRD, 1), (THIRD, 1), (THIRD, THIRD), (1, THIRD), (1, -THIRD), (THIRD, -THIRD),
        (THIRD, -1), (-THIRD, -1), (-THIRD, -THIRD), (-1, -THIRD), (-1, THIRD), (-THIRD, THIRD),
    ),
    "X": (
        (-HALF, 1), (0, HALF), (HALF, 1), (1, HALF), (HALF, 0), (1, -HALF),
        (HALF, -1), (0, -HALF), (-HALF, -1), (-1, -HALF), (-HALF, 0), (-1, HALF),
    ),
    "p": tuple(
        (-math.sin(turn * math.tau / 5), -math.cos(turn * math.tau / 5)) for turn in range(5)
    ),
}  # fmt: skip
CIRCLE = "o"
MANY = 128
"""Of how many points a line is looked at for those that change nothing."""


class Stroke(NamedTuple):
    """A line through points."""

    points: Sequence[Point]
    role: str
    width: float = 1.0
    dashes: tuple[float, ...] = ()


class Words(NamedTuple):
    """One line of text; `place` is its start, middle or end, half-way up its small letters.

    With a `halo` it can be read across a grid line.
    """

    place: Point
    text: str
    role: str = "ink"
    align: str = "left"
    halo: bool = False


class Look(NamedTuple):
    """A marker: its shape, its size and what it is filled and outlined with."""

    shape: str
    size: float
    fill: str
    outline: str = "paper"
    outline_width: float = 1.2

    @property
    def stroke(self) -> dict[str, Any]:
        return {
            "stroke": theme.colour(self.outline),
            "stroke_width": short(self.outline_width),
            "stroke_linejoin": None if self.shape == CIRCLE else "miter",
        }


def strokes(drawn: Iterable[Stroke], within: Rect, clip: str | None = None) -> str:
    """Lines, cut where they leave the rectangle `within`; neighbours that look the same are one."""
    written = ""
    for (role, width, dashes), alike in groupby(drawn, key=lambda stroke: stroke[1:]):
        path = "".join(_path(stroke.points, within) for stroke in alike)
        if path:
            written += element(
                "path", d=path, clip_path=clip, fill="none",
                stroke_dasharray=",".join(map(short, dashes)) or None,
                stroke=theme.colour(role), stroke_width=None if width == 1 else short(width),
            )  # fmt: skip
    return written


def texts(lines: Iterable[Words]) -> str:
    """Lines of text; neighbours share a group, but one with a halo has its own."""
    written = ""
    for (role, align, halo), run in groupby(lines, key=lambda words: words[2:]):
        colour, anchor, alike = theme.colour(role), ANCHORS[align], list(run)
        if halo or len(alike) == 1:
            each = (_text(words, text_anchor=anchor, fill=colour) for words in alike)
            written += "".join(map(_haloed, each) if halo else each)
        else:
            written += element("g", "".join(map(_text, alike)), fill=colour, text_anchor=anchor)
    return written


def _haloed(text: str) -> str:
    """Text over a broad outline of itself in the page's colour."""
    paper = theme.colour("paper")
    return element("g", text, paint_order="stroke", stroke=paper, stroke_width="4")


def _text(words: Words, **look: str | None) -> str:
    # A third of the size below the middle is where the baseline of any font makes it look centred.
    x, y = words.place[0], words.place[1] + 0.35 * TEXT
    return element("text", escape(words.text), x=short(x), y=short(y), **look)


@dataclass
class Markers:
    """The markers of a drawing, whose ids begin with `prefix`; a look is defined where it is first
    used."""

    prefix: str
    _known: dict[Look, str] = field(default_factory=dict)

    def at(self, places: Iterable[Point], look: Look, clip: str | None = None) -> str:
        """One marker at each of the places."""
        shown = [{"x": short(x), "y": short(y)} for x, y in places]
        if not shown:
            return ""
        written = ""
        if look not in self._known:
            self._known[look] = f"{self.prefix}--{len(self._known) + 1}"
            d = _circle(look.size / 2) if look.shape == CIRCLE else _corners(look)
            shape = element("path", id=self._known[look], d=d, **look.stroke)
            written = element("defs", shape)
        uses = _uses(shown, look, f"#{self._known[look]}")
        return written + (element("g", uses, clip_path=clip) if clip else uses)


def _uses(shown: Sequence[dict[str, str]], look: Look, target: str) -> str:
    # Not plain `href`: Material's script rewrites that on every element, and fails on <use>.
    colours = {"fill": theme.colour(look.fill), **look.stroke}
    if len(shown) == 1:
        return element("use", **shown[0], **colours, **{"xlink:href": target})
    return element(
        "g", "".join(element("use", **at, **{"xlink:href": target}) for at in shown), **colours
    )


def clipping(name: str, box: Rect) -> str:
    """What lies outside a rectangle is not shown where something refers to `name`."""
    wide, high = short(box.right - box.left), short(box.bottom - box.top)
    shown = element("rect", x=short(box.left), y=short(box.top), width=wide, height=high)
    return element("defs", element("clipPath", shown, id=name))


def short(value: float) -> str:
    """To a tenth, without one that says nothing; a half is one on every machine."""
    shown = f"{round(value, 6):.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown


def _at(point: Point) -> str:
    return f"{short(point[0])} {short(point[1])}"


def _corners(look: Look) -> str:
    first, *others = (_at((x * look.size / 2, y * look.size / 2)) for x, y in CORNERS[look.shape])
    return f"M{first}L{' '.join(others)}z"


def _circle(radius: float) -> str:
    """A circle of eight curves, which no renderer draws other than round."""
    eighth = math.tau / 8
    reach = 4 / 3 * math.tan(eighth / 4)

    def spot(turn: int, along: float = 0.0) -> str:
        across, down = math.sin(turn * eighth), math.cos(turn * eighth)
        return _at((radius * (across + along * down), radius * (down - along * across)))

    curves = (f"{spot(turn, reach)} {spot(turn + 1, -reach)} {spot(turn + 1)}" for turn in range(8))
    return f"M{spot(0)}C{' '.join(curves)}z"


def _path(points: Sequence[Point], within: Rect) -> str:
    """A line through points, broken where one is missing and where it leaves the rectangle."""
    written, last = "", None
    for one, other in pairwise(_thinned(points) if len(points) >= MANY else points):
        if seen := _cut(one, other, within):
            start, last = seen[0] == last, seen[1]
            written += f" {_at(last)}" if start else f"M{_at(seen[0])}L{_at(last)}"
    return written


def _thinned(points: Sequence[Point]) -> list[Point]:
    """Without those that lie, to a twentieth of a pixel, on the way from the last that is kept."""
    kept, ahead = [points[0]], points[1]
    for before, point in pairwise(points[1:]):
        if not _aside(point, kept[-1], ahead) < 0.05:
            kept.append(before)
            ahead = point
    return [*kept, points[-1]]


def _aside(point: Point, start: Point, ahead: Point) -> float:
    """How far a point lies from the line through two others."""
    across, down = ahead[0] - start[0], ahead[1] - start[1]
    area = across * (point[1] - start[1]) - down * (point[0] - start[0])
    return abs(area) / (math.hypot(across, down) or math.nan)


def _cut(one: Point, other: Point, within: Rect) -> tuple[Point, Point] | None:
    """What lies within a rectangle of the way from one point to another, if anything does."""
    begin, end = 0.0, 1.0
    for a, b, low, high in (
        (one[0], other[0], within.left, within.right),
        (one[1], other[1], within.top, within.bottom),
    ):
        if low <= a <= high and low <= b <= high:
            continue
        if math.isnan(a + b) or min(a, b) > high or max(a, b) < low:
            return None
        enters, leaves = sorted(((low - a) / (b - a), (high - a) / (b - a)))
        begin, end = max(begin, enters), min(end, leaves)
    if begin > end:
        return None
    (x0, y0), (x1, y1) = one, other
    start = (x0 + begin * (x1 - x0), y0 + begin * (y1 - y0)) if begin > 0 else one
    stop = (x0 + end * (x1 - x0), y0 + end * (y1 - y0)) if end < 1 else other
    return start, stop
