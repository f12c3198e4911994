"""Slips of the pen that Markdown passes over in silence and publishes as they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator

from figgen.errors import InputError, closest

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*([^\s`{]*)([^`]*)$")
_CODE = re.compile(r"(`+)(?:(?!\1).)+?\1")
_VALUE = re.compile(r"\{\{(?:[^{}\"']|\"[^\"\n]*\"|'[^'\n]*')*\}\}")
_MATH = re.compile(r"(?<!\\)\$\$.+?\$\$|(?<!\\)\$(?!\s)(?:\\.|[^\\$])+?(?<!\s)\$")
_DOLLAR = re.compile(r"(?<!\\)\$")
_DISPLAY = re.compile(r"(?<!\\)\$\$")
_IMAGE = re.compile(r"!\[(\s*)\]\(")

NOT_DISPLAYED = InputError("math is not closed", expected="$$ before the next empty line")


def slips(source: str) -> Iterator[tuple[int, InputError]]:
    """Line, from 1, and error of every slip in a page's source.

    A fence that is never closed or called almost `figure`; `{{`, `$` or `$$` without its end; an
    image that has no text for those who cannot see it.
    """
    end, opened, displayed = "", 0, 0
    for number, line in enumerate(source.splitlines(), 1):
        fence = _FENCE.match(line)
        if end:
            if fence and fence[1].startswith(end) and not fence[2]:
                end = ""
            continue
        if fence:
            end, opened = fence[1], number
            if fence[2] != "figure" and (near := closest(fence[2], ["figure"], 1)):
                yield (
                    number,
                    InputError("a fence", expected="a language", got=fence[2], nearest=near),
                )
            continue
        line = _CODE.sub("", line)
        if displayed and not line.strip():
            yield displayed, NOT_DISPLAYED
            displayed = 0
        turns = "$$" in line and len(_DISPLAY.findall(line)) % 2
        for error in _of_line(line, dollars=not (turns or displayed)):
            yield number, error
        if turns:
            displayed = 0 if displayed else number
    if displayed:
        yield displayed, NOT_DISPLAYED
    if end:
        yield opened, InputError("a fence is never closed", expected=f"a line of {end}")


def _of_line(line: str, *, dollars: bool) -> Iterator[InputError]:
    """Slips within a line; `dollars` are looked at where no displayed math begins or ends."""
    left = _VALUE.sub("", line)
    if "{{" in left or ("}}" in left and "\\" not in left):  # but for the braces of math
        yield InputError("a value is not closed", expected="{{ … }} in one line", got=_short(left))
    if dollars and "$" in left and _DOLLAR.search(_MATH.sub("", left)):
        expected = r"$…$ in one line without a space inside, or \$ for a dollar"
        yield InputError("math is not closed", expected=expected, got=_short(left))
    if _IMAGE.search(line):
        yield InputError(
            "an image without a text", expected="![what it shows](…)", got=_short(line)
        )


def _short(line: str) -> str:
    return line.strip() if len(line) < 60 else line.strip()[:59] + "…"
