"""Seconds that a layer waits while its activations are copied to the host and back."""

from __future__ import annotations

from dataclasses import replace

from figgen.equations.ops import Number, maximum, minimum, where
from figgen.models.step.attained import Attained
from figgen.models.step.job import Job
from figgen.models.step.layer_time import LayerSeconds


def with_copies(
    layer: LayerSeconds, away_bytes: Number, job: Job, attained: Attained
) -> LayerSeconds:
    """Return the layer with the time that copying `away_bytes` per token adds to it.

    Copies to the host overlap forward, copies back overlap backward; the layer waits for whatever
    takes longer than the pass. Without overlap it waits for all of it. All GPUs of a node share the
    bandwidth of the host's memory.
    """
    sharing = minimum(job.gpus, job.gpus_per_node)
    rate = minimum(attained.host_link_bytes_per_s, attained.host_bytes_per_s / sharing)
    each = away_bytes * job.tokens / rate
    forward = layer.passes.forward_s
    backward = layer.total_s - forward
    beyond = maximum(0, each - forward) + maximum(0, each - backward)
    return replace(layer, copies_s=where(job.offload_overlapped > 0, beyond, 2 * each))
