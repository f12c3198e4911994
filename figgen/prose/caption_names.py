"""Find names in captions and alternative texts that are no value of their figure."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache

from figgen.errors import InputError, unknown
from figgen.markdown import directive
from figgen.markdown.conversion import fences
from figgen.markdown.inline import PATTERN
from figgen.registry import build, figure_named
from figgen.values import split_spec


def misnamed(source: str) -> Iterator[tuple[int, InputError]]:
    """Yield line and error of each bare name in a figure's text that the figure has no value of.

    A figure whose code contains or can form all the names is not computed, as most of the time
    would go into that, and of a figure with tabs only the first one is. The build checks the rest.
    """
    for fence in fences(source):
        asked = directive.parse(fence.body)
        used = {name: at for at, name in _bare_names(fence.body)}
        code = _names_in(figure_named(asked.figure).function.__module__)
        doubtful = {name for name in used if not code.fullmatch(name)}
        if not doubtful:
            continue
        _, _, arguments = asked.variants()[0]
        try:
            values = build(asked.figure, arguments).values
        except (InputError, ArithmeticError, LookupError):  # `figgen agree` says why
            continue
        for name in sorted(doubtful - values.keys()):
            line = fence.line + 1 + fence.body.count("\n", 0, used[name])
            yield line, unknown(f"value of {asked.figure}", name, values)


def _bare_names(body: str) -> Iterator[tuple[int, str]]:
    for value in re.finditer(PATTERN, body):
        name = split_spec(value[1])[0]
        if name.isidentifier():
            yield value.start(), name


@cache
def _names_in(module: str) -> re.Pattern[str]:
    """Match the words in a module's source, and names that its f-strings form around a word."""
    source = inspect.getsource(sys.modules[module])
    found = set(re.findall(r"\w+", source))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts = [
                str(part.value) if isinstance(part, ast.Constant) else "" for part in node.values
            ]
            if re.fullmatch(r"\w{2,}", "".join(parts)):
                found.add("".join(part or r"\w+" for part in parts))
    return re.compile("|".join(found))
