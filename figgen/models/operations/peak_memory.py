"""Memory of a step on one device, allocated and reserved, from its operations."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.models.memory.rank_bytes import FRAGMENTED
from figgen.models.operations.device_job import DeviceJob
from figgen.models.operations.device_step import end_operations, layer_kinds, layer_operations
from figgen.models.operations.ends import loss_bytes
from figgen.models.operations.operation import total_kept_bytes

WORKSPACE_BYTES = 2 * 2.0**25
"""Workspaces of cuBLAS and cuBLASLt on Hopper, 32 MiB each."""
OUTSIDE_BYTES = 0.82e9
"""Bytes that a process holds on an H100 outside the allocator: context and kernels, no NCCL."""
AGAIN_LOGIT_BYTES = 4
"""Bytes per logit that stay reserved if an eager model recomputes its layers, because the allocator
cannot reuse the blocks of the logits' copies for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """Bytes on the device at the peak of a step, and the moment of the peak.

    `held_bytes` are weights and optimizer state, which stay between steps. `allocated_bytes` are in
    tensors, `reserved_bytes` in the caching allocator.
    """

    held_bytes: float
    forward_bytes: float
    allocated_bytes: float
    reserved_bytes: float
    moment: str

    @property
    def device_bytes(self) -> float:
        """Reserved bytes and what the process holds outside the allocator."""
        return self.reserved_bytes + OUTSIDE_BYTES


def device_memory(job: DeviceJob) -> DeviceMemory:
    """Return the peak of a step, in the loss with all activations or at the end of backward."""
    held = job.held_bytes + WORKSPACE_BYTES
    gradients = job.gradient_bytes
    layers, one_layer, casts = _layers(job)
    ends = end_operations(job)
    loss = total_kept_bytes(ends) + loss_bytes(job)
    summed = gradients if job.microbatches > 1 else 0.0
    casts += sum(one.cached_bytes for one in ends)
    forward = layers + loss + casts + summed
    tied = job.shape.tied_embeddings and not job.lora_rank
    table = job.stack.residual_bytes * job.shape.vocab * job.shape.hidden * tied
    backward = gradients + table
    if job.stack.compiled:
        # A compiled backward returns all gradients at its end, beside the accumulated ones.
        backward += summed
    again = layers + one_layer + gradients / 2 if job.recomputed else 0.0
    peak = max(forward, backward, again)
    moment = "loss" if peak == forward else "end of backward"
    extra = FRAGMENTED * min(forward, gradients + table)
    if job.recomputed and not job.stack.compiled:
        extra += AGAIN_LOGIT_BYTES * job.logits
    return DeviceMemory(
        held_bytes=held, forward_bytes=forward, allocated_bytes=held + peak,
        reserved_bytes=held + peak + extra, moment=moment,
    )  # fmt: skip


def _layers(job: DeviceJob) -> tuple[float, float, float]:
    """Return the bytes that all layers keep, those of one recomputed layer, and of cached casts."""
    whole, most, casts = 0.0, 0.0, 0.0
    for layers, experts in layer_kinds(job):
        if layers:
            operations = layer_operations(job, experts=experts)
            each = total_kept_bytes(operations)
            whole, most = whole + layers * each, max(most, each)
            casts += layers * sum(one.cached_bytes for one in operations)
    if not job.recomputed:
        return whole, 0.0, casts
    inputs = job.shape.layers * job.stack.residual_bytes * job.tokens * job.shape.hidden
    return inputs, most, 0.0
