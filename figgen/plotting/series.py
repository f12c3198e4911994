"""Series beside each other: their colours in turn, and the points along an axis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from figgen.charts import Segment, Series, Style
from figgen.errors import InputError

ROLES = (*(f"series-{number}" for number in range(1, 7)), "neutral", "reference")
"""Roles of series that mean nothing but themselves, in the order in which they are given out."""


def series_role(index: int) -> str:
    """The role of the series number `index`, counted from 0."""
    return ROLES[index % len(ROLES)]


def line(
    name: str,
    x: Iterable[float],
    y: Iterable[float],
    index: int = 0,
    style: Style = "line",
) -> Series:
    """The series number `index` of a plot, counted from 0, in its turn's colour."""
    return Series(name=name, x=tuple(x), y=tuple(y), role=series_role(index), style=style)


def segments(
    lengths: Mapping[str, Iterable[float]], roles: Iterable[str] = ROLES
) -> tuple[Segment, ...]:
    """The parts of bars by name, each with its length in every bar, in their turns' colours."""
    turns = tuple(roles)
    return tuple(
        Segment(name=name, role=turns[index % len(turns)], lengths=tuple(each))
        for index, (name, each) in enumerate(lengths.items())
    )


def logarithmic(low: float, high: float, per_decade: int = 8) -> tuple[float, ...]:
    """Points from `low` to `high`, evenly spaced on a logarithmic axis, both ends exact.

    Raises InputError unless 0 < `low` < `high`.
    """
    if not 0 < low < high:
        raise InputError("range", expected="0 < low < high", got=(low, high))
    count = 1
    while low * 10 ** (count / per_decade) < high * (1 - 1e-9):
        count += 1
    return (*(low * 10 ** (k / per_decade) for k in range(count)), high)


def doublings(most: int, first: int = 2) -> tuple[int, ...]:
    """`first`, a power of two, and its doubles up to `most`."""
    found = [first]
    while 2 * found[-1] <= most:
        found.append(2 * found[-1])
    return tuple(found)
