"""Fits the constants of the step model to measured steps by robust least squares in logarithms.

Every constant has an initial guess and a spread, a normal prior on its logarithm; a constant that
the runs do not determine stays at its guess. Errors are measured in logarithms. Beyond `TOLERATED`
they count linearly instead of quadratically, so that one bad run does not bend the constants. The
solver is Levenberg–Marquardt on finite differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TOLERATED = 0.08
STEP = 1e-4
ROUNDS = 200
SETTLED = 1e-9
"""The solver stops once a step reduces the sum of squares by less than this share of it.
Constants that few runs tell apart lie in a long flat valley, where single steps gain little."""


def fitted(
    predicted: Callable[[Floats], Floats],
    measured: Floats,
    weights: Floats,
    start: Floats,
    spread: Floats,
    begins: Sequence[Floats] = (),
) -> Floats:
    """Return the logarithms of the constants that predict `measured` best.

    `predicted` maps logarithms of constants to predictions; `start` and `spread` are the mean and
    the standard deviation of the prior on these logarithms. The search begins at each of `begins`,
    or at `start`, since a single start may end in a local minimum.
    """
    wanted = np.log(measured)

    def residuals(at: Floats) -> Floats:
        errors = (np.log(predicted(at)) - wanted) / TOLERATED
        return np.concatenate([softened(errors) * weights, (at - start) / spread])

    found = [_settled(residuals, point) for point in begins or (start,)]
    return min(found, key=lambda point: float(np.sum(residuals(point) ** 2)))


def _settled(residuals: Callable[[Floats], Floats], first: Floats) -> Floats:
    """Return the minimum of the sum of squares that lies downhill of `first`."""
    point, damping = first.copy(), 1e-2
    now = residuals(point)
    for _ in range(ROUNDS):
        slopes = np.stack(
            [(residuals(point + STEP * unit) - now) / STEP for unit in np.eye(len(point))], axis=1
        )
        normal, slope = slopes.T @ slopes, slopes.T @ now
        for _ in range(8):
            change = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -slope)
            after = residuals(point + change)
            if after @ after < now @ now:
                break
            damping *= 4
        else:
            return point
        gained = now @ now - after @ after
        point, now, damping = point + change, after, damping / 3
        if gained < SETTLED * (now @ now):
            break
    return point


def slopes(predicted: Callable[[Floats], Floats], point: Floats) -> Floats:
    """Return the derivatives of log predictions (rows) with respect to log constants (columns)."""
    now = np.log(predicted(point))
    return np.stack(
        [(np.log(predicted(point + STEP * unit)) - now) / STEP for unit in np.eye(len(point))],
        axis=1,
    )


def covariance(slopes: Floats, weights: Floats, spread: Floats) -> Floats:
    """Return the covariance of the fitted logarithms from the curvature of the fit.

    Errors are taken as independent and of size `TOLERATED`, so the result is slightly too confident
    where runs of one family err alike. A variance never exceeds the square of `spread`, the prior.
    """
    seen = slopes * (weights / TOLERATED)[:, None]
    return np.asarray(np.linalg.inv(seen.T @ seen + np.diag(spread**-2.0)), dtype=np.float64)


def uncertainty(slopes: Floats, weights: Floats, spread: Floats) -> Floats:
    """Return the standard deviations of the fitted logarithms."""
    return np.sqrt(np.diag(covariance(slopes, weights, spread)))


def softened(errors: Floats) -> Floats:
    """Return the signed square roots of the soft absolute loss 2(√(1 + e²) − 1)."""
    sizes: Floats = np.sqrt(2 * (np.sqrt(1 + errors**2) - 1))
    return np.copysign(sizes, errors)


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the rank correlation of two lists; ties rank in list order."""
    ranks = [np.argsort(np.argsort(values)).astype(float) for values in (one, other)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
