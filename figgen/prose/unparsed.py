"""Find inline values and claims that cannot be parsed, and suggest the nearest valid form."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches

from figgen.errors import InputError
from figgen.markdown.claims import CLAIM, check_form
from figgen.markdown.claims import GRAMMAR as CLAIM_GRAMMAR
from figgen.markdown.conversion import fences
from figgen.markdown.inline import PATTERN
from figgen.markdown.lists import unknown_reference
from figgen.markdown.references import CITATION
from figgen.quantity_shown import format_number
from figgen.registry import all_formulas, all_lookups
from figgen.values import GRAMMAR, parse, split_spec

_VALUE = re.compile(PATTERN)
_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")


def unparsed(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, nearest valid form and text of each value or claim that cannot be parsed."""
    for number, plain, of_figure in _shown(source):
        yield from ((number, *fault) for fault in _faults(plain, of_figure))


def uncited(source: str, known: Collection[str]) -> Iterator[tuple[int, str, str]]:
    """Yield line, what is expected and text of each citation of an unknown reference."""
    for number, plain, _ in _shown(source):
        for found in re.finditer(CITATION, plain):
            if found[1] not in known:
                error = unknown_reference(found[1], known)
                near = " or ".join(f"[@{key}]" for key in error.nearest)
                yield number, near or str(error.expected), found[0]


def _shown(source: str) -> Iterator[tuple[int, str, bool]]:
    """Yield number, text without code, and whether it is of a figure, of each line but code."""
    figures = {fence.line for fence in fences(source)}
    fence, of_figure = "", False
    for number, line in enumerate(source.split("\n"), 1):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence, of_figure = mark[1], number in figures
        elif mark and mark[1].startswith(fence):
            fence, of_figure = "", False
        elif not fence or of_figure:
            yield number, _CODE.sub("", line), of_figure


def _faults(plain: str, of_figure: bool) -> Iterator[tuple[str, str]]:
    for found in _VALUE.finditer(plain):
        asked, spec = split_spec(found[1])
        if of_figure and asked.isidentifier():
            continue  # a value of the figure
        try:
            parse(asked)
        except InputError:
            yield nearest(asked, spec), found[0]
    for claim in re.finditer(CLAIM, plain):
        try:
            check_form(claim["condition"])
        except InputError:
            yield CLAIM_GRAMMAR, claim["condition"]
    for rest in re.finditer(r"\{\{.{0,40}", _VALUE.sub("", plain)):
        yield "{{ …:… }}, both braces closed", rest[0]


def nearest(asked: str, spec: str) -> str:
    """Return the valid form nearest to a text that is not a call."""
    end = f":{spec} }}}}" if spec else " }}"
    try:
        node = ast.parse(asked, mode="eval").body
    except (SyntaxError, ValueError):
        node = None
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return f"{_typed(node.value, spec)}, typed as it is"
    for inner in ast.walk(node) if node else ():
        whole = inner.value if isinstance(inner, ast.Attribute) else inner
        if isinstance(whole, ast.Call) and isinstance(whole.func, ast.Name):
            return f"one call, such as {{{{ {ast.unparse(inner)}{end}"
    name = re.match(r"[A-Za-z_]\w*", asked)
    known = [*all_formulas(), *all_lookups()]
    for close in get_close_matches(name[0], known, n=1) if name else ():
        rest = asked[name.end() :] if name else ""
        field = rest if rest.startswith(".") else ".field" if close in all_lookups() else ""
        return f"{{{{ {close}(…){field}{end}"
    return GRAMMAR


def _typed(number: float, spec: str) -> str:
    try:
        return format(number, spec)
    except ValueError:
        return format_number(number, 3)
