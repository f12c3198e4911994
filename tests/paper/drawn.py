"""What a PDF paints and what an SVG draws, each read by third-party programs.

pypdf reads the PDF's operators, fontTools the SVG's paths. Both become lists of the same marks in
px of the drawing, in painting order.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as etree
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from fontTools.pens.recordingPen import RecordingPen
from fontTools.svgLib.path import parse_path
from pypdf import PdfReader
from pypdf.generic import ContentStream

from figgen import theme

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
SHARES = {"start": 0.0, "middle": 0.5, "end": 1.0}


@dataclass(kw_only=True)
class Painted:
    """A path with its points, or a text at its anchor; colors are `#rrggbb`, or None for none."""

    kind: str
    points: list[tuple[float, float]] = field(default_factory=list)
    fill: str | None = None
    stroke: str | None = None
    width: float = 0.0
    dashes: list[float] = field(default_factory=list)
    text: str = ""
    size: float = 0.0
    advance: float = 0.0
    anchor: str = "start"


def colour(parts: list[Any]) -> str:
    rgb = parts * 3 if len(parts) == 1 else parts
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in rgb)


class Fonts:
    """The fonts of a page: the text of a string and its advance, from the file's tables."""

    def __init__(self, page: Any) -> None:
        self.fonts = {
            name: font.get_object() for name, font in page["/Resources"].get("/Font", {}).items()
        }
        assert all("/ToUnicode" in font for font in self.fonts.values())
        self.letters = {name: self._letters(font) for name, font in self.fonts.items()}
        self.widths = {name: self._widths(font) for name, font in self.fonts.items()}

    def embedded(self) -> bool:
        """Return whether the file contains the outlines of all fonts."""
        found = [font["/DescendantFonts"][0].get_object() for font in self.fonts.values()]
        return all("/FontFile2" in font["/FontDescriptor"].get_object() for font in found)

    @staticmethod
    def _letters(font: Any) -> dict[int, str]:
        table = font["/ToUnicode"].get_object().get_data().decode("latin-1")
        found: dict[int, str] = {}
        for block in re.findall(r"beginbfrange(.*?)endbfrange", table, re.S):
            for low, _, texts in re.findall(r"<(\w+)>\s*<(\w+)>\s*\[(.*?)\]", block, re.S):
                for place, text in enumerate(re.findall(r"<(\w+)>", texts)):
                    found[int(low, 16) + place] = bytes.fromhex(text).decode("utf-16-be")
        assert "beginbfchar" not in table
        return found

    @staticmethod
    def _widths(font: Any) -> dict[int, float]:
        found: dict[int, float] = {}
        listed = list(font["/DescendantFonts"][0].get_object()["/W"])
        while listed:
            first, widths = int(listed.pop(0)), listed.pop(0)
            if isinstance(widths, list):
                found |= {first + place: float(width) for place, width in enumerate(widths)}
            else:
                width = float(listed.pop(0))
                found |= dict.fromkeys(range(first, int(widths) + 1), width)
        return found

    def read(self, name: str, parts: list[Any]) -> tuple[str, float]:
        """Return the text of a `TJ` and its advance in thousandths of its size."""
        text, advance = "", 0.0
        for part in parts:
            if isinstance(part, int | float):
                advance -= float(part)
                continue
            raw = part.original_bytes
            for at in range(0, len(raw), 2):
                code = int.from_bytes(raw[at : at + 2], "big")
                text += self.letters[name][code]
                advance += self.widths[name][code]
        return text, advance


def _painted(now: Painted, points: list[tuple[float, float]], paint: str) -> Painted:
    """Return a path that an operator fills, strokes, or both."""
    fill = None if paint in "Ss" else now.fill
    stroke = None if paint == "f" else now.stroke
    return replace(now, points=points, fill=fill, stroke=stroke)


