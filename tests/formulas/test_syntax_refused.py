"""Unsupported syntax is refused by name, and so is a registration that lacks what a page needs."""

import math
from collections.abc import Callable

import pytest

from figgen.equations.notation import Notation, count, positive
from figgen.equations.ops import Number, minimum, where
from figgen.equations.syntax import conditions, expression
from figgen.errors import InputError
from figgen.formulas import FORMULAS
from figgen.formulas.notation import formula
from tests.formulas.conftest import Register, Written

REFUSED: list[tuple[Written, str]] = []


def refused(named: str) -> Callable[[Written], Written]:
    """Return the message with which a function is refused."""

    def keep(function: Written) -> Written:
        REFUSED.append((function, named))
        return function

    return keep


@refused(r"test_syntax_refused\.py:\d+: formula attribute cannot use ranks\.real")
def attribute(ranks: Number) -> Number:
    """Uses what is not a formula."""
    return ranks.real


@refused(r"use 1 if ranks else 2: expected where\(ranks, 1, 2\)")
def chosen(ranks: Number) -> Number:
    """Uses what is not a formula."""
    return 1 if ranks else 2


@refused(r"call max\(ranks, 1\).*did you mean maximum\?")
def built_in(ranks: Number) -> Number:
    """Uses what is not a formula."""
    return max(ranks, 1)


@refused(r"call math\.sqrt\(ranks\).*did you mean sqrt\?")
def of_a_module(ranks: Number) -> Number:
    """Uses what is not a formula."""
    return math.sqrt(ranks)


@refused(r"call abs\(ranks\): expected maximum\(ranks, -ranks\)")
def magnitude(ranks: Number) -> Number:
    """Uses what is not a formula."""
    return abs(ranks)


@refused("lambda")
def of_a_function(ranks: Number) -> Number:
    """Uses what is not a formula."""
    return (lambda one: one)(ranks)


@refused("minimum")
def keyword(ranks: Number) -> Number:
    """Uses what is not a formula."""
    return minimum(ranks, b=1)


@refused("REGISTERED")
def outside(ranks: Number) -> Number:
    """Uses what is not a formula."""
    return ranks * REGISTERED  # type: ignore[name-defined] # noqa: F821


@refused("sum|step")
def loop(ranks: Number) -> Number:
    """Uses what is not a formula."""
    return sum(step for step in range(ranks))


@refused("True")
def truth(ranks: Number) -> Number:
    """Uses what is not a formula."""
    return where(True, ranks, 1)


@refused("single assignments")
def branch(ranks: Number) -> Number:
    """Uses what is not a formula."""
    if ranks:
        return 1
    return 2


@refused("single assignments")
def twice(ranks: Number) -> Number:
    """Uses what is not a formula."""
    ranks = ranks + 1
    return ranks


@refused("returns nothing")
def nothing(ranks: Number) -> Number:
    """Uses what is not a formula."""
    half = ranks / 2  # noqa: F841


@pytest.mark.parametrize(
    ("function", "named"), REFUSED, ids=lambda value: getattr(value, "__name__", "")
)
def test_other_syntax_is_refused_by_name(register: Register, function: Written, named: str) -> None:
    with pytest.raises(InputError, match=named):
        expression(register(function))


def test_condition_may_use_only_arguments(register: Register) -> None:
    def invented(ranks: Number) -> Number:
        """An invented formula."""
        return ranks

    found = register(invented, where="stages >= 1")  # type: ignore[call-arg]
    with pytest.raises(InputError, match="stages"):
        conditions(found)


def invented(ranks: Number) -> Number:
    """An invented formula."""
    return ranks


def undocumented(ranks: Number) -> Number:
    return ranks


def unnoted(hobbits: Number) -> Number:
    """A formula of an argument that has no notation."""
    return hobbits


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (invented, {"source": ""}, "no source"),
        (invented, {"symbol": " "}, "no symbol"),
        (invented, {"unit": ""}, "unknown unit"),
        (invented, {"unit": "GB"}, "not an SI unit"),
        (undocumented, {}, "no docstring"),
        (unnoted, {}, "hobbits"),
    ],
)
def test_registration_wants_all_that_a_page_shows(
    function: Written, given: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        formula(**{"symbol": "X", "unit": "1", "source": "a test", **given})(function)
    assert function.__name__ not in FORMULAS


def test_notation_defines_each_name_once() -> None:
    """A dict would silently keep the last one: `layer_parameters` used to be both W_i
    and N_layer."""
    first = positive("layer_parameters", "W_i", "param", "parameters of one layer")
    second = count("layer_parameters", r"N_\text{layer}", "param", "parameters of one layer")
    with pytest.raises(InputError, match="layer_parameters twice: expected one line, as W_i"):
        Notation(first, second)


def test_two_formulas_cannot_share_a_name(register: Register) -> None:
    register(invented)
    with pytest.raises(InputError, match="two formulas"):
        register(invented)
