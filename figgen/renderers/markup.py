"""Write SVG: escaping, rounding, elements, and the width of text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from math import fsum

from figgen import theme

COLUMN = 720
"""Width in px of the text column that figures are drawn for."""

TEXT = 12
"""Size in px of all text.  Never shown below 11 px: a figure in a narrower box scrolls."""

MIN_TEXT = 11

_NARROW, _WIDE, _CAPITAL = set(" .,:;'|!()[]/ijlftrI·-"), set("mwMW@%—…"), 0.72
_AVERAGE, _DIGIT = 0.57, 0.62


FORBIDDEN: dict[int, str | None] = {
    **dict.fromkeys([*range(32), *range(127, 160), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF]),
    **dict.fromkeys(map(ord, "\t\n\r"), " "),
}


def plain(text: str) -> str:
    """Return `text` on one line, without characters that XML does not allow."""
    return text if text.isprintable() else text.translate(FORBIDDEN)


def escape(text: str) -> str:
    """Escape `text` for use between tags or in a double-quoted attribute."""
    text = plain(text)
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(char, entity)
    return text


def number(value: float) -> str:
    """Format a number with at most two decimals and no trailing zeros."""
    shown = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if shown == "-0" else shown


def element(name: str, content: str = "", **attributes: float | str | None) -> str:
    """Return an element; `content` is markup, `_` in names means `-`, None is omitted."""
    written = "".join(
        f' {_name(key)}="{_value(value)}"' for key, value in attributes.items() if value is not None
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


@cache
def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: float | str) -> str:
    return escape(value) if isinstance(value, str) else number(value)


def words(x: float, y: float, content: str, **attributes: float | str | None) -> str:
    """Return one line of text with its baseline at `y`."""
    return element("text", escape(content), x=x, y=y, **attributes)


def row(y: float, entries: Iterable[tuple[float, str]], **attributes: float | str | None) -> str:
    """Return many short texts on one baseline, centered on their x, as one element."""
    spans = "".join(f'<tspan x="{number(x)}">{escape(text)}</tspan>' for x, text in entries)
    return element("text", spans, y=y, text_anchor="middle", **attributes) if spans else ""


def title(content: str) -> str:
    """Return a `<title>` element, which browsers show when the pointer rests on its parent."""
    return element("title", escape(content))


@lru_cache(maxsize=4096)
def text_width(text: str, size: float = TEXT, *, bold: bool = False) -> float:
    """Return the width of `text` in px, slightly too large since the reader's font is unknown."""

    def share(char: str) -> float:
        if char in _NARROW:
            return 0.36
        if char in _WIDE:
            return 0.95
        if char.isdigit():
            return _DIGIT
        return _CAPITAL if char.isupper() else _AVERAGE

    return size * fsum(map(share, text)) * (1.1 if bold else 1)


def wrapped(text: str, width: float) -> list[str]:
    """Break text into lines no wider than `width`, between words but not around "="."""
    lines: list[str] = []
    for word in re.split(r"(?<!=) (?!=)", plain(text)):
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines


def arrow(x0: float, y0: float, x1: float, y1: float, head: float = 6) -> str:
    """Return the path of a triangle with its tip at (x1, y1), for a line from (x0, y0)."""
    length = math.hypot(x1 - x0, y1 - y0) or 1.0
    along_x, along_y = (x1 - x0) / length * head, (y1 - y0) / length * head
    left = (x1 - along_x - along_y / 2, y1 - along_y + along_x / 2)
    right = (x1 - along_x + along_y / 2, y1 - along_y - along_x / 2)
    corners = " ".join(f"{number(x)} {number(y)}" for x, y in (left, right))
    return f"M{number(x1)} {number(y1)}L{corners}Z"


def figure(kind: str, width: float, height: float, body: str) -> str:
    """Return the root element: as wide as drawn if it fits, never so narrow that text shrinks.

    It has no role and no name: the page knows the alternative text and sets both.
    """
    wide, high = math.ceil(width), math.ceil(height)
    least = math.ceil(wide * MIN_TEXT / TEXT)
    return (
        f'<svg class="fig fig-{kind}" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
        f'font-size="{TEXT}" fill="{theme.colour("ink")}" '
        f'style="width:{wide}px;min-width:{least}px">{body}</svg>'
    )