def of_pdf(data: bytes, width_px: float) -> list[Painted]:
    """Return what the single page of a PDF paints, without its white background."""
    reader = PdfReader(io.BytesIO(data))
    (page,) = reader.pages
    px, high = width_px / float(page.mediabox.width), float(page.mediabox.height)
    fonts = Fonts(page)
    assert fonts.embedded()

    def place(x: Any, y: Any) -> tuple[float, float]:
        return float(x) * px, (high - float(y)) * px

    found: list[Painted] = []
    now = Painted(kind="path")
    stack, shift, font, size = [], (0.0, 0.0), "", 0.0
    points: list[tuple[float, float]] = []
    text, advance = "", 0.0
    for given, operator in ContentStream(page.get_contents(), reader).operations:
        match operator.decode():
            case "q":
                stack.append((now, shift))
                now = replace(now)
            case "Q":
                now, shift = stack.pop()
            case "cm":
                a, b, c, d, x, y = map(float, given)
                assert (abs(a), b, c, abs(d)) == (1, 0, 0, 1)
                shift = shift[0] + x, shift[1] + y
            case "rg" | "g":
                now.fill = colour(given)
            case "RG" | "G":
                now.stroke = colour(given)
            case "w":
                now.width = float(given[0]) * px
            case "d":
                now.dashes = [float(dash) * px for dash in given[0]]
            case "m" | "l" | "c" | "v" | "y":
                points += [place(*given[at : at + 2]) for at in range(0, len(given), 2)]
            case "re":
                x, y, wide, tall = map(float, given)
                points += [place(x, y), place(x + wide, y + tall)]
            case "n":
                points = []
            case "f" | "S" | "B" | "s" | "b" as paint:
                found.append(_painted(now, points, paint))
                points = []
            case "BT":
                text, advance = "", 0.0
            case "Tf":
                font, size = str(given[0]), float(given[1]) * px
            case "Td":
                assert float(given[1]) == 0  # another part of the same line
            case "TJ" | "Tj":
                parts = given[0] if isinstance(given[0], list) else [given[0]]
                said, wide = fonts.read(font, parts)
                text += said
                advance += wide * size / 1000
            case "ET":
                label = Painted(kind="text", text=text, points=[place(*shift)])
                found.append(replace(label, fill=now.fill, size=size, advance=advance))
    return found[1:]


def of_svg(svg: str, shape: str = "wide") -> list[Painted]:
    """Return what an SVG draws in one of its shapes, by CSS and SVG, in the light palette."""
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    if "xmlns=" not in svg.partition(">")[0]:
        svg = svg.replace("<svg", f"<svg {spaces}", 1)
    root = etree.fromstring(svg)
    named = {part.get("id"): part for part in root.iter() if part.get("id")}
    return list(_drawn(root, {}, (0.0, 0.0), shape, named, root.get("class", "").split()))


def _styled(part: etree.Element, inherited: dict[str, str], above: list[str]) -> dict[str, str]:
    """Return the properties of an element: attributes, overridden by rules, over inherited ones."""
    style = inherited | {k: v for k, v in part.attrib.items() if ":" not in k}
    for selector, declared in theme.rules().items():
        outer, inner = selector.replace(".", "").split()
        if outer in above and inner in part.get("class", "").split():
            style |= dict(each.split(":", 1) for each in declared.split(";"))
    return style


KEPT = (
    "fill",
    "stroke",
    "stroke-width",
    "stroke-dasharray",
    "font-size",
    "text-anchor",
    "paint-order",
)


def _drawn(
    part: etree.Element,
    inherited: dict[str, str],
    at: tuple[float, float],
    shape: str,
    named: dict[str | None, etree.Element],
    above: list[str],
) -> Iterator[Painted]:
    kind = part.tag.removeprefix(SVG)
    if kind in ("defs", "title", "style") or part.get("class") in {"wide", "narrow"} - {shape}:
        return
    style = _styled(part, inherited, above)
    if style.get("display") == "none" and part.get("class") != "narrow":
        return
    style = {name: style[name] for name in KEPT if name in style}
    if shift := re.search(r"translate\(([-\d.]+)[ ,]([-\d.]+)\)", part.get("transform", "")):
        place = re.search(r"--x:([-\d.]+)px;--y:([-\d.]+)px", part.get("style", ""))
        moved = place if place and shape == "narrow" else shift
        at = at[0] + float(moved[1]), at[1] + float(moved[2])
    x, y = (float(part.get(name, 0)) for name in "xy")
    ink = (
        {
            name: None if value == "none" else theme.variables()[value[4:-1]].light
            for name, value in (("fill", style["fill"]), ("stroke", style.get("stroke", "none")))
            if not value.startswith("url(")
        }
        if kind not in ("svg", "g")
        else {}
    )
    match kind:
        case "use":
            target = named[(part.get("href") or part.get(LINK) or "")[1:]]
            yield from _drawn(target, style, (at[0] + x, at[1] + y), shape, named, above)
        case "text":
            yield from _texts(part, style, ink, at)
        case "rect" | "path":
            d = part.get("d") or _rectangle(part)
            points = _points(d, at)
            width = float(style.get("stroke-width", 1))
            dashes = list(map(float, re.findall(r"[\d.]+", style.get("stroke-dasharray", ""))))
            if style["fill"].startswith("url("):
                yield from _tiled(named[style["fill"][5:-1]], points, above)
                ink["fill"] = None
            if ink["fill"] or ink["stroke"]:
                yield Painted(kind="path", points=points, width=width, dashes=dashes, **ink)
        case _:
            for child in part:
                yield from _drawn(child, style, at, shape, named, above)


