"""Read what a figure's SVG draws, in order: shapes and labels in px, in the light palette.

Every element, attribute, style and transform is either drawn, or known to draw nothing, or an
error: a drawing for paper leaves nothing out in silence.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as etree
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from matplotlib.path import Path
from matplotlib.transforms import Affine2D

from figgen import theme
from figgen.errors import InputError
from figgen.paper.drawing import EM, Mark, PaintedPath, PaintedText, PaperDrawing
from figgen.paper.svg_path import path_of, rectangle
from figgen.paper.widths import LEAST_TEXT_PT, text_pt, too_narrow

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
INHERITED = {
    "fill": "var(--fig-ink)", "stroke": "none", "stroke-width": "1", "stroke-dasharray": "",
    "stroke-linejoin": "miter", "font-size": "12", "font-weight": "400", "text-anchor": "start",
    "fill-opacity": "1", "paint-order": "normal",
}  # fmt: skip
"""Inherited properties with their initial values."""
OWN = {"opacity", "display", "transform", "clip-path"}
SILENT = {"class", "id", "role", "aria-label", "pointer-events", "preserveAspectRatio", "style"}
"""Attributes that draw nothing by themselves; classes and places in styles are handled here."""
BOX = {"x", "y", "width", "height"}
PLACES = {
    "svg": {"viewBox", "width", "height", "font-size"},
    "g": set[str](),
    "rect": BOX | {"rx"},
    "path": {"d"},
    "text": {"x", "y"},
    "tspan": {"x"},
    "use": {"x", "y", "href", LINK},
}
UNDRAWN = {"defs", "title", "desc", "style"}

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pen:
    """How and where an element is drawn, with what it inherits."""

    given: Mapping[str, str] = field(default_factory=lambda: dict(INHERITED))
    x: float = 0.0
    y: float = 0.0
    opacity: float = 1.0
    within: Path | None = None


def read(svg: str, width_in: float) -> PaperDrawing:
    """Return the marks of a figure's SVG in the shape that suits a width in inches.

    Raises InputError if no shape has legible text at that width, and for unsupported features of
    SVG.
    """
    root = etree.fromstring(_namespaced(svg))
    wide, narrow = _sizes(root)
    shape, (width, height) = "wide", wide
    if text_pt(EM * 12, width, width_in) < LEAST_TEXT_PT:
        shape, (width, height) = ("narrow", narrow) if narrow else ("wide", wide)
        if text_pt(EM * 12, width, width_in) < LEAST_TEXT_PT:
            raise too_narrow(EM * 12, width, width_in)
    reader = _MarkReader(root=root, shape=shape)
    pen = reader.pen(root, Pen())
    marks = tuple(mark for child in root for mark in reader.marks(child, pen))
    return PaperDrawing(width=width, height=height, marks=marks)


def natural_px(svg: str) -> float:
    """Return the width in px for which a figure is drawn."""
    return _sizes(etree.fromstring(_namespaced(svg)))[0][0]


def _namespaced(svg: str) -> str:
    """Add the namespaces that an XML parser requires of SVG and HTML does not."""
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return svg if "xmlns=" in svg.split(">", 1)[0] else svg.replace("<svg", f"<svg {spaces}", 1)


def _sizes(root: etree.Element) -> tuple[Point, Point | None]:
    """Return the size of the wide shape, and of the narrow one if there is one."""
    shapes = {child.get("class"): child for child in root if child.tag == f"{SVG}svg"}
    if "wide" in shapes:
        return _size(shapes["wide"]), _size(shapes["narrow"]) if "narrow" in shapes else None
    slim = re.search(r"--shape:(\d+)/(\d+)", root.get("style", ""))
    return _size(root), (float(slim[1]), float(slim[2])) if slim else None


def _size(element: etree.Element) -> Point:
    _, _, width, height = map(float, element.get("viewBox", "").split())
    return width, height


@dataclass(kw_only=True)
class _MarkReader:
    """Reads the marks of elements of one drawing in one of its shapes."""

    root: etree.Element
    shape: str
    known: Mapping[str, etree.Element] = field(init=False)
    above: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.known = {str(e.get("id")): e for e in self.root.iter() if e.get("id")}
        self.above = frozenset(_classes(self.root))

    def marks(self, element: etree.Element, around: Pen) -> Iterator[Mark]:
        """Yield the marks of an element and its children."""
        kind = element.tag.removeprefix(SVG)
        if kind in UNDRAWN:
            return
        if kind not in PLACES:
            raise _unknown(f"<{kind}>")
        if kind == "svg" and element.get("class") in ("wide", "narrow"):
            if element.get("class") != self.shape:
                return
            element.attrib.pop("display", None)
        pen = self.pen(element, around)
        if pen.given["display"] == "none":
            return
        match kind:
            case "g" | "svg":
                for child in element:
                    yield from self.marks(child, pen)
            case "use":
                name = element.get("href") or element.get(LINK) or ""
                x, y = _at(element)
                moved = _moved(pen, x, y)
                yield from self.marks(self.known[name.removeprefix("#")], moved)
            case "rect":
                box = [float(element.get(name, 0)) for name in ("width", "height", "rx")]
                yield from self._shapes(rectangle(*_at(element), *box), pen)
            case "path":
                yield from self._shapes(path_of(element.get("d", "")), pen)
            case "text":
                yield from _labels(element, pen)
            case _:
                raise _unknown(f"<{kind}> outside of text")

    def pen(self, element: etree.Element, around: Pen) -> Pen:
        """Return the pen for an element. Raises InputError for unknown attributes."""
        kind = element.tag.removeprefix(SVG)
        for name in element.attrib:
            known = name in INHERITED or name in OWN | SILENT | PLACES[kind]
            if not known and not name.startswith("data-"):
                raise _unknown(f"{name} of <{kind}>")
        given = {name: element.get(name, value) for name, value in around.given.items()}
        given |= {"display": element.get("display", "inline")}
        for selector, declared in theme.rules().items():
            *above, own = selector.replace(".", "").split()
            if own in _classes(element) and self.above.issuperset(above):
                given |= dict(part.split(":", 1) for part in declared.split(";") if part)
        within = around.within
        if clip := element.get("clip-path"):
            within = self._clip(clip, around)
        moved = _moved(around, *self._shift(element))
        return Pen(
            given=given,
            x=moved.x,
            y=moved.y,
            opacity=around.opacity * float(element.get("opacity", 1)),
            within=within,
        )

    def _shift(self, element: etree.Element) -> Point:
        """Return an element's shift: from its transform, or in the narrow shape from its style."""
        style = element.get("style", "")
        place = re.fullmatch(r"--x:(-?[\d.]+)px;--y:(-?[\d.]+)px", style)
        if (
            style
            and not place
            and element is not self.root
            and not re.fullmatch(r"--at:\d+", style)
        ):
            raise _unknown(f"style {style}")
        if place and self.shape == "narrow":
            return float(place[1]), float(place[2])
        transform = element.get("transform")
        if not transform:
            return 0.0, 0.0
        shift = re.fullmatch(r"translate\((-?[\d.]+)[ ,](-?[\d.]+)\)", transform)
        if not shift:
            raise _unknown(f"transform {transform}")
        return float(shift[1]), float(shift[2])

    def _named(self, reference: str) -> etree.Element:
        found = re.fullmatch(r"url\(#([^)]+)\)", reference)
        if not found or found[1] not in self.known:
            raise _unknown(reference)
        return self.known[found[1]]

    def _clip(self, reference: str, pen: Pen) -> Path:
        (box,) = self._named(reference)
        x, y = _at(box)
        size = float(box.get("width", 0)), float(box.get("height", 0))
        return rectangle(x + pen.x, y + pen.y, *size)

    def _shapes(self, path: Path, pen: Pen) -> Iterator[PaintedPath]:
        """Yield the shape of a path; a pattern is drawn as tiles, clipped to the path."""
        placed = _shifted(path, pen.x, pen.y)
        fill, stroke = pen.given["fill"], _ink(pen.given["stroke"])
        if fill.startswith("url("):
            yield from self._tiles(self._named(fill), placed, pen)
            fill = "none"
        ink = _ink(fill)
        if ink is None and stroke is None:
            return
        yield PaintedPath(
            path=placed,
            fill=ink,
            fill_opacity=float(pen.given["fill-opacity"]),
            stroke=stroke,
            opacity=pen.opacity,
            width=float(pen.given["stroke-width"]),
            dashes=tuple(map(float, re.findall(r"[\d.]+", pen.given["stroke-dasharray"]))),
            join=pen.given["stroke-linejoin"],
            within=pen.within,
        )

    def _tiles(self, pattern: etree.Element, path: Path, pen: Pen) -> Iterator[PaintedPath]:
        """Yield the background of a pattern and its lines over the bounding box of a path."""
        if set(pattern.attrib) != {"id", "width", "height", "patternUnits"}:
            raise _unknown(f"pattern with {sorted(pattern.attrib)}")
        wide, high = float(pattern.get("width", 0)), float(pattern.get("height", 0))
        (left, top), (right, bottom) = path.get_extents().get_points()
        across = range(int((left - pen.x) // wide), int((right - pen.x) // wide) + 1)
        down = range(int((top - pen.y) // high), int((bottom - pen.y) // high) + 1)
        plain = Pen(opacity=pen.opacity * float(pen.given["fill-opacity"]))
        for part in pattern:
            if part.tag == f"{SVG}rect":
                ground = _ink(self.pen(part, plain).given["fill"])
                yield PaintedPath(path=path, fill=ground, opacity=plain.opacity, within=pen.within)
                continue
            if not part.get("d"):
                continue
            (line,) = self.marks(part, plain)
            if not isinstance(line, PaintedPath):
                raise _unknown("a pattern of texts")
            tiles = [
                _shifted(line.path, pen.x + wide * i, pen.y + high * j)
                for i in across
                for j in down
            ]
            yield PaintedPath(
                path=Path.make_compound_path(*tiles),
                stroke=line.stroke,
                opacity=line.opacity,
                width=line.width,
                within=path,
            )


def _labels(element: etree.Element, pen: Pen) -> Iterator[PaintedText]:
    """Yield each line of a text, with the element's anchor and ink."""
    stroke = _ink(pen.given["stroke"])
    halo = None
    if stroke is not None:
        if pen.given["paint-order"] != "stroke":
            raise _unknown("outlined letters")
        halo = stroke, float(pen.given["stroke-width"])
    lines = []
    if element.text and element.text.strip():
        lines.append((element.text, *_at(element)))
    for part in element:
        kind = part.tag.removeprefix(SVG)
        if kind == "title":
            continue
        if kind != "tspan" or set(part.attrib) != {"x"} or len(part):
            raise _unknown(f"<{kind}> in a text with {sorted(part.attrib)}")
        lines.append((part.text or "", float(part.get("x", 0)), float(element.get("y", 0))))
    if any(part.tail and part.tail.strip() for part in element):
        raise _unknown("text after a part of it")
    for text, x, y in lines:
        if text.strip():
            yield PaintedText(
                text=text,
                x=x + pen.x,
                y=y + pen.y,
                anchor=pen.given["text-anchor"],
                size=float(pen.given["font-size"]),
                bold=pen.given["font-weight"] in ("600", "700", "bold"),
                ink=_ink(pen.given["fill"]) or "none",
                opacity=pen.opacity,
                halo=halo,
            )


def _at(element: etree.Element) -> Point:
    return float(element.get("x", 0)), float(element.get("y", 0))


def _moved(pen: Pen, x: float, y: float) -> Pen:
    return Pen(given=pen.given, x=pen.x + x, y=pen.y + y, opacity=pen.opacity, within=pen.within)


def _shifted(path: Path, x: float, y: float) -> Path:
    return Affine2D().translate(x, y).transform_path(path)


def _classes(element: etree.Element) -> list[str]:
    return element.get("class", "").split()


def _ink(text: str) -> str | None:
    """Return a color of the light palette; None for "none"."""
    if text == "none":
        return None
    found = re.fullmatch(r"var\((--[\w-]+)\)", text)
    if not found or found[1] not in theme.variables():
        raise _unknown(f"color {text}")
    return theme.variables()[found[1]].light


def _unknown(what: str) -> InputError:
    return InputError("the drawing for paper", expected="what figgen draws in SVG", got=what)
