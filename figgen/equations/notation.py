"""The notation of a subject: every argument of its formulas, defined once.

A name has one symbol, one unit and one meaning. `range` is a condition that applies wherever the
argument is used; `whole` arguments are counts and must be integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from figgen.errors import InputError

POSITIVE = "{} > 0"
NOT_NEGATIVE = "{} >= 0"
AT_LEAST_ONE = "{} >= 1"
SHARE = "0 < {} <= 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument of formulas: `symbol` is LaTeX, `unit` SI, `range` a condition on `{}`."""

    name: str
    symbol: str
    unit: str
    meaning: str
    range: str = NOT_NEGATIVE
    whole: bool = False


class Notation(Mapping[str, Argument]):
    """Arguments by name. Raises InputError if two of them have the same name."""

    def __init__(self, *arguments: Argument) -> None:
        self._by_name: dict[str, Argument] = {}
        for argument in arguments:
            if argument.name in self._by_name:
                first = self._by_name[argument.name]
                raise InputError(
                    f"the notation defines {argument.name} twice",
                    expected=f"one line, as {first.symbol}: {first.meaning}",
                    got=f"{argument.symbol}: {argument.meaning}",
                )
            self._by_name[argument.name] = argument

    def __getitem__(self, name: str) -> Argument:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


def count(name: str, symbol: str, unit: str, meaning: str, range: str = AT_LEAST_ONE) -> Argument:
    """Define a count, of at least one unless `range` says otherwise."""
    return Argument(name=name, symbol=symbol, unit=unit, meaning=meaning, range=range, whole=True)


def index(name: str, symbol: str, meaning: str) -> Argument:
    """Define an index, counted from 0."""
    return count(name, symbol, "1", f"{meaning}, counted from 0", NOT_NEGATIVE)


def ratio(name: str, symbol: str, meaning: str, range: str) -> Argument:
    """Define a number without a unit, such as a share, with the range of its values."""
    return Argument(name=name, symbol=symbol, unit="1", meaning=meaning, range=range)


def positive(name: str, symbol: str, unit: str, meaning: str) -> Argument:
    """Define a positive number."""
    return Argument(name=name, symbol=symbol, unit=unit, meaning=meaning, range=POSITIVE)


def amount(name: str, symbol: str, unit: str, meaning: str) -> Argument:
    """Define a nonnegative number."""
    return Argument(name=name, symbol=symbol, unit=unit, meaning=meaning)
