"""The step of a job whose links have only a share of their bandwidth."""

from __future__ import annotations

from dataclasses import replace

from figgen.models.machine.cluster import Cluster
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.attained import Attained, on_hardware
from figgen.models.step.job import Job
from figgen.models.step.predicted_parts import computing_share, predicted_parts
from figgen.models.step.step import StepEstimate, step
from figgen.models.step.timed_step import timed_step


def with_links(
    setup: TrainingSetup,
    cluster: Cluster,
    job: Job,
    attained: Attained,
    scale_up: float = 1.0,
    network: float = 1.0,
) -> StepEstimate:
    """Return the step of a job at the `attained` rates, with links scaled to these shares."""
    links = replace(
        cluster,
        scale_up_bandwidth_bytes_per_s=scale_up * cluster.scale_up_bandwidth_bytes_per_s,
        network_bandwidth_bytes_per_s=network * cluster.network_bandwidth_bytes_per_s,
    )
    parts = predicted_parts(job, timed_step(job, on_hardware(attained, cluster, links)))
    share = computing_share(setup, links, parts)
    return step(setup, links, compute_efficiency=share, predicted=parts)
