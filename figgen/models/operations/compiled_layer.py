"""The operations of a layer, embedding, head and loss as `torch.compile` fuses them.

A fused pass reads its inputs once and writes once what is used later, which are the fewest bytes
possible; bytes that kernels move beyond that are part of their rate. Matmuls and attention stay as
they are, with one exception: while it is traced, transformers gives attention an explicit mask, for
which keys and values of shared heads are repeated.
"""

from __future__ import annotations

from figgen.models.operations.device_job import DeviceJob
from figgen.models.operations.eager_layer import attention
from figgen.models.operations.ends import (
    COMPILED_LOSS,
    COMPILED_LOSS_BACKWARD,
    embedding,
)
from figgen.models.operations.operation import (
    BACKWARD,
    FORWARD,
    FUSED,
    WEIGHT,
    Operation,
    grouped_matmuls,
    kept,
    matmul,
    passes,
    small,
)


def compiled_layer(job: DeviceJob, *, experts: bool) -> tuple[Operation, ...]:
    """Return the operations of a layer, forward and backward, without recomputation."""
    shape, hidden, query, key = job.shape, job.shape.hidden, job.query_width, job.key_width
    if job.biased:
        ffn = shape.ffn_hidden
        return (
            *_norm(job, gradients=1), *_linear(job, "query, key and value", hidden, 3 * query),
            *_fused("joined gradients", BACKWARD, job.tokens * query, 12),
            *attention(job), *_linear(job, "output", query, hidden),
            *_norm(job, gradients=1), *_linear(job, "up", hidden, ffn),
            *_fused("GELU", FORWARD, job.tokens * ffn, 4),
            *_fused("GELU", BACKWARD, job.tokens * ffn, 6),
            kept("input and output of GELU", 4.0 * job.tokens * ffn),
            *_linear(job, "down", ffn, hidden),
            *_fused("bias gradients", WEIGHT, job.tokens, 2 * (3 * query + 2 * hidden + ffn)),
        )  # fmt: skip
    block = _experts(job) if experts else _gated(job)
    return (
        *_norm(job, gradients=3), *_linear(job, "query", hidden, query),
        *_linear(job, "key", hidden, key), *_linear(job, "value", hidden, key),
        *_rotation(job), *masked_attention(job), *_linear(job, "output", query, hidden),
        *_norm(job, gradients=2), *block,
    )  # fmt: skip


def compiled_ends(job: DeviceJob) -> tuple[Operation, ...]:
    """Return the operations of embedding, last norm, head and loss."""
    shape = job.shape
    return (
        *embedding(job),
        *_norm(job, gradients=1),
        *_linear(job, "head", shape.hidden, shape.vocab),
        *passes(COMPILED_LOSS, FORWARD, job.logits),
        *passes(COMPILED_LOSS_BACKWARD, BACKWARD, job.logits),
    )


def masked_attention(job: DeviceJob) -> tuple[Operation, ...]:
    """Return attention that repeats keys and values for every query head, as a mask requires."""
    repeated = 4.0 * job.tokens * (job.query_width - job.key_width)
    return (*attention(job), kept("repeated keys and values", repeated))


def _fused(name: str, phase: str, elements: float, each: float) -> tuple[Operation, ...]:
    return passes(((name, FUSED, each),), phase, elements)


def _norm(job: DeviceJob, *, gradients: int) -> tuple[Operation, ...]:
    """Return a residual sum and a norm; backward adds the gradients of `gradients` layers."""
    elements, each = job.tokens * job.shape.hidden, job.stack.residual_bytes
    narrowed = 2 if job.stack.autocast else 0
    return (
        *_fused("residual sum and norm", FORWARD, elements, 4 + 2 * each),
        kept("residual and normed", (each + 2) * elements),
        *_fused("norm", BACKWARD, elements, 2 * gradients + 3 * each + narrowed),
    )


def _linear(job: DeviceJob, name: str, inputs: int, outputs: int) -> tuple[Operation, ...]:
    tokens, weights = job.tokens, inputs * outputs
    found = [
        matmul(name, FORWARD, m=tokens, n=outputs, k=inputs),
        matmul(f"{name} weight", WEIGHT, m=outputs, n=inputs, k=tokens),
        matmul(f"{name} input", BACKWARD, m=tokens, n=inputs, k=outputs),
    ]
    if job.stack.autocast:
        found += _fused(f"{name} weight to BF16", FORWARD, weights, 6)
        found.append(kept(f"{name} weight", 0, 2 * weights))
        found += _fused(f"{name} gradient to FP32", WEIGHT, weights, 6)
    return tuple(found)


def _rotation(job: DeviceJob) -> tuple[Operation, ...]:
    """Return the rotation of queries and keys.

    Keys and values are written for every query head. A norm of each head is a reduction, with which
    the rotation of halves cannot be fused: queries and keys are then read and written once more.
    """
    query, key = job.query_width, job.key_width
    ahead, behind = 6 * query + 2 * key, 6 * query + 2 * key
    if key < query:
        ahead, behind = ahead + 2 * query + 2 * key, behind + 2 * query + 2 * key
    held = 0.0
    if job.shape.qk_norm != "none":
        ahead, behind = ahead + 4 * (query + key), behind + 8 * (query + key)
        held = 2.0 * (query + key) + 4 * (job.shape.heads + job.shape.kv_heads)
    return (
        *_fused("rotation", FORWARD, job.tokens, ahead),
        *_fused("rotation", BACKWARD, job.tokens, behind),
        kept("inputs of head norms", job.tokens * held),
    )


def _gated(job: DeviceJob) -> tuple[Operation, ...]:
    hidden, ffn = job.shape.hidden, job.shape.ffn_hidden
    elements = job.tokens * ffn
    return (
        *_linear(job, "gate", hidden, ffn),
        *_linear(job, "up", hidden, ffn),
        *_fused("SwiGLU", FORWARD, elements, 6),
        *_fused("SwiGLU", BACKWARD, elements, 10),
        kept("gate, up and their product", 6.0 * elements),
        *_linear(job, "down", ffn, hidden),
    )


def _experts(job: DeviceJob) -> tuple[Operation, ...]:
    """Return the routed experts, in FP32 under autocast as in eager PyTorch."""
    experts = job.shape.experts
    if experts is None:
        return _gated(job)
    hidden, each = job.shape.hidden, job.stack.residual_bytes
    rows = job.tokens * experts.top_k
    kernels = 2 * experts.count if job.stack.autocast else 2
    found = [
        matmul("router", FORWARD, m=job.tokens, n=experts.count, k=hidden),
        small("routing", FORWARD, 16),
        small("routing", BACKWARD, 24),
        *_fused("dispatch", FORWARD, rows * hidden, 2 * each),
        *_fused("gate", FORWARD, rows * experts.ffn_hidden, 3 * each),
        *_fused("combine", FORWARD, rows * hidden, 2 * each),
        *_fused("combine", BACKWARD, rows * hidden, 5 * each),
        *_fused("gate", BACKWARD, rows * experts.ffn_hidden, 5 * each),
        *_fused("dispatch", BACKWARD, rows * hidden, 3 * each),
        kept("experts", each * rows * (2 * hidden + 3 * experts.ffn_hidden)),
    ]
    for name, inputs, outputs in (
        ("gate and up", hidden, 2 * experts.ffn_hidden),
        ("down", experts.ffn_hidden, hidden),
    ):
        found += grouped_matmuls(
            name, inputs, outputs, rows=rows, groups=experts.count, kernels=kernels
        )
    return tuple(found)
