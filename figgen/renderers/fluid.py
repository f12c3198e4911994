"""A picture in two shapes, for the text column and for a phone, in one `<svg>`.

Text cannot shrink, so a picture as wide as the column would have to scroll on a phone. A plot is
drawn twice, and the page's stylesheet shows the shape that fits the figure's box. Parts that are
side by side are drawn once, and the stylesheet moves them below each other. Without it the wide
shape is shown.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple, TypeAlias

from figgen import theme
from figgen.renderers.markup import MIN_TEXT, TEXT, element, number

Point: TypeAlias = tuple[float, float]

NARROW = 340
"""Width in px of the narrow shape: a small phone's screen without margins."""


class Drawing(NamedTuple):
    """Markup with its width and height in px."""

    width: float
    height: float
    body: str


def fluid(kind: str, wide: Drawing, narrow: Drawing, shared: str = "") -> str:
    """Return the root element of a picture with two shapes; `shared` are definitions for both.

    Like `markup.figure` it has no role and no name: the page knows the alternative text.
    """
    width, height = math.ceil(wide.width), math.ceil(wide.height)
    ratios = f"--wide:{width}/{height};--narrow:{_ratio(narrow)}"
    return (
        f'<svg class="fig fig-{kind} fig-fluid" width="{width}" height="{height}" '
        f'font-size="{TEXT}" fill="{theme.colour("ink")}" style="{ratios}">{shared}'
        f"{_shape('wide', wide)}{_shape('narrow', narrow)}</svg>"
    )


def _ratio(drawing: Drawing) -> str:
    return f"{math.ceil(drawing.width)}/{math.ceil(drawing.height)}"


def _shape(name: str, drawing: Drawing) -> str:
    box = f"0 0 {math.ceil(drawing.width)} {math.ceil(drawing.height)}"
    hidden = ' display="none"' if name == "narrow" else ""
    return (
        f'<svg class="{name}" viewBox="{box}" width="100%" height="100%"{hidden}>'
        f"{drawing.body}</svg>"
    )


def moved(content: str, wide: Point, narrow: Point, **attributes: float | str | None) -> str:
    """Return a part of `reflowing` with its positions in the wide and in the narrow shape."""
    place = f"--x:{number(narrow[0])}px;--y:{number(narrow[1])}px" if wide != narrow else None
    shift = f"translate({number(wide[0])} {number(wide[1])})"
    return element("g", content, transform=shift, style=place, **attributes)


def reflowing(kind: str, wide: Point, narrow: Point, body: str) -> str:
    """Return the root element of a picture whose `moved` parts have two positions; sizes in px.

    In the narrow shape the drawing is enlarged by the factor by which its view box would shrink it.
    """
    (width, height), (slim, tall) = map(_whole, (wide, narrow))
    least = math.ceil(width * MIN_TEXT / TEXT), math.ceil(slim * MIN_TEXT / TEXT)
    sizes = f"--wide:{width}px;--narrow:{slim}px;--least:{least[0]}px;--slim:{least[1]}px"
    return (
        f'<svg class="fig fig-{kind} fig-reflow" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" preserveAspectRatio="xMinYMin meet" font-size="{TEXT}" '
        f'fill="{theme.colour("ink")}" '
        f'style="{sizes};--shape:{slim}/{tall};--grow:{width / slim:.6g}">'
        f'<g class="all">{body}</g></svg>'
    )


def _whole(size: Point) -> tuple[int, int]:
    return math.ceil(size[0]), math.ceil(size[1])


def only_wide(svg: str) -> str:
    """Return a picture's wide shape, for a file; a picture with one shape is returned unchanged."""
    found = re.search(r'<svg class="wide" viewBox="([^"]*)"', svg)
    if not found:
        return re.sub(r' style="--[^"]*"', "", svg)
    alone = re.sub(r'<svg class="narrow".*?</svg>', "", svg, count=1, flags=re.S)
    return re.sub(r' style="--wide[^"]*"', f' viewBox="{found[1]}"', alone, count=1)
