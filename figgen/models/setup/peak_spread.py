"""How far the next publisher's peak of memory may lie from its prediction.

A publisher's peaks are off together, because the same people, machines and habits are behind all of
them. So publishers count, not peaks.
"""

from __future__ import annotations

from math import sqrt

ALL_ERRORS = 0.14
"""The root mean square of `peak_errors` of every publisher of every modelled software."""

STAND_INS = 2
"""How many publishers of any software stand in for those of one software whom nobody has seen."""

STUDENT_95 = (2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812)
"""The 95 % quantile of Student's t for 2 to 10 degrees of freedom: NIST/SEMATECH e-Handbook of
Statistical Methods, section 1.3.6.7.2."""

NORMAL_95 = 1.645
"""The same of a normal distribution."""


def peak_spread(errors: tuple[float, ...], others: float = ALL_ERRORS) -> float:
    """Return the standard deviation of the logarithm of the next publisher's peak.

    `errors` are those of a software's publishers, and `others` is that of a stand-in. The variance
    is uncertain with few publishers, so that 95 %, at which a step counts as fitting, is where
    Student's t has it; more than eight publishers count as eight there.
    """
    count = STAND_INS + len(errors)
    squares = STAND_INS * others**2 + sum(error**2 for error in errors)
    student = STUDENT_95[min(count, STAND_INS + len(STUDENT_95) - 1) - STAND_INS]
    return sqrt(squares / count) * student / NORMAL_95
