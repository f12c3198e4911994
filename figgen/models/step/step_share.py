"""The share of the peak at which the parts of a step add up to a given time."""

from __future__ import annotations

from figgen.models.machine.cluster import Cluster
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.step import timing

FIRST, LEAST, MOST = 0.5, 0.01, 1.0
ROUNDS = 30
NEAR = 1e-12


def share_for(
    setup: TrainingSetup, cluster: Cluster, wanted_s: float, first: float = FIRST
) -> float:
    """The share of the dense peak at which a step takes `wanted_s`, or the nearest it can have.

    Time is nearly a straight line over the inverse of the share: what computes and what idles goes
    with it, messages hardly change. So each round draws that line through the last two, and the
    first one through nothing; as time is made of straight pieces, three or four rounds meet it to
    the last digits, from whatever `first`.
    """
    time_s_at = timing(setup, cluster)
    share, inverse = first, 1 / first
    found_s = time_s_at(share)
    slope = found_s / inverse
    for _ in range(ROUNDS):
        missing_s = wanted_s - found_s
        if abs(missing_s) <= NEAR * wanted_s:
            break
        share = 1 / min(1 / LEAST, max(1 / MOST, inverse + missing_s / slope))
        if 1 / share == inverse:
            break
        before_s, found_s = found_s, time_s_at(share)
        slope = max((found_s - before_s) / (1 / share - inverse), slope / 2)
        inverse = 1 / share
    return share
