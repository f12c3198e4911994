"""The chance that a step fits, from its predicted memory and its framework's prediction error."""

from __future__ import annotations

from math import erf

from figgen.equations.ops import Number, sqrt
from figgen.errors import InputError

SAFE = 0.95
"""The least chance at which a step counts as fitting, unless another chance is given."""

LEAST_PERCENT, MOST_PERCENT = 1.0, 99.9
"""The lowest and the highest chance that may be asked for, in percent."""

USUAL_PEAK_BYTES = 64e9
"""The peak that spreads are relative to: what a step may take of an 80 GB GPU. The variance of a
peak grows in proportion to its bytes, as that of a sum of many independent parts does, so a peak of
four times as many bytes spreads twice as many."""

MOST_DEVIATIONS = 8.0
"""Standard deviations on either side within which `deviations_below` searches."""


def fit_probability(
    needed_bytes: float, capacity_bytes: float, spread: float, waiting_bytes: float = 0.0
) -> float:
    """Return the chance, 0 to 1, that a step fits whose predicted need is `needed_bytes`.

    The actual need is normally distributed around the prediction, with the standard deviation of
    `deviation_bytes`. Raises InputError for sizes or a spread that are not above 0.
    """
    for name, value in (
        ("needed_bytes", needed_bytes), ("capacity_bytes", capacity_bytes), ("spread", spread),
    ):  # fmt: skip
        if value <= 0:
            raise InputError(name, expected="> 0", got=value)
    deviation = deviation_bytes(needed_bytes, capacity_bytes, spread, waiting_bytes)
    return normal_share((capacity_bytes - needed_bytes) / deviation)


def deviation_bytes(
    needed_bytes: float, capacity_bytes: float, spread: float, waiting_bytes: float
) -> float:
    """Return the standard deviation of what a step needs around its prediction.

    The variance is proportional to the need, with a relative standard deviation of `spread` at
    `USUAL_PEAK_BYTES`. Tensors that wait for collectives add to it, with a standard deviation of
    `waiting_bytes`, where the prediction is below the capacity: they only ever take more.
    """
    waiting = waiting_bytes if capacity_bytes > needed_bytes else 0.0
    # In shares of the usual peak, whose squares are finite for any number of bytes.
    share = sqrt(spread**2 * needed_bytes / USUAL_PEAK_BYTES + (waiting / USUAL_PEAK_BYTES) ** 2)
    found: float = USUAL_PEAK_BYTES * share
    return found


def most_bytes(
    capacity_bytes: float, spread: float, deviations: float, waiting_bytes: Number = 0.0
) -> Number:
    """Return the most bytes that a step may be predicted to need.

    It then fits with the chance that `deviations_below` turns into `deviations`.
    """
    growth = spread**2 * USUAL_PEAK_BYTES / capacity_bytes
    waiting = waiting_bytes / capacity_bytes if deviations > 0 else 0.0
    half = deviations**2 * growth / 2
    return capacity_bytes * (1 + half - deviations * sqrt(growth * (1 + half / 2) + waiting**2))


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


def chance_shown(probability: float) -> str:
    """Return a chance in whole percent, such as 94%, but <1% for 0% and >99% for 100%."""
    if probability < 0.005:
        return "<1%"
    return ">99%" if probability >= 0.995 else f"{probability:.0%}"


def fit_words(probability: float) -> str:
    """Return the chance that a step fits, in words and as a number."""
    number = chance_shown(probability)
    if probability >= SAFE:
        return f"fits (chance {number})"
    if probability >= 0.5:
        return f"likely fits (chance {number})"
    if probability > 1 - SAFE:
        return f"likely does not fit (chance {number})"
    return f"does not fit (chance {number})"
