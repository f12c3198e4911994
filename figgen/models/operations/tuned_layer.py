"""The operations of a layer on one GPU in a stack with fused kernels, such as Megatron-Core.

Queries, keys and values are one matmul, gate and up another. Norms, residual sums, the rotation of
queries and keys, and the block's gate are one kernel each. With sequence parallelism a GPU has its
part of the tokens wherever it does not have its part of a width. Attention, sorting and sending
tokens, and gradient sums depend on the layout; `figgen.models.step.layer_list` adds them.

Passes move 16-bit tensors, backward twice as many bytes as forward, since it also moves gradients.
A quantized matmul casts its input in forward and the gradient of its output in backward. The rates
were fitted without the router, a matmul of a few hundred columns, and without the passes and casts
of shared experts, so the list omits these. Casts of latent attention are those of its core's
inputs.
"""

from __future__ import annotations

from figgen.models.operations.operation import (
    BACKWARD,
    CAST,
    FORWARD,
    FUSED,
    GROUPED,
    MATMUL,
    WEIGHT,
    Operation,
    times,
)
from figgen.models.setup.layer_matrices import layer_matrices
from figgen.models.shape.model_shape import FFN_MATRICES, ModelShape

ACTIVATION_BYTES = 2
CAST_BYTES = 5
"""Bytes per element that a cast moves: 2 read, 1 written by rows and 1 by columns, 1 for scales."""
READ_AND_WRITTEN = 2 * ACTIVATION_BYTES
SUMMED = 3 * ACTIVATION_BYTES
"""Two tensors read and one written."""
FEED_FORWARD = "feed-forward"
BACKWARD_PASSES = 2
"""Bytes of a backward pass over those of the forward pass."""


def dense_operations(shape: ModelShape, tokens: float, tp: float) -> tuple[Operation, ...]:
    """Return the operations of a dense layer without its attention core."""
    block = _block(shape, "", shape.ffn_hidden, tokens, tp)
    return (*_mixing(shape, tokens, tp), *_beside(shape, FEED_FORWARD, tokens / tp, block))


def expert_operations(shape: ModelShape, tokens: float, tp: float) -> tuple[Operation, ...]:
    """Return the operations of an expert layer without attention core and routed experts."""
    experts, shared = shape.experts, tuple[Operation, ...]()
    if experts is not None and experts.shared:
        block = _block(shape, "shared ", experts.shared * experts.ffn_hidden, tokens, tp)
        shared = tuple(one for one in block if one.kind == MATMUL)
    return (*_mixing(shape, tokens, tp), *_beside(shape, FEED_FORWARD, tokens / tp, shared))


def routed_operations(shape: ModelShape, rows: float) -> tuple[Operation, ...]:
    """Return the operations of routed experts at full width, for `rows` token copies."""
    if shape.experts is None:
        return ()
    return _block(shape, "expert ", shape.experts.ffn_hidden, rows, 1, kind=GROUPED)


def head_operations(shape: ModelShape, tokens: float, tp: float) -> tuple[Operation, ...]:
    """Return the matmul that computes the logits."""
    return _linear("head", tokens, shape.hidden, shape.vocab / tp)


def _mixing(shape: ModelShape, tokens: float, tp: float) -> tuple[Operation, ...]:
    """Return attention and mixer operations of a mean layer, weighted by their shares of layers."""
    share, found = shape.state_space_layers / shape.layers, tuple[Operation, ...]()
    if share < 1:
        found += times(_attention(shape, tokens, tp), 1 - share)
    if share > 0:
        found += times(_mixer(shape, tokens, tp), share)
    return _beside(shape, "attention", tokens / tp, found)


def projected_width(shape: ModelShape) -> int:
    """Return the channels of queries, keys and values; for latent attention those of its core."""
    mla = shape.latent
    if mla is None:
        return (shape.heads + 2 * shape.kv_heads) * shape.head_dim
    return shape.heads * (2 * (mla.nope_head_dim + mla.rope_head_dim) + mla.value_head_dim)