def _rectangle(part: etree.Element) -> str:
    x, y, wide, tall = (float(part.get(name, 0)) for name in ("x", "y", "width", "height"))
    return f"M{x} {y}h{wide}v{tall}h{-wide}z"


def _points(d: str, at: tuple[float, float]) -> list[tuple[float, float]]:
    pen = RecordingPen()
    parse_path(d, pen)
    found: list[tuple[float, float]] = []
    for command, given in pen.value:
        points = [(x + at[0], y + at[1]) for x, y in given]
        if command == "qCurveTo":  # a PDF has only cubic curves
            handle, end = points
            points = [_between(found[-1], handle), _between(end, handle), end]
        found += points
    return found


def _between(end: tuple[float, float], handle: tuple[float, float]) -> tuple[float, float]:
    """Return the handle of the cubic curve that equals a quadratic one."""
    return end[0] + 2 / 3 * (handle[0] - end[0]), end[1] + 2 / 3 * (handle[1] - end[1])


def _tiled(
    pattern: etree.Element, points: list[tuple[float, float]], above: list[str]
) -> Iterator[Painted]:
    """Return a pattern's background and its lines, of which only color and width are compared."""
    for part in pattern:
        style = _styled(part, {"fill": "var(--fig-ink)"}, above)
        line = part.tag == f"{SVG}path"
        if not line:
            ground = theme.variables()[style["fill"][4:-1]].light
            yield Painted(kind="path", points=points, fill=ground)
        elif part.get("d"):
            ink = theme.variables()[style["stroke"][4:-1]].light
            yield Painted(kind="tiles", stroke=ink, width=float(style["stroke-width"]))


def _texts(
    part: etree.Element, style: dict[str, str], ink: dict[str, str | None], at: tuple[float, float]
) -> Iterator[Painted]:
    lines = [(part.text or "", part.get("x", "0"))]
    lines += [
        (inner.text or "", inner.get("x", "0")) for inner in part if inner.tag.endswith("tspan")
    ]
    for text, x in lines:
        if not text.strip():
            continue
        if ink["stroke"]:
            width = float(style["stroke-width"])
            yield Painted(kind="halo", stroke=ink["stroke"], width=width)
        yield Painted(
            kind="text",
            text=text,
            fill=ink["fill"],
            size=float(style["font-size"]),
            points=[(float(x) + at[0], float(part.get("y", 0)) + at[1])],
            anchor=style.get("text-anchor", "start"),
        )


CLOSE_PX = 0.02


def differences(printed: list[Painted], shown: list[Painted], text_scale: float) -> list[str]:
    """Return differences in words; `text_scale` is the scale of text on paper."""
    if len(printed) != len(shown):
        return [f"{len(printed)} marks instead of {len(shown)}"]
    pairs = zip(printed, shown, strict=True)
    return [
        f"mark {at}: {what}: {one} instead of {other}"
        for at, (one, other) in enumerate(pairs)
        for what in _differ(one, other, text_scale)
    ]


def _differ(one: Painted, other: Painted, text_scale: float) -> Iterator[str]:
    if other.kind == "text":
        if " ".join(one.text.split()) != " ".join(other.text.split()) or one.kind != "text":
            yield "text"
            return
        anchor = one.points[0][0] + one.advance * SHARES[other.anchor]
        if not _close((anchor, one.points[0][1]), other.points[0], 0.04 * one.advance + 0.6):
            yield "place"
        if abs(one.size - text_scale * other.size) > CLOSE_PX:
            yield "size"
        if one.fill != other.fill:
            yield "colour"
        return
    if one.kind != "path":
        yield "kind"
        return
    if (one.fill, one.stroke) != (other.fill, other.stroke):
        yield "colour"
    if other.stroke and abs(one.width - other.width) > CLOSE_PX:
        yield "width"
    if other.kind == "path":
        dashes = zip(one.dashes, other.dashes, strict=False)
        if len(one.dashes) != len(other.dashes) or any(abs(a - b) > CLOSE_PX for a, b in dashes):
            yield "dashes"
        boxes = [_box(each.points) for each in (one, other)]
        if not all(_close(a, b, CLOSE_PX) for a, b in zip(*boxes, strict=True)):
            yield "place"


def _box(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return [tuple(map(end, zip(*points, strict=True))) for end in (min, max)]  # type: ignore[misc]


def _close(one: tuple[float, float], other: tuple[float, float], within: float) -> bool:
    return abs(one[0] - other[0]) <= within and abs(one[1] - other[1]) <= within
