"""Find names in captions and alternative texts that are no value of their figure."""

from __future__ import annotations

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

    A figure whose code contains all the names is not computed, which halves the time, and of a
    figure with tabs only the first one is. The build checks the rest.
    """
    for fence in fences(source):
        asked = directive.parse(fence.body)
        used = {name: at for at, name in _bare_names(fence.body)}
        doubtful = used.keys() - _words_of(figure_named(asked.figure).function.__module__)
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
def _words_of(module: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", inspect.getsource(sys.modules[module])))
