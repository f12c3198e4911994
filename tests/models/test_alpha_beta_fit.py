"""A fitted line, compared with NumPy's weighted polynomial fit, exact lines, and its
own optimum."""

from __future__ import annotations

import numpy as np
import pytest

from figgen.errors import InputError
from figgen.models.algorithms.alpha_beta_fit import fit_line

SIZES = tuple(1024.0 * 2**k for k in range(0, 24, 2))
NOISE = (1.3, 0.8, 1.1, 0.9, 1.2, 0.7, 1.05, 0.95, 1.4, 0.85, 1.0, 1.1)
TIMES = tuple((20e-6 + s / 50e9) * f for s, f in zip(SIZES, NOISE, strict=True))


@pytest.mark.parametrize("relative", [True, False])
def test_the_line_is_numpys_weighted_fit(relative: bool) -> None:
    weights = 1 / np.array(TIMES) if relative else np.ones(len(TIMES))
    slope, start = np.polyfit(SIZES, TIMES, 1, w=weights)
    fit = fit_line(SIZES, TIMES, relative=relative)
    assert fit.intercept_s == pytest.approx(start)
    assert fit.seconds_per_byte == pytest.approx(slope)
    assert fit.residuals == pytest.approx((start + slope * np.array(SIZES)) / TIMES - 1, abs=1e-9)


@pytest.mark.parametrize("relative", [True, False])
def test_an_exact_line_is_recovered_over_seven_decades(relative: bool) -> None:
    times = tuple(14e-6 + s / 25e9 for s in SIZES)
    fit = fit_line(SIZES, times, relative=relative)
    assert fit.intercept_s == pytest.approx(14e-6)
    assert fit.seconds_per_byte == pytest.approx(1 / 25e9)
    assert fit.half_bytes == pytest.approx(14e-6 * 25e9)
    assert abs(fit.worst) < 1e-9


def test_no_other_line_has_smaller_relative_misses() -> None:
    fit = fit_line(SIZES, TIMES)
    least = sum(r**2 for r in fit.residuals)
    for a in (0.99, 1.0, 1.01):
        for b in (0.99, 1.0, 1.01):
            misses = (
                (a * fit.intercept_s + b * fit.seconds_per_byte * s) / t - 1
                for s, t in zip(SIZES, TIMES, strict=True)
            )
            assert sum(m**2 for m in misses) >= least


def test_the_worst_residual_keeps_its_sign() -> None:
    fit = fit_line((1.0, 2.0, 3.0, 4.0), (1.0, 2.0, 6.0, 4.0))
    assert fit.worst == min(fit.residuals) < 0 < max(fit.residuals)
    assert fit.time_s(0.0) == fit.intercept_s


@pytest.mark.parametrize(
    ("sizes", "times", "what"),
    [
        ((1.0, 2.0), (1.0, 2.0), "points"),
        ((1.0, 2.0, 3.0), (1.0, 2.0), "points"),
        ((1.0, 2.0, 3.0), (1.0, 0.0, 2.0), "times_s"),
        ((1.0, 2.0, 3.0), (1.0, float("inf"), 2.0), "times_s"),
        ((2.0, 2.0, 2.0), (1.0, 1.1, 1.2), "sizes"),
    ],
)
def test_what_no_line_goes_through_is_refused(
    sizes: tuple[float, ...], times: tuple[float, ...], what: str
) -> None:
    with pytest.raises(InputError, match=what):
        fit_line(sizes, times)
