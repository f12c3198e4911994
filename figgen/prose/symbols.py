"""Check that each symbol has one meaning per page, in the formulas of the page's numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from figgen.equations.notation import Argument
from figgen.registry import all_formulas
from figgen.subject import subject

_CALL = re.compile(r"\b([a-z][a-z0-9_]*)\(")
_PLACE = re.compile(r"\{\{.*?\}\}")


def clashes(source: str) -> Iterator[tuple[int, str, str, str]]:
    """Yield line, symbol and two meanings of each symbol that has more than one on a page.

    Only inline values count, since their worked lines show the symbols; the later is reported.
    """
    formulas, same = all_formulas(), subject().same_symbols
    first: dict[str, Argument] = {}
    reported: set[tuple[str, str]] = set()
    for line, text in enumerate(source.splitlines(), 1):
        for place in _PLACE.findall(text):
            for name in _CALL.findall(place):
                for argument in formulas[name].args if name in formulas else ():
                    symbol = argument.symbol
                    known = first.setdefault(symbol, argument)
                    if known.name == argument.name or {known.name, argument.name} in same:
                        continue
                    if (symbol, argument.name) not in reported:
                        reported.add((symbol, argument.name))
                        yield line, symbol, known.meaning, argument.meaning
