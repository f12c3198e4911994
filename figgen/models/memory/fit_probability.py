"""How likely a step fits: its memory is a prediction, whose error is known by framework."""

from __future__ import annotations

from math import erf, exp, log, sqrt

from figgen.errors import InputError

SAFE = 0.95
"""A step counts as fitting from this chance on, unless another one is asked for."""

LEAST_PERCENT, MOST_PERCENT = 1.0, 99.9
"""The chances that may be asked for."""

MOST_DEVIATIONS = 8.0
"""Standard deviations outside of which `deviations_below` does not look."""


def fit_probability(needed_bytes: float, capacity_bytes: float, spread: float) -> float:
    """The chance that a step which is predicted to need so much fits.

    The logarithm of what it needs is normal around the prediction, with a standard deviation of
    `spread`. Raises InputError for sizes or a spread that are not above 0.
    """
    for name, value in (
        ("needed_bytes", needed_bytes), ("capacity_bytes", capacity_bytes), ("spread", spread),
    ):  # fmt: skip
        if value <= 0:
            raise InputError(name, expected="> 0", got=value)
    return normal_share(log(capacity_bytes / needed_bytes) / spread)


def most_bytes(capacity_bytes: float, spread: float, chance: float) -> float:
    """The most that a step may be predicted to need for it to fit with such a chance.

    Raises InputError for a chance that is not between 0 and 1.
    """
    return capacity_bytes * exp(-spread * deviations_below(chance))


def deviations_below(share: float) -> float:
    """The standard deviations that have this share of a normal distribution below them.

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
    """The share of a normal distribution below so many standard deviations."""
    return (1 + erf(deviations / sqrt(2))) / 2


def fit_words(probability: float) -> str:
    """The chance that a step fits, in words with its number."""
    shown = min(max(probability, 0.01), 0.99)
    number = f"{'<' if probability < 0.01 else '>' if probability > 0.99 else ''}{shown:.0%}"
    if probability >= SAFE:
        return f"fits (chance {number})"
    if probability >= 0.5:
        return f"likely fits (chance {number})"
    if probability > 1 - SAFE:
        return f"likely does not fit (chance {number})"
    return f"does not fit (chance {number})"