def _beside(
    shape: ModelShape, of: str, tokens: float, block: tuple[Operation, ...]
) -> tuple[Operation, ...]:
    """Return a block between its norm and its residual sum."""
    elements = tokens * shape.hidden
    return (
        *_pass(f"norm before {of}", elements, READ_AND_WRITTEN),
        *block,
        *_pass(f"residual sum after {of}", elements, SUMMED),
    )


def _attention(shape: ModelShape, tokens: float, tp: float) -> tuple[Operation, ...]:
    part = [one for one in layer_matrices(shape, experts=False) if one.part == "attention"]
    first, rows = part[:-1], tokens / tp
    found: tuple[Operation, ...] = ()
    if shape.latent is None:
        outputs = sum(one.outputs for one in first)
        found += _linear("query, key and value", tokens, shape.hidden, outputs / tp)
    else:
        for one in first:
            found += _linear(one.name, tokens, one.inputs, one.outputs / tp)
    output = _linear("output", tokens, part[-1].inputs / tp, shape.hidden)
    return (
        *_cast(found, "query, key and value", rows * shape.hidden, rows * projected_width(shape)),
        *_pass("rotation", rows * projected_width(shape), READ_AND_WRITTEN),
        *_cast(output, "output", rows * shape.attention_width, rows * shape.hidden),
    )


def _mixer(shape: ModelShape, tokens: float, tp: float) -> tuple[Operation, ...]:
    mixers, rows = shape.state_space, tokens / tp
    if mixers is None:
        return ()
    # Channels into and out of the convolution, the scan and the gate.
    between = mixers.projected + 2 * mixers.inner
    first = _linear("mixer in", tokens, shape.hidden, mixers.projected / tp)
    last = _linear("mixer out", tokens, mixers.inner / tp, shape.hidden)
    return (
        *_cast(first, "mixer in", rows * shape.hidden, rows * mixers.projected),
        *_pass("convolution and gate", rows * between, READ_AND_WRITTEN),
        *_cast(last, "mixer out", rows * mixers.inner, rows * shape.hidden),
    )


def _block(
    shape: ModelShape, of: str, width: float, tokens: float, tp: float, kind: str = MATMUL
) -> tuple[Operation, ...]:
    """Return a feed-forward block; if it is gated, gate and up are one matmul."""
    first, rows = FFN_MATRICES[shape.ffn] - 1, tokens / tp
    name, down = f"{of}gate and up" if first > 1 else f"{of}up", f"{of}down"
    up = _linear(name, tokens, shape.hidden, first * width / tp, kind)
    back = _linear(down, tokens, width / tp, shape.hidden, kind)
    return (
        *_cast(up, name, rows * shape.hidden, rows * first * width),
        *_pass(f"{of}activation", rows * (first + 1) * width, ACTIVATION_BYTES),
        *_cast(back, down, rows * width, rows * shape.hidden),
    )


def _linear(
    name: str, tokens: float, inputs: float, outputs: float, kind: str = MATMUL
) -> tuple[Operation, ...]:
    flops = 2 * tokens * inputs * outputs
    return (
        Operation(name=name, kind=kind, phase=FORWARD, flops=flops, m=tokens, n=outputs, k=inputs),
        Operation(name=name, kind=kind, phase=BACKWARD, flops=flops, m=tokens, n=inputs, k=outputs),
        Operation(name=name, kind=kind, phase=WEIGHT, flops=flops, m=outputs, n=inputs, k=tokens),
    )


def _pass(name: str, elements: float, each: float) -> tuple[Operation, ...]:
    moved = elements * each
    return (
        Operation(name=name, kind=FUSED, phase=FORWARD, moved_bytes=moved),
        Operation(name=name, kind=FUSED, phase=BACKWARD, moved_bytes=BACKWARD_PASSES * moved),
    )


def _cast(
    matmuls: tuple[Operation, ...], name: str, inputs: float, outputs: float
) -> tuple[Operation, ...]:
    """Return matmuls with casts of their input and, in backward, of their output's gradient."""
    ahead, behind = CAST_BYTES * inputs, CAST_BYTES * outputs
    return (
        Operation(name=f"cast of {name}", kind=CAST, phase=FORWARD, moved_bytes=ahead),
        *matmuls,
        Operation(name=f"cast of {name}", kind=CAST, phase=BACKWARD, moved_bytes=behind),
    )
