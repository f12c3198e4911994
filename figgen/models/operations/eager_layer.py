"""The operations of one transformer layer as eager PyTorch runs them, forward and backward."""

from __future__ import annotations

from figgen.models.operations.device_job import DeviceJob
from figgen.models.operations.eager_experts import expert_block
from figgen.models.operations.operation import (
    ATTENTION,
    BACKWARD,
    BROADCAST,
    CONTIGUOUS,
    FORWARD,
    STRIDED,
    WEIGHT,
    Operation,
    kept,
    matmul,
    passes,
    small,
)
from figgen.models.operations.passes_eager import (
    ADAPTER_INPUT,
    ADAPTER_INPUT_BACKWARD,
    ADAPTER_OUTPUT,
    ADAPTER_OUTPUT_BACKWARD,
    GELU_NEW_AUTOCAST,
    GELU_NEW_AUTOCAST_BACKWARD,
    GELU_NEW_BF16,
    GELU_NEW_BF16_BACKWARD,
    HEAD_NORM_AUTOCAST,
    HEAD_NORM_AUTOCAST_BACKWARD,
    HEAD_NORM_BF16_BACKWARD,
    RMS_NORM_BF16,
    RMS_NORM_BF16_BACKWARD,
    RMS_NORM_FP32,
    RMS_NORM_FP32_BACKWARD,
    RMS_NORM_FROZEN_BACKWARD,
    ROTARY_AUTOCAST,
    ROTARY_AUTOCAST_BACKWARD,
    ROTARY_BF16,
    ROTARY_BF16_BACKWARD,
    ROTARY_FP32,
    ROTARY_FP32_BACKWARD,
    SWIGLU,
    SWIGLU_BACKWARD,
)

BACKWARD_WORK = 2.5
"""FLOPs of attention backward over forward: five matmuls to two (arXiv:2307.08691)."""


def eager_layer(job: DeviceJob, *, experts: bool) -> tuple[Operation, ...]:
    """Return the operations of a layer, forward and backward, without recomputation."""
    if job.biased:
        return (*_biased_attention(job), *_plain_block(job))
    block = expert_block(job) if experts else _gated_block(job)
    norm = (*rms_norm(job), *residual_gradient(job))
    return (*norm, *_rotary_attention(job), residual(job), *norm, *block, residual(job))


def rms_norm(job: DeviceJob) -> tuple[Operation, ...]:
    """Return an RMSNorm of the residual stream, forward and backward, and what it keeps."""
    elements, autocast = job.tokens * job.shape.hidden, job.stack.autocast
    ahead = RMS_NORM_FP32 if autocast else RMS_NORM_BF16
    behind = RMS_NORM_FP32_BACKWARD if autocast else RMS_NORM_BF16_BACKWARD
    # FP32 keeps the input and the normalised input. BF16 keeps the input as FP32, the normalised
    # input and the output, which nothing needs if weights are frozen.
    held = 8
    if job.lora_rank:
        behind, held = RMS_NORM_FROZEN_BACKWARD, 4
    return (
        *passes(ahead, FORWARD, elements, of="norm"),
        kept("norm", held * elements + 4 * job.tokens),
        small("norm", FORWARD, 2),
        *passes(behind, BACKWARD, elements, of="norm"),
        small("norm", BACKWARD, 3),
    )


def head_norm(job: DeviceJob, width: int) -> tuple[Operation, ...]:
    """Return a norm of each query or key head, whose gradient arrives in a different layout."""
    elements, autocast = job.tokens * width, job.stack.autocast
    ahead = HEAD_NORM_AUTOCAST if autocast else RMS_NORM_BF16
    behind = HEAD_NORM_AUTOCAST_BACKWARD if autocast else HEAD_NORM_BF16_BACKWARD
    return (
        *passes(ahead, FORWARD, elements, of="head norm"),
        kept("head norm", 6 * elements + 4 * elements / job.shape.head_dim),
        small("head norm", FORWARD, 2),
        *passes(behind, BACKWARD, elements, of="head norm"),
        small("head norm", BACKWARD, 3),
    )


def residual(job: DeviceJob) -> Operation:
    """Return the addition of a block's output to the residual stream."""
    elements = job.tokens * job.shape.hidden
    kind, each = (BROADCAST, 10) if job.stack.autocast else (CONTIGUOUS, 6)
    return Operation(name="residual sum", kind=kind, phase=FORWARD, moved_bytes=each * elements)


