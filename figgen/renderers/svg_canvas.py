"""Writes lines, markers and text of a plot as compact SVG, in which neighbors share attributes.

All places are pixels with y growing downward, written to a tenth. matplotlib provides the shapes of
markers, clips lines to the picture and simplifies them; its own SVG would take five times as long
to write and clean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from matplotlib.markers import MarkerStyle
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

from figgen import theme
from figgen.renderers.markup import TEXT, element, escape
from figgen.renderers.placing import Point, Rect

ANCHORS = {"left": None, "center": "middle", "right": "end"}
LETTERS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE4: "C", Path.CLOSEPOLY: "z"}
CIRCLE = "o"
THINNED_PX = 0.05
"""The largest distance in px of a simplified line from the points that it omits."""


class Stroke(NamedTuple):
    """A line through points."""

    points: Sequence[Point]
    role: str
    width: float = 1.0
    dashes: tuple[float, ...] = ()


class Words(NamedTuple):
    """One line of text; `place` is its start, middle or end, at half its x-height.

    With a `halo` it can be read across a grid line.
    """

    place: Point
    text: str
    role: str = "ink"
    align: str = "left"
    halo: bool = False


class Look(NamedTuple):
    """A marker: its shape, its size, its fill and its outline."""

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
    """Return lines cut a pixel outside the rectangle `within`; equal-looking neighbors join."""
    written = ""
    for (role, width, dashes), alike in groupby(drawn, key=lambda stroke: stroke[1:]):
        path = "".join(_line(stroke.points, within) for stroke in alike)
        if path:
            written += element(
                "path",
                d=path,
                clip_path=clip,
                fill="none",
                stroke_dasharray=",".join(map(short, dashes)) or None,
                stroke=theme.colour(role),
                stroke_width=None if width == 1 else short(width),
            )
    return written


def texts(lines: Iterable[Words]) -> str:
    """Return lines of text; neighbors share a group, but one with a halo has its own."""
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
    """Return text with a broad outline in the page's color, legible over lines."""
    paper = theme.colour("paper")
    return element("g", text, paint_order="stroke", stroke=paper, stroke_width="4")


def _text(words: Words, **look: str | None) -> str:
    # In any font, text looks centered if its baseline is a third of the size below the middle.
    x, y = words.place[0], words.place[1] + 0.35 * TEXT
    return element("text", escape(words.text), x=short(x), y=short(y), **look)


@dataclass
class Markers:
    """The markers of a drawing, whose ids begin with `prefix`; first uses define looks."""

    prefix: str
    _known: dict[Look, str] = field(default_factory=dict)

    def at(self, places: Iterable[Point], look: Look, clip: str | None = None) -> str:
        """Return one marker at each of the places."""
        shown = [{"x": short(x), "y": short(y)} for x, y in places]
        if not shown:
            return ""
        written = ""
        if look not in self._known:
            self._known[look] = f"{self.prefix}--{len(self._known) + 1}"
            shape = element("path", id=self._known[look], d=_marker(look), **look.stroke)
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
    """Return a clip path called `name`, which hides everything outside a rectangle."""
    wide, high = short(box.right - box.left), short(box.bottom - box.top)
    shown = element("rect", x=short(box.left), y=short(box.top), width=wide, height=high)
    return element("defs", element("clipPath", shown, id=name))


def short(value: float) -> str:
    """Return a number rounded half up to a tenth, without `.0`, equally on every machine."""
    shown = f"{round(value, 6):.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown


def _marker(look: Look) -> str:
    style = MarkerStyle(look.shape)
    # matplotlib's y grows upward, a picture's downward.
    turned = style.get_transform() + Affine2D().scale(look.size, -look.size)
    return _written(style.get_path().transformed(turned))


def _line(points: Sequence[Point], within: Rect) -> str:
    """Return a line through points, broken at missing points and where it leaves the picture."""
    path = Path(points)
    path.simplify_threshold = THINNED_PX
    return _written(path, (within.left, within.top, within.right, within.bottom))


def _written(path: Path, within: tuple[float, float, float, float] | None = None) -> str:
    """Return the commands of a path; a repeated command letter is omitted."""
    written, last, start = "", "", ""
    for numbers, code in path.iter_segments(clip=within, simplify=path.should_simplify):
        letter = LETTERS[code]
        spot = "" if letter == "z" else " ".join(map(short, numbers.tolist()))
        if letter == "M":
            start = f"M{spot}"  # of which nothing is seen before a line leads on
        else:
            written += f"{start}{' ' if letter == last and not start else letter}{spot}"
            start, last = "", letter
    return written
