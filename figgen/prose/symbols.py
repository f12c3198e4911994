"""One meaning per symbol and page: the letters of the formulas that a page's numbers come from."""

from __future__ import annotations

import re
from collections.abc import Iterator

from figgen.formulas import FORMULAS
from figgen.formulas.notation import NOTATION

SAME = (
    {"pp", "stages"},
    {"microbatches", "accumulation_steps"},
    {"message_bytes", "gradient_bytes"},  # a gradient is the message of its all-reduce
)
"""Arguments that share a letter because they are one thing under two names."""

_CALL = re.compile(r"\b([a-z][a-z0-9_]*)\(")
_PLACE = re.compile(r"\{\{.*?\}\}")


def clashes(source: str) -> Iterator[tuple[int, str, str, str]]:
    """Line, symbol and the two meanings of each symbol with more than one on a page.

    Only inline values count, whose worked lines show the symbols; the later one is told.
    """
    first: dict[str, str] = {}
    told: set[tuple[str, str]] = set()
    for line, text in enumerate(source.splitlines(), 1):
        for place in _PLACE.findall(text):
            for name in _CALL.findall(place):
                for argument in FORMULAS[name].args if name in FORMULAS else ():
                    symbol = argument.symbol
                    known = first.setdefault(symbol, argument.name)
                    if known == argument.name or {known, argument.name} in SAME:
                        continue
                    if (symbol, argument.name) not in told:
                        told.add((symbol, argument.name))
                        yield line, symbol, NOTATION[known].meaning, argument.meaning