def residual_gradient(job: DeviceJob) -> tuple[Operation, ...]:
    """Return the addition of the gradient around a block to the gradient through it."""
    each = 3 * job.stack.residual_bytes
    return passes(
        (("residual gradient", CONTIGUOUS, each),), BACKWARD, job.tokens * job.shape.hidden
    )


def linear(
    job: DeviceJob,
    name: str,
    inputs: int,
    outputs: int,
    *,
    widened: bool = False,
    joined: bool = False,
    biased: bool = False,
    aligned: bool = True,
    adapted: bool = True,
) -> tuple[Operation, ...]:
    """Return the operations of a linear layer.

    Under autocast, the input of a layer after a norm is FP32 and has to be cast (`widened`). The
    input of any other layer is BF16; its output goes to the residual stream, so that its output's
    gradient is FP32. With `joined`, the gradient of its input is added to that of another layer
    with the same input. If adapters are trained the layer is frozen, and has an adapter if
    `adapted`.
    """
    tokens, weights = job.tokens, inputs * outputs
    found = [
        matmul(name, FORWARD, m=tokens, n=outputs, k=inputs, aligned=aligned),
        matmul(f"{name} input", BACKWARD, m=tokens, n=inputs, k=outputs, aligned=aligned),
    ]
    if not job.lora_rank:
        found.append(
            matmul(f"{name} weight", WEIGHT, m=outputs, n=inputs, k=tokens, aligned=aligned)
        )
    elif adapted:
        found += adapter(job, name, inputs, outputs)
    if job.stack.autocast:
        found += passes((("weight to BF16", CONTIGUOUS, 6),), FORWARD, weights, of=name)
        found.append(kept(f"{name} weight", 0, 2 * weights))
        found += passes((("weight gradient to FP32", BROADCAST, 6),), WEIGHT, weights, of=name)
        if widened:
            elements = tokens * inputs
            found += passes((("input to BF16", CONTIGUOUS, 6),), FORWARD, elements, of=name)
            found.append(kept(f"{name} input", 2 * elements))
            found += passes((("gradient to FP32", BROADCAST, 6),), BACKWARD, elements, of=name)
        else:
            elements = tokens * outputs
            found += passes((("gradient to BF16", CONTIGUOUS, 6),), BACKWARD, elements, of=name)
    if joined:
        each = 3 * (job.stack.residual_bytes if widened else 2)
        elements = tokens * inputs
        found += passes((("sum of gradients", CONTIGUOUS, each),), BACKWARD, elements, of=name)
    if biased:
        elements = tokens * outputs
        found += passes((("bias gradient", BROADCAST, 2),), WEIGHT, elements, of=name)
        found.append(small(f"{name} bias", WEIGHT, 1 if job.stack.autocast else 0))
    return tuple(found)


def adapter(job: DeviceJob, name: str, inputs: int, outputs: int) -> tuple[Operation, ...]:
    """Return PEFT's adapter of a matrix, which keeps the matrix's input in FP32."""
    read, written, of = job.tokens * inputs, job.tokens * outputs, f"{name} adapter"
    return (
        *passes(ADAPTER_INPUT, FORWARD, read, of=of),
        kept(of, 4 * read + 4 * job.tokens * job.lora_rank),
        *passes(ADAPTER_OUTPUT, FORWARD, written, of=of),
        *passes(ADAPTER_OUTPUT_BACKWARD, BACKWARD, written, of=of),
        *passes(ADAPTER_INPUT_BACKWARD, BACKWARD, read, of=of),
    )


def attention(job: DeviceJob) -> tuple[Operation, ...]:
    """Return the causal attention kernels.

    They keep queries, keys, values, outputs, and one sum per row.
    """
    tokens, wide = job.tokens, job.query_width
    work = 2.0 * tokens * job.sequence * wide
    held = tokens * (4.0 * wide + 4 * job.key_width + 4 * job.shape.heads)
    shared = job.shape.kv_heads < job.shape.heads
    return (
        Operation(
            name="attention", kind=ATTENTION, phase=FORWARD, flops=work, m=job.sequence,
            n=tokens * job.shape.heads, width=job.shape.head_dim, kept_bytes=held, kernels=2,
        ),
        Operation(
            name="attention", kind=ATTENTION, phase=BACKWARD, flops=BACKWARD_WORK * work,
            m=job.sequence, n=tokens * job.shape.heads, width=job.shape.head_dim,
            kernels=6 if shared else 4,
        ),
    )  # fmt: skip


