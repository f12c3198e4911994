"""From what matplotlib writes to lean inline SVG that follows the page.

Shapes are drawn in sentinel colours, which become the roles' CSS variables here.  Styles become
presentation attributes, because a content security policy forbids inline styles.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import groupby

from figgen import theme
from figgen.renderers.fluid import Drawing
from figgen.renderers.markup import element, escape

SVG = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}href"
# What SVG assumes by itself, or what the root sets for all.
ASSUMED = {
    ("stroke-linecap", "butt"), ("stroke-linejoin", "round"), ("stroke-miterlimit", "100000"),
    ("stroke-dashoffset", "0"), ("opacity", "1"), ("fill-opacity", "1"), ("stroke-opacity", "1"),
    ("stroke-width", "1"), ("stroke", "none"), ("text-anchor", "start"), ("id", ""),
    ("fill", theme.colour("ink")),
}  # fmt: skip
FONT = {"font", "font-family", "font-size", "font-style", "font-weight", "font-variant"}
# Text that may cross a grid line is drawn over a broad outline of itself in the page's colour.
HALO = {"paint-order": "stroke", "stroke": theme.colour("paper"), "stroke-width": "4"}
INHERITED = (
    "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap",
    "stroke-linejoin", "stroke-opacity", "text-anchor", "clip-path", "class",
)  # fmt: skip
NUMBER = re.compile(r"-?\d*\.?\d+(?:e[+-]?\d+)?")


def sentinel(role: str) -> str:
    """The colour that stands for `role` until `clean` replaces it.  KeyError for no role."""
    theme.variable(role)
    return f"#01{sorted(theme.ROLES).index(role):04x}"


def clean(source: str, prefix: str) -> Drawing:
    """What matplotlib has drawn, as markup that can share a page with others.

    Every id begins with `prefix`; nothing is left of matplotlib's metadata, fonts and styles.
    """
    root = ET.fromstring(source)
    kept = [_simplified(child) for child in root if child.tag != f"{SVG}metadata"]
    children = _regrouped(_merged([part for parts in kept for part in parts]))
    body = _with_ids("".join(_written(child) for child in children), prefix)
    _, _, width, height = root.get("viewBox", "0 0 0 0").split()
    return Drawing(float(width), float(height), element("g", body, stroke_linejoin="round"))


def _simplified(element: ET.Element) -> list[ET.Element]:
    """The element without what says nothing; groups without attributes give way to their parts."""
    tag = element.tag.removeprefix(SVG)
    if not isinstance(element.tag, str) or tag in ("style", "metadata", "title"):
        return []
    children = [part for child in element for part in _simplified(child)]
    attributes = _attributes(element)
    if tag in ("g", "defs") and not children:
        return []
    if tag == "g" and not attributes:
        return children
    if tag in ("path", "use") and _invisible(attributes):
        return []
    lean = ET.Element(tag, attributes)
    lean.text = element.text if tag == "text" else None
    lean.extend(_regrouped(_merged(children)) if tag == "g" else children)
    return [lean]


def _attributes(element: ET.Element) -> dict[str, str]:
    tag = element.tag.removeprefix(SVG)
    found = {name: value for name, value in element.attrib.items() if name != "style"}
    for declaration in element.get("style", "").split(";"):
        name, _, value = declaration.partition(":")
        if name.strip() and name.strip() not in FONT:
            found[name.strip()] = value.strip()
    if XLINK in found:
        # Not plain `href`: Material's script rewrites that on every element, and fails on <use>.
        found["xlink:href"] = found.pop(XLINK)
    if tag == "g":
        found = _group_attributes(found)
    if tag == "text":
        found = _text_attributes(found)
    if found.get("clip-rule") == "evenodd":
        del found["clip-rule"]
    if found.get("stroke", "none") == "none" and "fill" in found:
        for name in [name for name in found if name.startswith("stroke-")]:
            del found[name]
    return {n: _value(n, v) for n, v in found.items() if (n, v) not in ASSUMED}


def _group_attributes(found: dict[str, str]) -> dict[str, str]:
    """Groups of ours are named `data-series:0` or `halo:`; matplotlib's names mean nothing."""
    name, colon, value = found.pop("id", "").partition(":")
    if name == "halo":
        return found | HALO
    return {name: value, **found} if colon else found


