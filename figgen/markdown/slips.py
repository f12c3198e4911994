"""Slips that Markdown does not report but publishes as they are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html import unescape

import yaml

from figgen.errors import InputError, closest
from figgen.markdown.references import CITATION
from figgen.markdown.yaml_text import read_yaml

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*([^\s`{]*)([^`]*)$")
_CODE = re.compile(r"(`+)(?:(?!\1).)+?\1")
_VALUE = re.compile(r"\{\{(?:[^{}\"']|\"[^\"\n]*\"|'[^'\n]*')*\}\}")
_MATH = re.compile(r"(?<!\\)\$\$.+?\$\$|(?<!\\)\$(?!\s)(?:\\.|[^\\$])+?(?<!\s)\$")
_DOLLAR = re.compile(r"(?<!\\)\$")
_DISPLAY = re.compile(r"(?<!\\)\$\$")
_IMAGE = re.compile(r"!\[(\s*)\]\(")

_CITED = re.compile(r"\[@[^\]\n]*\]?")
_NOTE = re.compile(r"(?<!\\)\[\^([^\]\s]+)\](?!:)")
_DEFINED = re.compile(r" {0,3}\[\^([^\]\s]+)\]:")
_SCHEME = re.compile(
    r"(?:\]\(\s*<?|^ {0,3}\[[^\]]+\]:\s*<?|<|\b(?:href|src|action|formaction)\s*=\s*[\"']?)"
    r"\s*([a-z][a-z0-9+.\s-]*):",
    re.IGNORECASE,
)
_HANDLER = re.compile(
    r"[<{][^<>{}]*[\s/](on(?:click|load|error|focus\w*|blur|change|input|submit|toggle|"
    r"(?:mouse|key|pointer|touch|drag|animation|transition)\w+))\s*=",
    re.IGNORECASE,
)
_ELEMENT = re.compile(r"(?<!\\)<([A-Za-z][A-Za-z0-9-]*)(?:\s[^<>]*|/)?>")
_SHOWN = (
    "a abbr article aside b bdi bdo blockquote br caption circle cite code col colgroup dd "
    "defs del desc details dfn div dl dt ellipse em figcaption figure footer g h1 h2 h3 h4 h5 "
    "h6 header hr i img ins kbd li line main mark math nav ol p path picture polygon polyline "
    "pre q rect rp rt ruby s samp section small source span strong sub summary sup svg table "
    "tbody td text tfoot th thead time title tr tspan u ul use var video wbr "
)
ELEMENTS = frozenset(_SHOWN.split())
"""Elements that are displayed; a page's security policy blocks others, or they show nothing."""
_ATTRIBUTES = re.compile(r"\{:?[ ]*([#.][A-Za-z][^{}\n]*)\}")
_ATTRIBUTE = re.compile(r"""[#.][\w:.-]+|[\w:-]+=(?:"[^"]*"|'[^']*'|[^\s"']+)""")
SCHEMES = {"http", "https", "mailto"}
"""The schemes that a link may have, if it is not a path."""
_FRONT = re.compile(r"---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_META = re.compile(r" {0,3}([A-Za-z0-9_-]+):(?:\s|$)")

_ENDLESS = "a fence is never closed"
NOT_DISPLAYED = InputError("math is not closed", expected="$$ before the next empty line")


def slips(source: str) -> Iterator[tuple[int, InputError]]:
    """Yield the line, from 1, and the error of each slip in a page's source.

    Slips are: a fence that is never closed or whose name resembles `figure`; unclosed `{{`, `$` or
    `$$`; an image without alternative text; `[@` that is not a citation; an undefined footnote; a
    link with an unknown scheme; an attribute that runs a script; an unknown element or attribute;
    front matter that cannot be parsed.
    """
    yield from _of_front_matter(source)
    yield from _of_notes(source)
    end, opened, displayed = "", 0, 0
    for number, line in enumerate(source.splitlines(), 1):
        fence = _FENCE.match(line)
        if end:
            if fence and fence[1].startswith(end):
                if fence[2]:
                    yield opened, InputError(_ENDLESS, expected=f"{end} before the next fence")
                end, opened = fence[1] if fence[2] else "", number
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
        if not (turns or displayed):
            for error in _of_markup(_MATH.sub("", _VALUE.sub("", line))):
                yield number, error
        if turns:
            displayed = 0 if displayed else number
    if displayed:
        yield displayed, NOT_DISPLAYED
    if end:
        yield opened, InputError(_ENDLESS, expected=f"a line of {end}")


def _of_line(line: str, *, dollars: bool) -> Iterator[InputError]:
    """Yield slips within a line; `dollars` is false in, or at an end of, displayed math."""
    left = _VALUE.sub("", line)
    if "{{" in left or ("}}" in left and "\\" not in left):  # except for braces of math
        yield InputError("a value is not closed", expected="{{ … }} in one line", got=_short(left))
    if dollars and "$" in left and _DOLLAR.search(_MATH.sub("", left)):
        expected = r"$…$ in one line without a space inside, or \$ for a dollar"
        yield InputError("math is not closed", expected=expected, got=_short(left))
    if _IMAGE.search(line):
        yield InputError(
            "an image without alternative text", expected="![what it shows](…)", got=_short(line)
        )
    for cited in _CITED.findall(_MATH.sub("", left)):
        known = re.fullmatch(CITATION, cited)
        if not known or (known[2] or "").startswith("@"):
            yield InputError("a citation", expected="[@key] or [@key, place]", got=_short(cited))
    for scheme in _SCHEME.findall(unescape(left)):
        if re.sub(r"\s", "", scheme).lower() not in SCHEMES:
            expected = f"a path, or one of {', '.join(sorted(SCHEMES))}"
            yield InputError("a link", expected=expected, got=f"{scheme}:")
    for name in _HANDLER.findall(left):
        expected = "no event handler: the page's security policy blocks it"
        yield InputError("an attribute", expected=expected, got=name)


def _of_markup(line: str) -> Iterator[InputError]:
    """Yield elements that are not displayed, and words that are not valid in attribute lists."""
    for name in _ELEMENT.findall(line):
        if name.lower() not in ELEMENTS:
            expected = "an element that is displayed, or a backslash before the bracket"
            yield InputError("an element", expected=expected, got=f"<{name}>")
    for listed in _ATTRIBUTES.findall(line):
        if word := _ATTRIBUTE.sub("", listed).strip():
            expected = "#id, .class or key=value"
            yield InputError("an attribute list", expected=expected, got=_short(word))


def text_slips(text: str, *, plain: bool = False) -> Iterator[InputError]:
    """Yield slips in a caption, or in a `plain` alternative text, which allows values only."""
    yield from _of_line(" ".join(text.split()), dollars=not plain)
    left = _VALUE.sub("", text)
    if plain and (found := re.search(r"\$|\[@|\]\(", left)):
        expected = "plain words and {{ values }}: no math, citations or links"
        yield InputError(
            "an alternative text", expected=expected, got=_short(left[found.start() :])
        )


def _of_front_matter(source: str) -> Iterator[tuple[int, InputError]]:
    """Yield errors in front matter: MkDocs publishes it if invalid, and drops `Key: text`."""
    what = "front matter"
    if not source.startswith("---"):
        if found := _META.match(source):
            expected = "a heading, or front matter between two lines of ---"
            yield 1, InputError("a page begins with metadata", expected=expected, got=found[0])
        return
    found = _FRONT.match(source)
    if not found:
        if re.match(r"---[ \t]*\n", source):
            yield 1, InputError(f"{what} is never closed", expected="a line of ---")
        return
    try:
        fields = read_yaml(found[1] or "")
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        yield line + 2, InputError(what, expected="lines of 'key: value'", got=str(error.problem))
    except InputError as error:
        yield 2 + _line_of(found[1], error), error
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        yield 2, InputError(what, expected="lines of 'key: value'", got=str(error).split("\n")[0])
    else:
        if not isinstance(fields, dict):
            yield 1, InputError(what, expected="lines of 'key: value'", got=fields or "nothing")


def _line_of(text: str, error: InputError) -> int:
    """Return the line, from 0, of the faulty key; of its last occurrence if it occurs twice."""
    rows = text.splitlines()
    found = [place for place, row in enumerate(rows) if row.lstrip().startswith(f"{error.key}:")]
    return found[-1] if found else 0


def _of_notes(source: str) -> Iterator[tuple[int, InputError]]:
    """Yield footnotes that are referred to but undefined, or defined twice."""
    if "[^" not in source:
        return
    lines = [_CODE.sub("", line) for line in _without_fences(source)]
    defined = Counter(found[1] for line in lines if (found := _DEFINED.match(line)))
    for number, line in enumerate(lines, 1):
        for name in _NOTE.findall(line):
            if name not in defined:
                near = closest(name, defined, 1)
                yield number, InputError(f"unknown footnote [^{name}]", nearest=near)
        if (found := _DEFINED.match(line)) and defined[found[1]] > 1:
            yield number, InputError(f"footnote [^{found[1]}]", expected="one text", got="several")


def _without_fences(source: str) -> Iterator[str]:
    """Yield the lines of a page, with lines of code blocks emptied."""
    end = ""
    for line in source.splitlines():
        fence = _FENCE.match(line)
        inside = bool(end or fence)
        if end:
            end = "" if fence and fence[1].startswith(end) and not fence[2] else end
        elif fence:
            end = fence[1]
        yield "" if inside else line


def _short(line: str) -> str:
    return line.strip() if len(line) < 60 else line.strip()[:59] + "…"
