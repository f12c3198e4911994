"""The whole step of one device as a list of operations."""

from __future__ import annotations

from dataclasses import replace

from figgen.models.operations.compiled_layer import compiled_ends, compiled_layer
from figgen.models.operations.device_job import DeviceJob
from figgen.models.operations.eager_layer import eager_layer
from figgen.models.operations.ends import accumulation, embedding, head_and_loss
from figgen.models.operations.operation import (
    BACKWARD,
    FORWARD,
    Operation,
    of_phase,
    times,
)
from figgen.models.operations.update import torch_update


def layer_operations(job: DeviceJob, *, experts: bool) -> tuple[Operation, ...]:
    """Return the operations of one layer and one microbatch, forward and backward."""
    layer = compiled_layer if job.stack.compiled else eager_layer
    return layer(job, experts=experts)


def end_operations(job: DeviceJob) -> tuple[Operation, ...]:
    """Return the operations of embedding, last norm, head and loss for one microbatch."""
    if job.stack.compiled:
        return compiled_ends(job)
    return (*embedding(job), *head_and_loss(job))


def layer_kinds(job: DeviceJob) -> tuple[tuple[int, bool], ...]:
    """Return the numbers of dense and expert layers, each with whether it has experts."""
    dense = job.first_layers_dense
    return ((dense, False), (job.shape.layers - dense, True))


def step_operations(job: DeviceJob) -> tuple[Operation, ...]:
    """Return everything that a step computes, counted over layers and microbatches."""
    found: tuple[Operation, ...] = ()
    for layers, experts in layer_kinds(job):
        if layers:
            layer = layer_operations(job, experts=experts)
            again = recomputed(layer) if job.recomputed else ()
            found = (*found, *times((*layer, *again), layers * job.microbatches))
    found = (*found, *times(end_operations(job), job.microbatches))
    found = (*found, *times(accumulation(job), job.microbatches - 1))
    return (*found, *torch_update(job.trained, job.gradient_bytes / job.trained))


def recomputed(layer: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """Return the forward operations of a layer as backward repeats them."""
    return tuple(
        replace(one, phase=BACKWARD, name=f"{one.name}, recomputed", kept_bytes=0.0)
        for one in of_phase(layer, FORWARD)
    )
