"""The operations of a step's update on one GPU and the seconds of each.

They add up to the update and to the time that the step waits for its gradients and new weights.
"""

from __future__ import annotations

from figgen.models.operations.operation import COPY, MESSAGE, UPDATE, Operation
from figgen.models.operations.update import tuned_update
from figgen.models.step.layer_list import LEAST, ListedJob, TimedOperation, lasting, placed
from figgen.models.step.timed_step import StepSeconds, replicas, updated_parameters


def update_list(listed: ListedJob, found: StepSeconds) -> tuple[TimedOperation, ...]:
    """Return the operations of the update of the step `found`, in running order.

    Data parallelism has one line, which shows the exposed time of summing gradients and, where ZeRO
    divides the state, of gathering weights; so has what is updated on the host.
    """
    job = listed.job
    here = (1 - job.offloaded) * updated_parameters(job)
    kernels = [_timed(listed, one) for one in tuned_update(here)]
    away_s = found.update_s - sum(one.time_s for one in kernels)
    sent_s = found.gradients_s if replicas(job) > 1 else 0.0
    rest = (
        lasting("update on the host, with copies", COPY, UPDATE, away_s),
        lasting("gradients and weights of data parallelism", MESSAGE, UPDATE, sent_s),
    )
    least_s = LEAST * (found.update_s + sent_s)
    return tuple(one for one in (*kernels, *rest) if one.time_s > least_s)


def _timed(listed: ListedJob, one: Operation) -> TimedOperation:
    """Return a kernel with its seconds at the rate that updates attain."""
    at, moved = listed.attained, one.moved_bytes
    seconds = at.optimizer * moved / at.memory_bytes_per_s
    return placed(listed, one.name, one.kind, one.phase, seconds, moved_bytes=moved)