def _text_attributes(found: dict[str, str]) -> dict[str, str]:
    turned = re.match(r"rotate\(-?0(\.0*)?[ ,)]", found.get("transform", ""))
    return {n: v for n, v in found.items() if n != "transform" or not turned}


def _invisible(attributes: dict[str, str]) -> bool:
    return attributes.get("fill") == "none" and "stroke" not in attributes


def _value(name: str, value: str) -> str:
    if name == "d":
        return _path(value)
    if re.fullmatch(r"#01[0-9a-f]{4}", value):
        return theme.colour(sorted(theme.ROLES)[int(value[3:], 16)])
    # A hash such as h12e4 is not a number to be rounded.
    if (
        name in ("id", "xlink:href", "class")
        or name.startswith("data-")
        or value.startswith("url(")
    ):
        return value
    return NUMBER.sub(lambda match: _short(match[0]), value)


def _short(number: str) -> str:
    shown = f"{float(number):.1f}".rstrip("0").rstrip(".")
    return {"-0": "0", "": "0"}.get(shown, shown)


def _path(d: str) -> str:
    """A path with numbers to a tenth of a pixel and no more spaces than it needs."""
    parts = re.findall(r"([A-Za-z])([^A-Za-z]*(?:e[+-]?\d+[^A-Za-z]*)*)", d)
    written, last = "", ""
    for letter, numbers in parts:
        values = " ".join(_short(number) for number in numbers.split())
        if letter == last and letter != "z":
            written += f" {values}"
        else:
            written += f"{letter}{values}"
        last = letter
    return written


def _merged(children: list[ET.Element]) -> list[ET.Element]:
    """Neighbouring strokes that look the same become one path."""
    merged: list[ET.Element] = []
    for child in children:
        before = merged[-1] if merged else None
        if (
            before is not None
            and child.tag == before.tag == "path"
            and child.get("fill") == "none"
            and _without(child, "d") == _without(before, "d")
        ):
            before.set("d", before.get("d", "") + child.get("d", ""))
        else:
            merged.append(child)
    return merged


def _without(element: ET.Element, name: str) -> dict[str, str]:
    return {key: value for key, value in element.attrib.items() if key != name}


def _regrouped(children: list[ET.Element]) -> list[ET.Element]:
    """Attributes that neighbours share move to a group around them."""

    def shared(element: ET.Element) -> tuple[str, ...]:
        if element.tag not in ("path", "text", "use"):
            return (str(id(element)),)
        return tuple(element.get(name, "") for name in INHERITED)

    groups: list[ET.Element] = []
    for _, run in groupby(children, key=shared):
        members = list(run)
        common = {n: v for n in INHERITED if (v := members[0].get(n)) is not None}
        if len(members) == 1 or not common:
            groups += members
            continue
        group = ET.Element("g", common)
        for member in members:
            for name in common:
                del member.attrib[name]
            group.append(member)
        groups.append(group)
    return groups


def _with_ids(body: str, prefix: str) -> str:
    """Ids that something refers to, numbered under the prefix; the others are dropped."""
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', body))
    names: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        if match[1] not in used:
            return ""
        names[match[1]] = f"{escape(prefix)}--{len(names) + 1}"
        return f' id="{names[match[1]]}"'

    body = re.sub(r' id="([^"]*)"', renamed, body)
    replace: Callable[[re.Match[str]], str] = lambda m: m[1] + names.get(m[2], m[2])  # noqa: E731
    return re.sub(r'(href="#|url\(#)([^")]+)', replace, body)


def _written(element: ET.Element) -> str:
    attributes = "".join(f' {n}="{escape(v)}"' for n, v in element.attrib.items())
    inner = escape(element.text or "") + "".join(_written(e) for e in element)
    tag = element.tag
    return f"<{tag}{attributes}>{inner}</{tag}>" if inner else f"<{tag}{attributes}/>"
