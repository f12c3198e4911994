"""Constants of the model of time from measured steps: robust least squares in logarithms.

Every constant has a first guess and a freedom; what the runs do not decide stays at the guess
(a normal prior in its logarithm). Errors count by their logarithm and, beyond `TOLERATED`, by
their size instead of its square, so that a run that went wrong does not bend the constants.
Solved by Gauss–Newton steps with damping (Levenberg–Marquardt) on finite differences.
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
"""Share of the sum of squares that a step must gain for another one. Constants that only a few
runs tell apart lie in a long flat valley, in which single steps gain little."""


def fitted(
    predicted: Callable[[Floats], Floats],
    measured: Floats,
    weights: Floats,
    start: Floats,
    spread: Floats,
    begins: Sequence[Floats] = (),
) -> Floats:
    """Logarithms of the constants that predict `measured` best.

    `predicted` takes logarithms of constants, `start` and `spread` are of those. The search begins
    at each of `begins`, or at `start`: it may end in a valley that is not the deepest.
    """
    wanted = np.log(measured)

    def residuals(at: Floats) -> Floats:
        errors = (np.log(predicted(at)) - wanted) / TOLERATED
        return np.concatenate([softened(errors) * weights, (at - start) / spread])

    found = [_settled(residuals, point) for point in begins or (start,)]
    return min(found, key=lambda point: float(np.sum(residuals(point) ** 2)))


def _settled(residuals: Callable[[Floats], Floats], first: Floats) -> Floats:
    """Where the sum of squares is least downhill of `first`."""
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
    """Change of every logarithm of a prediction, by row, for that of every constant, by column."""
    now = np.log(predicted(point))
    return np.stack(
        [(np.log(predicted(point + STEP * unit)) - now) / STEP for unit in np.eye(len(point))],
        axis=1,
    )


def covariance(slopes: Floats, weights: Floats, spread: Floats) -> Floats:
    """Covariance of the fitted logarithms, by the curvature of the fit.

    As if errors were independent and of the size of `TOLERATED`, so a little too confident where
    runs of one family err alike; never above the square of `spread`, what is known without any run.
    """
    seen = slopes * (weights / TOLERATED)[:, None]
    return np.asarray(np.linalg.inv(seen.T @ seen + np.diag(spread**-2.0)), dtype=np.float64)


def uncertainty(slopes: Floats, weights: Floats, spread: Floats) -> Floats:
    """Standard deviations of the fitted logarithms, by their `covariance`."""
    return np.sqrt(np.diag(covariance(slopes, weights, spread)))


def softened(errors: Floats) -> Floats:
    """Signed roots of the soft absolute loss 2(√(1 + e²) − 1)."""
    sizes: Floats = np.sqrt(2 * (np.sqrt(1 + errors**2) - 1))
    return np.copysign(sizes, errors)


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Correlation of the ranks of two lists; ties in the order in which they stand."""
    ranks = [np.argsort(np.argsort(values)).astype(float) for values in (one, other)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
