"""The functions that a formula may call, exact on Python numbers and element-wise on arrays.

`max` and `math.ceil` fail on arrays, and `np.maximum` converts Python numbers to NumPy's; these
functions accept either kind and return the same kind. The printers support no other calls, so that
every formula can be shown.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

# A Python number or an array of numbers. Broadcasting (a scalar with an array gives an array)
# cannot be written as a signature of overloads over several arguments, hence not a union.
Number: TypeAlias = Any

pi = math.pi


@cache
def _each(function: Callable[..., float]) -> Callable[..., Any]:
    """Return a function of `math` for arrays, element by element.

    NumPy's versions differ in the last digit by processor; pages and tests need one answer.
    """
    import numpy as np

    return np.vectorize(function, otypes=[float])


_PLAIN = frozenset((int, float, bool))


def _scalars(a: Number, b: Number = 0, c: Number = 0) -> bool:
    # Models ask this millions of times, nearly always about plain numbers.
    if type(a) in _PLAIN and type(b) in _PLAIN and type(c) in _PLAIN:
        return True
    # While nobody has imported NumPy, there are no arrays; a small site never needs it.
    np = sys.modules.get("numpy")
    return np is None or np.ndarray not in (type(a), type(b), type(c))


def _numpy() -> Any:
    return sys.modules["numpy"]


def minimum(a: Number, b: Number) -> Number:
    """Return the smaller of `a` and `b`."""
    return min(a, b) if _scalars(a, b) else _numpy().minimum(a, b)


def maximum(a: Number, b: Number) -> Number:
    """Return the larger of `a` and `b`."""
    return max(a, b) if _scalars(a, b) else _numpy().maximum(a, b)


def ceil(x: Number) -> Number:
    """Return the smallest whole number ≥ `x`; an int for a Python number."""
    return math.ceil(x) if _scalars(x) else _numpy().ceil(x)


def floor(x: Number) -> Number:
    """Return the largest whole number ≤ `x`; an int for a Python number."""
    return math.floor(x) if _scalars(x) else _numpy().floor(x)


def log2(x: Number) -> Number:
    """Return the binary logarithm, exact at powers of two."""
    return math.log2(x) if _scalars(x) else _each(math.log2)(x)


def sqrt(x: Number) -> Number:
    """Return the square root."""
    return math.sqrt(x) if _scalars(x) else _numpy().sqrt(x)


def exp(x: Number) -> Number:
    """Return e to the power of `x`."""
    return math.exp(x) if _scalars(x) else _each(math.exp)(x)


def log(x: Number) -> Number:
    """Return the natural logarithm."""
    return math.log(x) if _scalars(x) else _each(math.log)(x)


def sin(x: Number) -> Number:
    """Return the sine of an angle in radians."""
    return math.sin(x) if _scalars(x) else _each(math.sin)(x)


def cos(x: Number) -> Number:
    """Return the cosine of an angle in radians."""
    return math.cos(x) if _scalars(x) else _each(math.cos)(x)


def power(x: Number, y: Number) -> Number:
    """Return `x` to the power of `y`; formulas, which take numbers, use `x ** y`."""
    return x**y if _scalars(x, y) else _each(math.pow)(x, y)


def where(condition: Number, a: Number, b: Number) -> Number:
    """Return `a` where the condition holds, else `b`; both are evaluated and must be valid."""
    return (a if condition else b) if _scalars(condition, a, b) else _numpy().where(condition, a, b)


OPERATORS = {
    operator.__name__: operator
    for operator in (minimum, maximum, ceil, floor, log2, log, sqrt, exp, sin, cos, where)
}
CONSTANTS = {"pi": pi}
"""The numbers that a formula may name."""