def _rotary_attention(job: DeviceJob) -> tuple[Operation, ...]:
    shape, hidden = job.shape, job.shape.hidden
    query, key = job.query_width, job.key_width
    normed = shape.qk_norm != "none"
    found = [
        *linear(job, "query", hidden, query, widened=True),
        *linear(job, "key", hidden, key, widened=True, joined=True),
        *linear(job, "value", hidden, key, widened=True, joined=True),
    ]
    if not job.stack.autocast:
        ahead, behind = ROTARY_BF16, ROTARY_BF16_BACKWARD
    elif normed:
        ahead, behind = ROTARY_FP32, ROTARY_FP32_BACKWARD
    else:
        ahead, behind = ROTARY_AUTOCAST, ROTARY_AUTOCAST_BACKWARD
    for width in (query, key):
        elements = job.tokens * width
        if normed:
            found += head_norm(job, width)
        found += passes(ahead, FORWARD, elements, of="rotation")
        found += passes(behind, BACKWARD, elements, of="rotation")
        found += passes((("transposed gradient", STRIDED, 4),), BACKWARD, elements)
    return (*found, *attention(job), *linear(job, "output", query, hidden))


def _gated_block(job: DeviceJob) -> tuple[Operation, ...]:
    hidden, ffn = job.shape.hidden, job.shape.ffn_hidden
    elements = job.tokens * ffn
    return (
        *linear(job, "gate", hidden, ffn, widened=True),
        *linear(job, "up", hidden, ffn, widened=True, joined=True),
        *passes(SWIGLU, FORWARD, elements),
        *passes(SWIGLU_BACKWARD, BACKWARD, elements),
        # The product of gate and up is the input of a matrix, whose own gradient alone needs it.
        kept("gate, SiLU, up and their product", (6 if job.lora_rank else 8) * elements),
        *linear(job, "down", ffn, hidden),
    )


def layer_norm(job: DeviceJob) -> tuple[Operation, ...]:
    """Return a LayerNorm: one kernel forward, two backward, and its output in BF16."""
    elements, each = job.tokens * job.shape.hidden, job.stack.residual_bytes
    found = [
        *passes((("layer norm", BROADCAST, 2 * each),), FORWARD, elements),
        kept("layer norm", each * elements + 2 * each * job.tokens),
        *passes((("layer norm", BROADCAST, 3 * each),), BACKWARD, elements),
        *passes((("layer norm weights", BROADCAST, 2 * each),), BACKWARD, elements),
    ]
    if not job.stack.autocast:
        found.append(kept("layer norm output", 2 * elements))
    return tuple(found)


def _biased_attention(job: DeviceJob) -> tuple[Operation, ...]:
    hidden, wide = job.shape.hidden, job.query_width
    return (
        *layer_norm(job),
        *residual_gradient(job),
        *linear(job, "query, key and value", hidden, 3 * wide, widened=True, biased=True),
        *attention(job),
        *passes((("joined gradients", STRIDED, 12),), BACKWARD, job.tokens * wide),
        *linear(job, "output", wide, hidden, biased=True),
        residual(job),
    )


def _plain_block(job: DeviceJob) -> tuple[Operation, ...]:
    """Return GPT-2's block with `gelu_new`, which eager PyTorch computes operator by operator."""
    hidden, ffn = job.shape.hidden, job.shape.ffn_hidden
    elements, autocast = job.tokens * ffn, job.stack.autocast
    return (
        *layer_norm(job),
        *residual_gradient(job),
        *linear(job, "up", hidden, ffn, widened=True, biased=True),
        *passes(GELU_NEW_AUTOCAST if autocast else GELU_NEW_BF16, FORWARD, elements),
        *passes(
            GELU_NEW_AUTOCAST_BACKWARD if autocast else GELU_NEW_BF16_BACKWARD, BACKWARD, elements
        ),
        kept("GELU", (16 if autocast else 10) * elements),
        *linear(job, "down", ffn, hidden, biased=True),
        residual(job),
    )
