"""Calls that a page writes, as data that a script computes again: printed.

A number is itself. A formula is `[name, {argument: data}]`, what is looked up for a machine
`[name, [arguments], field]`, and a sum or product `["+", data, data]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

CallData: TypeAlias = float | list[Any]

Compute: TypeAlias = Callable[[str, Mapping[str, float]], float]
"""The value of a formula by its name and its arguments; nan outside its domain."""

LookUp: TypeAlias = Callable[[str, list[Any], str], float]
"""A field of what a name and arguments look up; nan where the machine has none."""

Comparison: TypeAlias = tuple[str, CallData, CallData]
"""A sign, and what stands to its left and right."""


def formula_value(asked: CallData, compute: Compute) -> float:
    """The value of a number or formula."""
    return compute(asked[0], arguments_of(asked, compute)) if isinstance(asked, list) else asked


def arguments_of(formula: list[Any], compute: Compute) -> dict[str, float]:
    """The arguments of a formula, each computed."""
    given: Mapping[str, CallData] = formula[1]
    return {name: formula_value(one, compute) for name, one in given.items()}


def followed(asked: CallData, compute: Compute, look_up: LookUp) -> float:
    """The value of a number, of a field that is looked up, or of what is computed from these.

    Formulas, sums and products are computed; nan where the machine lacks one of their numbers.
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
    return look_up(name, first, second)


def _formula_followed(asked: list[Any], compute: Compute, look_up: LookUp) -> float:
    given: Mapping[str, CallData] = asked[1]
    numbers = {name: followed(one, compute, look_up) for name, one in given.items()}
    return (
        math.nan if any(math.isnan(one) for one in numbers.values()) else compute(asked[0], numbers)
    )


def looked_up(asked: CallData, compute: Compute, look_up: LookUp) -> CallData:
    """The call with a number for each field that it looks up; its formulas stay formulas."""
    if not isinstance(asked, list) or len(asked) != 2:
        return followed(asked, compute, look_up)
    given: Mapping[str, CallData] = asked[1]
    return [asked[0], {name: looked_up(one, compute, look_up) for name, one in given.items()}]


def varied(asked: CallData, changes: Mapping[str, float]) -> CallData:
    """A formula with other numbers: `changes` gives each argument's name its new value.

    An argument changes wherever it has the value that it has in the outermost formula with one.
    """
    for name, new in changes.items():
        asked = _with_number(asked, name, number_of(asked, name), new)
    return asked


def number_of(asked: CallData, name: str) -> float:
    """The number that a formula, or one inside it, has for an argument; nan where none has."""
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
    """Whether all comparisons hold; None where the machine has no value for one of them."""
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
