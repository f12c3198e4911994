"""The functions a formula may call, exact on Python numbers and element by element on arrays.

`max` and `math.ceil` fail on arrays, `np.maximum` turns Python numbers into NumPy ones; these
take either kind and give the same kind back. They are also the only calls that the printers
know, so that a formula can always be shown.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

# A Python number or an array of numbers. Broadcasting (a scalar with an array gives an array)
# cannot be written as a signature of overloads over several arguments, hence not a union.
Number: TypeAlias = Any


_log2 = np.vectorize(math.log2, otypes=[float])
_exp = np.vectorize(math.exp, otypes=[float])
_pow = np.vectorize(math.pow, otypes=[float])
# NumPy's own round the last digit by the kind of processor; a page and its tests need one answer.


def _scalars(*values: Number) -> bool:
    return np.ndarray not in map(type, values)


def minimum(a: Number, b: Number) -> Number:
    """The smaller of `a` and `b`."""
    return min(a, b) if _scalars(a, b) else np.minimum(a, b)


def maximum(a: Number, b: Number) -> Number:
    """The larger of `a` and `b`."""
    return max(a, b) if _scalars(a, b) else np.maximum(a, b)


def ceil(x: Number) -> Number:
    """The smallest whole number that is not below `x`; an int for a Python number."""
    return math.ceil(x) if _scalars(x) else np.ceil(x)


def floor(x: Number) -> Number:
    """The largest whole number that is not above `x`; an int for a Python number."""
    return math.floor(x) if _scalars(x) else np.floor(x)


def log2(x: Number) -> Number:
    """The binary logarithm, exact at powers of two."""
    return math.log2(x) if _scalars(x) else _log2(x)


def sqrt(x: Number) -> Number:
    """The square root."""
    return math.sqrt(x) if _scalars(x) else np.sqrt(x)


def exp(x: Number) -> Number:
    """The exponential, e to the power of `x`."""
    return math.exp(x) if _scalars(x) else _exp(x)


def power(x: Number, y: Number) -> Number:
    """Return `x` to the power of `y`; formulas, which get numbers, write `x ** y`."""
    return x**y if _scalars(x, y) else _pow(x, y)


def where(condition: Number, a: Number, b: Number) -> Number:
    """`a` where the condition holds, else `b`. Both are computed, so both must be computable."""
    return (a if condition else b) if _scalars(condition, a, b) else np.where(condition, a, b)


OPERATORS = {
    operator.__name__: operator
    for operator in (minimum, maximum, ceil, floor, log2, sqrt, exp, where)
}
