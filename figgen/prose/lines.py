"""Read a page's Markdown as lines of prose, without computed values, code, math and markup.

A placeholder shows the kind of each removed part, and every line keeps its number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from figgen.markdown.claims import stated
from figgen.markdown.conversion import fences

COMPUTED, CODE, MATH, CITED = "⟦", "⟧", "⟪", "⟫"
"""Placeholders for an inline value, code, math, and a citation or an external link."""

SIGNS = COMPUTED + CODE + MATH + CITED

Kind = Literal["heading", "row", "title", "text", "caption"]

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_INLINE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)"), CODE),
    (re.compile(r"\{\{(?:[^{}\"']|\"[^\"\n]*\"|'[^'\n]*')*\}\}"), COMPUTED),
    (re.compile(r"\$\$.+?\$\$|(?<![\\$\w])\$(?!\s).+?(?<![\s\\])\$(?!\w)"), MATH),
    (re.compile(r"\[@[^\]]+\]"), CITED),
    (re.compile(r"<!--.*?-->"), ""),
    (re.compile(r"</?[a-zA-Z][^>]*>"), ""),
    (re.compile(r"\]\(https?://[^)\s]*\)"), "]" + CITED),
    (re.compile(r"\]\([^)\s]*(?:\s+\"[^\"]*\")?\)"), "]"),
    (re.compile(r"\{:?\s*[#.:\w][^}]*\}"), ""),
)
_TITLE = re.compile(r"^\s*(?:!!!|\?\?\?\+?)\s")
_OPENER = re.compile(r"^\s*(?:(?:[-*+]|\d+[.)])\s+|>\s?|:\s{1,3}|(?:!!!|\?\?\?\+?)\s+\w+\s*)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProseLine:
    """A line of prose with its number, its kind and its remaining text.

    A `title` is of a box or a worked problem; a `caption` may be an alternative text. `joined`
    means that the line continues the previous line's paragraph; `of` is the line of a caption's
    figure.
    """

    number: int
    kind: Kind
    text: str
    joined: bool
    of: int = 0


def prose_lines(source: str) -> list[ProseLine]:
    """Return the lines of a page that are read as text, including headings and table rows."""
    found: list[ProseLine] = []
    fence = ""
    displayed = False
    previous = 0
    for number, raw in enumerate(_without_front_matter(stated(source)), 1):
        mark = _FENCE.match(raw)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
            continue
        if mark:
            fence = mark[1]
            continue
        if raw.strip() == "$$" or (raw.strip().startswith("$$") and raw.count("$$") == 1):
            displayed = not displayed
            continue
        if displayed or not raw.strip():
            displayed = displayed and "$$" not in raw
            continue
        line = _line(number, raw, previous)
        if line.text:
            found.append(line)
            previous = number
    return found


_SAID = re.compile(r"^[ \t]*(?:caption|alt):((?:.*)(?:\n[ \t]*(?![ \t\w-]+:[ \t]|$).+)*)", re.M)


def figure_lines(source: str) -> list[ProseLine]:
    """Return the captions and alternative texts of a page's figures, each as one line."""
    return [
        ProseLine(
            number=fence.line + 1 + fence.body.count("\n", 0, said.start()),
            kind="caption",
            text=text,
            joined=False,
            of=fence.line,
        )
        for fence in fences(source)
        for said in _SAID.finditer(fence.body)
        if (text := _signed(stated(said[1])).strip().strip("'\""))
    ]


def without_captions(body: str) -> str:
    """Return the body of a figure's fence without its caption and alternative text."""
    return _SAID.sub("", body)


def _without_front_matter(source: str) -> list[str]:
    lines = source.splitlines()
    if lines and lines[0] == "---" and "---" in lines[1:]:
        end = lines.index("---", 1)
        lines[: end + 1] = [""] * (end + 1)
    return lines


def _signed(text: str) -> str:
    for pattern, sign in _INLINE:
        text = pattern.sub(sign, text)
    return text


def _line(number: int, raw: str, previous: int) -> ProseLine:
    kind: Kind = "text"
    if re.match(r"#{1,6}\s", raw):
        kind = "heading"
    elif raw.lstrip().startswith("|"):
        kind = "row"
    elif _TITLE.match(raw):
        kind = "title"
    text = _signed(raw)
    opened = _OPENER.match(text)
    text = text[opened.end() :] if opened else text
    if re.fullmatch(r"[\s|:-]*", text):
        text = ""
    if kind == "title":
        text = text.strip().strip('"')
    joined = kind == "text" and not opened and previous == number - 1
    return ProseLine(number=number, kind=kind, text=text.strip().lstrip("#").strip(), joined=joined)
