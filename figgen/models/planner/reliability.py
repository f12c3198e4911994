"""The best checkpoint interval and the number of spare nodes, which have no closed form."""

from __future__ import annotations

from math import exp, expm1

from figgen.errors import InputError, check_share

ROUNDS = 100


def best_interval_s(stall_s: float, mtbf_s: float, lag_s: float = 0.0) -> float:
    """Return the seconds of training between checkpoints for which `goodput` is largest.

    At the maximum, e^((T + δ)/F) · (1 − T/F) = 1 for an interval T, a stall δ and a mean time
    between failures F. The interval depends neither on the restart nor on the lag, except that no
    checkpoint can begin before the last one is safe.

    Raises InputError for a stall or a mean time that is not above 0, or for a negative lag.
    """
    for what, value in (("stall_s", stall_s), ("mtbf_s", mtbf_s)):
        if not value > 0:
            raise InputError(what, expected="> 0", got=value)
    if lag_s < 0:
        raise InputError("lag_s", expected=">= 0", got=lag_s)
    low, high = 0.0, 1.0
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        # (e^x)(1 − t) − 1 with x = t + δ/F, arranged to lose no digits where x is small.
        slope = expm1(middle + stall_s / mtbf_s) * (1 - middle) - middle
        low, high = (middle, high) if slope > 0 else (low, middle)
    return max(low * mtbf_s, lag_s - stall_s)


def spare_nodes(in_repair: float, confidence: float) -> int:
    """Return the fewest spare nodes that suffice in a share `confidence` of all moments.

    `in_repair` is the mean number of nodes in repair. If failures are independent, their number is
    Poisson distributed, whatever the distribution of repair times (M/G/∞). Raises InputError for a
    share outside 0 … 1.
    """
    check_share("confidence", confidence)
    if not 0 <= in_repair < 700 or confidence >= 1:
        raise InputError(
            "nodes in repair", expected="0 to 700, for a confidence below 1", got=in_repair
        )
    spares, chance = 0, exp(-in_repair)
    total = chance
    while total < confidence:
        spares += 1
        chance *= in_repair / spares
        total += chance
    return spares
