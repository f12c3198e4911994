"""Find the pages that use a formula, in an inline value or inside a figure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from figgen.formulas import FORMULAS
from figgen.markdown.conversion import fences
from figgen.markdown.inline import PATTERN
from figgen.registry import all_figures

_CALLED = re.compile(r"\b([a-z][a-z0-9_]*)\(")
_FIGURE = re.compile(r"^\s*figure:\s*([\w-]+)", re.M)


def pages_of_formulas(sources: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return for every formula the paths of pages that use it, in the order of `sources`."""
    found: dict[str, list[str]] = {name: [] for name in FORMULAS}
    for path, source in sources.items():
        called, figures = _named(source)
        for name in called.union(*map(formulas_of_figure, figures)) & FORMULAS.keys():
            found[name].append(path)
    return {name: tuple(paths) for name, paths in found.items()}


@lru_cache(maxsize=1024)
def _named(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that a page's inline values call, and those of its figures."""
    inline = (match.group(1) for match in re.finditer(PATTERN, source))
    called = {name for text in inline for name in _CALLED.findall(text)}
    shown = {name for fence in fences(source) for name in _FIGURE.findall(fence.body)}
    return frozenset(called), frozenset(shown)


def formulas_of_figure(name: str) -> frozenset[str]:
    """Return the formulas that a figure's functions call, directly or through other functions."""
    if name not in all_figures():
        return frozenset()
    figure = all_figures()[name]
    return _formulas_of(figure.function, getattr(figure.about, "__wrapped__", figure.about))


# Cached by functions instead of the name, since a server reloads them.
@lru_cache(maxsize=1024)
def _formulas_of(*functions: object) -> frozenset[str]:
    seen = set[object]()
    return frozenset(formula for each in functions for formula in _reached(each, seen))


def _reached(function: object, seen: set[object]) -> Iterator[str]:
    if not isinstance(function, FunctionType) or function in seen:
        return
    seen.add(function)
    for name in _names(function.__code__):
        called: Any = function.__globals__.get(name)
        known = FORMULAS.get(getattr(called, "__name__", ""))
        if known is not None and known.function is called:
            yield known.name
        elif getattr(called, "__module__", "").startswith(
            ("figgen.figures", "figgen.plotting", "figgen.scenarios", "figgen.models")
        ):
            yield from _reached(getattr(called, "__wrapped__", called), seen)


def _names(code: CodeType) -> Iterator[str]:
    """Yield the global names that a function and its nested functions use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
