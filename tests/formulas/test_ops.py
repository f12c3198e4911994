"""The operators on numbers and arrays, where they could be off by one."""

import math

import numpy as np
import pytest

from figgen.equations.ops import (
    OPERATORS,
    ceil,
    exp,
    floor,
    log2,
    maximum,
    minimum,
    power,
    sqrt,
    where,
)


def test_logarithms_of_powers_of_two_are_whole() -> None:
    for exponent in range(63):
        assert log2(2**exponent) == exponent
        assert ceil(log2(2**exponent)) == exponent
    powers = np.arange(63)
    np.testing.assert_array_equal(log2(2.0**powers), powers)


def test_rounded_logarithm_counts_doublings() -> None:
    for n in range(1, 5000):
        assert ceil(log2(n)) == (n - 1).bit_length()
    ranks = np.arange(1, 5000)
    np.testing.assert_array_equal(ceil(log2(ranks)), [(n - 1).bit_length() for n in range(1, 5000)])


ARGUMENTS = {
    "minimum": (2, 3.5), "maximum": (2, 3.5), "ceil": (2.5,), "floor": (2.5,), "log2": (8.0,),
    "sqrt": (9.0,), "exp": (0.0,), "where": (True, 2, 3.5), "log": (1.0,), "sin": (0.0,),
    "cos": (0.0,),
}  # fmt: skip
RESULTS = {
    "minimum": 2, "maximum": 3.5, "ceil": 3, "floor": 2, "log2": 3.0, "sqrt": 3.0, "exp": 1.0,
    "where": 2, "log": 0.0, "sin": 0.0, "cos": 1.0,
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_keeps_the_kind_of_its_arguments(name: str) -> None:
    alone = OPERATORS[name](*ARGUMENTS[name])
    assert alone == RESULTS[name]
    assert type(alone) is type(RESULTS[name])
    arrays = OPERATORS[name](*(np.array([value, value]) for value in ARGUMENTS[name]))
    assert isinstance(arrays, np.ndarray)
    np.testing.assert_array_equal(arrays, [alone, alone])


def test_a_number_and_an_array_broadcast() -> None:
    values = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(minimum(2, values), [1, 2, 2])
    np.testing.assert_array_equal(maximum(values, 2), [2, 2, 3])
    np.testing.assert_array_equal(where(values > 1, values, 0), [0, 2, 3])


def test_rounding_goes_the_right_way_below_zero() -> None:
    assert (ceil(-2.5), floor(-2.5)) == (-2, -3)
    assert sqrt(2) == math.sqrt(2)


def test_arrays_are_rounded_as_numbers_are_on_every_processor() -> None:
    """With AVX-512, NumPy's own logarithms and powers differ from C's in the last digit."""
    x, y = np.linspace(0.001, 3, 5000), np.linspace(0.1, 9, 5000)
    for operator in (log2, exp):
        assert [*operator(x)] == [operator(float(one)) for one in x]
    assert [*power(x, y)] == [power(float(a), float(b)) for a, b in zip(x, y, strict=True)]
    assert [*power(x, 6)] == [float(one) ** 6 for one in x]
