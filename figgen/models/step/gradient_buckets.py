"""The number of buckets that gradients are best cut into, given the backward that can hide them.

More buckets start earlier and leave a shorter last one, but each bucket pays its latencies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from figgen.formulas.data_parallel import exposed_communication_time
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.data_traffic import GRADIENTS
from figgen.models.step.stage_time import StageTime
from figgen.models.step.step_traffic import BACKWARD

MOST_BUCKETS = 1024
"""The most buckets tried; if calls cost nothing, more are always better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketChoice:
    """The buckets of a pipeline rank's gradients: the current number and the best one.

    `communication_s` is the time to send all bytes, `compute_s` the backward that can hide them and
    `overhead_s` the latency of each bucket. `exposed_s` is the communication left after the
    backward.
    """

    axis: str
    communication_s: float
    compute_s: float
    overhead_s: float
    buckets: int
    exposed_s: float
    best_buckets: int
    best_exposed_s: float


def gradient_buckets(setup: TrainingSetup, stages: Sequence[StageTime]) -> BucketChoice | None:
    """Return the gradient buckets of a pipeline rank, routed experts excluded, timed by `stages`.

    If gradients travel after each backward, the buckets are those of the first stage. Returns None
    if nothing is reduced, or if ZeRO gathers weights, whose calls follow the layers.
    """
    timed = stages[:1] if setup.scatters else stages
    entries = [
        entry
        for stage in timed
        for entry in stage.traffic
        if entry.traffic.purpose == GRADIENTS and entry.traffic.axis == setup.dense_data_axis
    ]
    if not entries or setup.gathers:
        return None
    calls = sum(entry.traffic.calls for entry in entries)
    communication_s = sum(entry.traffic.calls * entry.call.bytes_s for entry in entries)
    compute_s = sum(stage.backward_s + stage.exposed_s(BACKWARD) for stage in timed)
    if setup.scatters:
        compute_s = timed[0].backward_s
    overhead_s = entries[0].call.latency_s
    best = best_number(communication_s, compute_s, overhead_s)
    return BucketChoice(
        axis=setup.dense_data_axis,
        communication_s=communication_s,
        compute_s=compute_s,
        overhead_s=overhead_s,
        buckets=calls,
        exposed_s=_exposed_s(communication_s, compute_s, calls, overhead_s),
        best_buckets=best,
        best_exposed_s=_exposed_s(communication_s, compute_s, best, overhead_s),
    )


def best_number(communication_s: float, compute_s: float, overhead_s: float) -> int:
    """Return the fewest buckets, at most `MOST_BUCKETS`, that expose the least time."""
    best, least = 1, _exposed_s(communication_s, compute_s, 1, overhead_s)
    for buckets in range(2, MOST_BUCKETS + 1):
        exposed_s = _exposed_s(communication_s, compute_s, buckets, overhead_s)
        # The exposed time is convex in the number of buckets: after an increase it keeps growing.
        if exposed_s > least:
            break
        if exposed_s < least:
            best, least = buckets, exposed_s
    return best


def _exposed_s(communication_s: float, compute_s: float, buckets: int, overhead_s: float) -> float:
    return float(exposed_communication_time(communication_s, compute_s, buckets, overhead_s))
