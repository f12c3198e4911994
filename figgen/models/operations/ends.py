"""Operations outside the layers: embedding, last norm, head and loss, and accumulation."""

from __future__ import annotations

from figgen.models.operations.device_job import DeviceJob
from figgen.models.operations.eager_layer import layer_norm, linear, rms_norm
from figgen.models.operations.operation import (
    BACKWARD,
    BROADCAST,
    CONTIGUOUS,
    FORWARD,
    FUSED,
    SCATTER,
    SOFTMAX,
    Operation,
    Pass,
    kept,
    passes,
    small,
)

START_KERNELS = 30
"""Kernels that make positions, masks and rotary tables of a microbatch."""
ALIGNMENT = 8
"""Fast 16-bit matmuls need widths that are multiples of this; a compiler pads others."""

EAGER_LOSS: tuple[Pass, ...] = (("logits to FP32", BROADCAST, 6), ("log-softmax", SOFTMAX, 8))
EAGER_LOSS_BACKWARD: tuple[Pass, ...] = (
    ("clear", CONTIGUOUS, 4), ("log-softmax", SOFTMAX, 12), ("gradient to BF16", CONTIGUOUS, 6),
)  # fmt: skip
COMPILED_LOSS: tuple[Pass, ...] = (("cross-entropy", FUSED, 2),)
COMPILED_LOSS_BACKWARD: tuple[Pass, ...] = (("cross-entropy", FUSED, 4),)

EAGER_LOGIT_BYTES, COMPILED_LOGIT_BYTES = 12, 6
"""Bytes per logit while its gradient is computed: eager holds three FP32 copies (log-probabilities,
their gradient, the gradient of logits), compiled one FP32 and one BF16 copy."""


def embedding(job: DeviceJob) -> tuple[Operation, ...]:
    """Return the lookup of tokens and the dense gradient of the table."""
    elements, each = job.tokens * job.shape.hidden, job.stack.residual_bytes
    table = job.shape.vocab * job.shape.hidden
    found = [
        small("positions and tables", FORWARD, START_KERNELS),
        *passes((("embedding", CONTIGUOUS, 2 * each),), FORWARD, elements),
    ]
    if job.lora_rank:
        return tuple(found)
    found += [
        *passes((("clear table", CONTIGUOUS, each),), BACKWARD, table),
        *passes((("embedding", SCATTER, 2 * each),), BACKWARD, elements),
        small("sort tokens", BACKWARD, 16),
    ]
    if job.shape.learned_positions:
        found += passes((("position", CONTIGUOUS, 3 * each),), FORWARD, elements)
        found += passes((("position", BROADCAST, each),), BACKWARD, elements)
    if job.shape.tied_embeddings:
        found += passes((("sum of tables", CONTIGUOUS, 3 * each),), BACKWARD, table)
    return tuple(found)


def head_and_loss(job: DeviceJob) -> tuple[Operation, ...]:
    """Return the operations of the last norm, the head and cross-entropy."""
    shape, logits = job.shape, job.logits
    compiled = job.stack.compiled
    aligned = compiled or shape.vocab % ALIGNMENT == 0
    ahead, behind = (
        (COMPILED_LOSS, COMPILED_LOSS_BACKWARD) if compiled else (EAGER_LOSS, EAGER_LOSS_BACKWARD)
    )
    norm = layer_norm(job) if job.biased else rms_norm(job)
    return (
        *norm,
        *linear(
            job, "head", shape.hidden, shape.vocab, widened=True, aligned=aligned, adapted=False
        ),
        *passes(ahead, FORWARD, logits),
        small("loss", FORWARD, 6),
        *passes(behind, BACKWARD, logits),
        small("loss", BACKWARD, 4),
    )


def loss_bytes(job: DeviceJob) -> float:
    """Return the peak bytes of logits and their gradients."""
    return job.logits * (COMPILED_LOGIT_BYTES if job.stack.compiled else EAGER_LOGIT_BYTES)


def accumulation(job: DeviceJob) -> tuple[Operation, ...]:
    """Return the addition of a microbatch's gradients to the accumulated ones."""
    each = 3 * job.gradient_bytes / job.trained
    return passes((("accumulated gradients", CONTIGUOUS, each),), BACKWARD, job.trained)


def embedded(job: DeviceJob) -> Operation:
    """Return what the embedding keeps: the token ids."""
    return kept("token numbers", 8.0 * job.tokens)
