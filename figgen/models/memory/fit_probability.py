"""The chance that a step fits, from its predicted memory and its framework's prediction error."""

from __future__ import annotations

from math import erf, exp, log, sqrt

from figgen.errors import InputError

SAFE = 0.95
"""The least chance at which a step counts as fitting, unless another chance is given."""

LEAST_PERCENT, MOST_PERCENT = 1.0, 99.9
"""The lowest and the highest chance that may be asked for, in percent."""

MOST_DEVIATIONS = 8.0
"""Standard deviations on either side within which `deviations_below` searches."""


def fit_probability(needed_bytes: float, capacity_bytes: float, spread: float) -> float:
    """Return the chance, 0 to 1, that a step fits whose predicted need is `needed_bytes`.

    The logarithm of the actual need is normally distributed around the prediction, with a standard
    deviation of `spread`. Raises InputError for sizes or a spread that are not above 0.
    """
    for name, value in (
        ("needed_bytes", needed_bytes), ("capacity_bytes", capacity_bytes), ("spread", spread),
    ):  # fmt: skip
        if value <= 0:
            raise InputError(name, expected="> 0", got=value)
    return normal_share(log(capacity_bytes / needed_bytes) / spread)


def most_bytes(capacity_bytes: float, spread: float, chance: float) -> float:
    """Return the most bytes that a step may be predicted to need to fit with this `chance`.

    Raises InputError for a chance that is not between 0 and 1.
    """
    return capacity_bytes * exp(-spread * deviations_below(chance))


def deviations_below(share: float) -> float:
    """Return the number of standard deviations that has `share` of a normal distribution below it.

    Raises InputError for a share that is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise InputError("share", expected="between 0 and 1", got=share)
    low, high = -MOST_DEVIATIONS, MOST_DEVIATIONS
    for _ in range(60):
        middle = (low + high) / 2
        if normal_share(middle) < share:
            low = middle
        else:
            high = middle
    return high


def normal_share(deviations: float) -> float:
    """Return the share of a normal distribution below this number of standard deviations."""
    return (1 + erf(deviations / sqrt(2))) / 2


def fit_words(probability: float) -> str:
    """Return the chance that a step fits, in words and as a number."""
    shown = min(max(probability, 0.01), 0.99)
    number = f"{'<' if probability < 0.01 else '>' if probability > 0.99 else ''}{shown:.0%}"
    if probability >= SAFE:
        return f"fits (chance {number})"
    if probability >= 0.5:
        return f"likely fits (chance {number})"
    if probability > 1 - SAFE:
        return f"likely does not fit (chance {number})"
    return f"does not fit (chance {number})"
