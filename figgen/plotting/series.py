"""Series with their colors in order, and the points along an axis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from figgen.charts import Segment, Series, Style
from figgen.errors import InputError

ROLES = (*(f"series-{number}" for number in range(1, 7)), "neutral", "reference")
"""Roles of series without a meaning of their own, in the order in which they are assigned."""


def series_role(index: int) -> str:
    """Return the role of series `index`, counted from 0."""
    return ROLES[index % len(ROLES)]


def line(
    name: str,
    x: Iterable[float],
    y: Iterable[float],
    index: int = 0,
    style: Style = "line",
) -> Series:
    """Return series `index` of a plot, counted from 0, with its color."""
    return Series(name=name, x=tuple(x), y=tuple(y), role=series_role(index), style=style)


def segments(
    lengths: Mapping[str, Iterable[float]], roles: Iterable[str] = ROLES
) -> tuple[Segment, ...]:
    """Return the parts of bars by name, each with its length in every bar and its color."""
    turns = tuple(roles)
    return tuple(
        Segment(name=name, role=turns[index % len(turns)], lengths=tuple(each))
        for index, (name, each) in enumerate(lengths.items())
    )


def logarithmic(low: float, high: float, per_decade: int = 8) -> tuple[float, ...]:
    """Return points from `low` to `high`, evenly spaced on a logarithmic axis, both ends exact.

    Raises InputError unless 0 < `low` < `high`.
    """
    if not 0 < low < high:
        raise InputError("range", expected="0 < low < high", got=(low, high))
    count = 1
    while low * 10 ** (count / per_decade) < high * (1 - 1e-9):
        count += 1
    return (*(low * 10 ** (k / per_decade) for k in range(count)), high)


def doublings(most: int, first: int = 2) -> tuple[int, ...]:
    """Return `first` and its doublings up to `most`."""
    found = [first]
    while 2 * found[-1] <= most:
        found.append(2 * found[-1])
    return tuple(found)
