"""The spread of the next publisher's memory peak around its prediction.

The peaks of one publisher have errors in common, because the same people, machines and habits
produced them. Publishers are therefore counted instead of peaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

STAND_INS = 2
"""Number of average publishers added to those of a single software, for publishers not seen yet."""

STUDENT_95 = (2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812)
"""The 95 % quantile of Student's t for 2 to 10 degrees of freedom: NIST/SEMATECH e-Handbook of
Statistical Methods, section 1.3.6.7.2."""

NORMAL_95 = 1.645
"""The same quantile of a normal distribution."""


def peak_spread(errors: Sequence[float], others: float) -> float:
    """Return the spread of the next publisher's peaks.

    `errors` are those of a software's publishers, and `others` that of an average publisher. With
    few publishers the variance is uncertain, so the 95% quantile, at which a step counts as
    fitting, is that of Student's t; more than eight publishers count as eight.
    """
    count = STAND_INS + len(errors)
    squares = STAND_INS * others**2 + sum(error**2 for error in errors)
    student = STUDENT_95[min(count, STAND_INS + len(STUDENT_95) - 1) - STAND_INS]
    return sqrt(squares / count) * student / NORMAL_95
