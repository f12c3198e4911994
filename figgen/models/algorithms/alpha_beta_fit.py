"""Fit latency and bandwidth: a least-squares line through measured times over message sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from figgen.errors import InputError


@dataclass(frozen=True, slots=True)
class Fit:
    """The line t = `intercept_s` + `seconds_per_byte` · S, and its residuals.

    `residuals[i]` is fitted over measured time, minus 1: positive where the line is too slow.
    """

    intercept_s: float
    seconds_per_byte: float
    residuals: tuple[float, ...]

    def time_s(self, message_bytes: float) -> float:
        """Return the fitted time in seconds, which a poor unweighted fit can make negative."""
        return self.intercept_s + self.seconds_per_byte * message_bytes

    @property
    def half_bytes(self) -> float:
        """The size in bytes at which intercept and transfer take equally long (Hockney's n½)."""
        return self.intercept_s / self.seconds_per_byte

    @property
    def worst(self) -> float:
        """The residual that is farthest from 0, with its sign."""
        return max(self.residuals, key=abs)


def fit_line(sizes: Sequence[float], times_s: Sequence[float], *, relative: bool = True) -> Fit:
    """Fit the line with the least sum of squared residuals, relative to the measured times.

    With `relative=False` residuals are in seconds, so that the largest messages dominate.
    Raises InputError for fewer than three points, for unequal lengths, for times ≤ 0 and for
    sizes that are all the same.
    """
    if len(sizes) != len(times_s) or len(sizes) < 3:
        raise InputError("points", expected="three or more sizes, a time each", got=len(sizes))
    if not all(0 < time < math.inf for time in times_s):
        raise InputError("times_s", expected="finite times > 0", got=tuple(times_s))
    weights = [time**-2 if relative else 1.0 for time in times_s]
    total = math.fsum(weights)
    mean_size = math.fsum(w * s for w, s in zip(weights, sizes, strict=True)) / total
    mean_time = math.fsum(w * t for w, t in zip(weights, times_s, strict=True)) / total
    spread = math.fsum(w * (s - mean_size) ** 2 for w, s in zip(weights, sizes, strict=True))
    if not spread > 0:
        raise InputError("sizes", expected="more than one size", got=tuple(sizes))
    slope = (
        math.fsum(
            w * (s - mean_size) * (t - mean_time)
            for w, s, t in zip(weights, sizes, times_s, strict=True)
        )
        / spread
    )
    start = mean_time - slope * mean_size
    residuals = tuple((start + slope * s) / t - 1 for s, t in zip(sizes, times_s, strict=True))
    return Fit(start, slope, residuals)
