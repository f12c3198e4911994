"""Calls on a page as data that a script can recompute; printed to JavaScript.

A number stands for itself. A formula is `[name, {argument: data}]`, a lookup for a machine
`[name, [arguments], field]`, and a sum, product or quotient `["+", data, data]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

CallData: TypeAlias = float | list[Any]

Compute: TypeAlias = Callable[[str, Mapping[str, float]], float]
"""Returns the value of a formula from its name and arguments; NaN outside its domain."""

LookUp: TypeAlias = Callable[[str, list[Any], str], float]
"""Returns a field of a looked-up entry; NaN if the machine has none."""

Comparison: TypeAlias = tuple[str, CallData, CallData]
"""A comparison sign, its left side and its right side."""


def formula_value(asked: CallData, compute: Compute) -> float:
    """Return the value of a number or formula."""
    return compute(asked[0], arguments_of(asked, compute)) if isinstance(asked, list) else asked


def arguments_of(formula: list[Any], compute: Compute) -> dict[str, float]:
    """Return the computed arguments of a formula."""
    given: Mapping[str, CallData] = formula[1]
    return {name: formula_value(one, compute) for name, one in given.items()}


def followed(asked: CallData, compute: Compute, look_up: LookUp) -> float:
    """Return the value of a number, a looked-up field, or an expression of these.

    The result is NaN if the machine lacks one of the numbers.
    """
    if not isinstance(asked, list):
        return asked
    if len(asked) == 2:
        return _formula_followed(asked, compute, look_up)
    name, first, second = asked
    if name == "+":
        return followed(first, compute, look_up) + followed(second, compute, look_up)
    if name == "*":
        return followed(first, compute, look_up) * followed(second, compute, look_up)
    if name == "/":
        below = followed(second, compute, look_up)
        return math.nan if below == 0 else followed(first, compute, look_up) / below
    return look_up(name, first, second)


def _formula_followed(asked: list[Any], compute: Compute, look_up: LookUp) -> float:
    given: Mapping[str, CallData] = asked[1]
    numbers = {name: followed(one, compute, look_up) for name, one in given.items()}
    return (
        math.nan if any(math.isnan(one) for one in numbers.values()) else compute(asked[0], numbers)
    )


def looked_up(asked: CallData, compute: Compute, look_up: LookUp) -> CallData:
    """Return the call with each looked-up field replaced by its number."""
    if not isinstance(asked, list) or len(asked) != 2:
        return followed(asked, compute, look_up)
    given: Mapping[str, CallData] = asked[1]
    return [asked[0], {name: looked_up(one, compute, look_up) for name, one in given.items()}]


def varied(asked: CallData, changes: Mapping[str, float]) -> CallData:
    """Return a formula with different numbers: `changes` are new values by argument name.

    An argument changes wherever it has the same value as in the outermost formula that has it.
    """
    for name, new in changes.items():
        asked = _with_number(asked, name, number_of(asked, name), new)
    return asked


def number_of(asked: CallData, name: str) -> float:
    """Return an argument's number in a formula or in one inside it; NaN if there is none."""
    if not isinstance(asked, list):
        return math.nan
    given: Mapping[str, CallData] = asked[1]
    if name in given and not isinstance(given[name], list):
        return cast("float", given[name])
    found = math.nan
    for inner in given.values():
        one = number_of(inner, name)
        found = found if math.isnan(one) else one
    return found


def _with_number(asked: CallData, name: str, old: float, new: float) -> CallData:
    if not isinstance(asked, list):
        return asked
    given: Mapping[str, CallData] = asked[1]
    return [
        asked[0],
        {
            k: new if k == name and v == old else _with_number(v, name, old, new)
            for k, v in given.items()
        },
    ]


def all_hold(comparisons: list[Comparison], compute: Compute, look_up: LookUp) -> bool | None:
    """Return whether all comparisons hold; None if the machine lacks a value for one of them."""
    truth = True
    for sign, left, right in comparisons:
        one, other = followed(left, compute, look_up), followed(right, compute, look_up)
        if math.isnan(one) or math.isnan(other):
            return None
        truth = truth and _compared(sign, one, other)
    return truth


def _compared(sign: str, one: float, other: float) -> bool:
    if sign == "<":
        return one < other
    if sign == "<=":
        return one <= other
    return one > other if sign == ">" else one >= other
