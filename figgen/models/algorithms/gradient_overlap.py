"""Overlap of all-reduces with the backward pass: ready gradients, buckets and exposed time.

Tensors come in the order of the backward pass, last layer first. A bucket is closed as soon as
it holds its cap, so that a tensor larger than the cap has a bucket to itself and is never cut;
the first bucket has a smaller cap, to start early. All-reduces queue on one stream.
Source: Li et al. 2020, arXiv:2006.15704; PyTorch reducer.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from figgen.errors import InputError
from figgen.models.shape.model_shape import FFN_MATRICES, ModelShape
from figgen.models.shape.transformer import parameter_counts

MIB = 2**20
FIRST_BUCKET_BYTES, BUCKET_BYTES = 1 * MIB, 25 * MIB
"""PyTorch's defaults, reducer.hpp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientTensor:
    """One weight's gradient: its elements, and the share of the backward after which it exists."""

    name: str
    layer: int | None
    elements: int
    ready_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducedBucket:
    """One bucket: its tensors, its bytes, when its last gradient exists, and its all-reduce."""

    tensors: tuple[GradientTensor, ...]
    bytes: float
    ready_s: float
    start_s: float
    end_s: float


def gradient_tensors(shape: ModelShape) -> tuple[GradientTensor, ...]:
    """Return the gradients of a dense model in the order in which the backward pass finishes them.

    A matrix takes time in proportion to its elements; norms, biases and lookups take none. A table
    that also serves as output layer is finished last, when the gradient of its lookup is added.
    Raises InputError for experts and latent attention, which are not supported here.
    """
    if shape.experts is not None or shape.latent is not None:
        raise InputError("gradients in order", expected="a dense model", got="experts or latents")
    counts = parameter_counts(shape)
    table = shape.vocab * shape.hidden
    work: list[tuple[str, int | None, int, int]] = []
    if shape.tied_embeddings:
        work.append(("", None, 0, table))
    else:
        work.append(("head", None, counts.head, counts.head))
    final = shape.hidden if shape.final_norm else 0
    parts = _layer_parts(shape)
    small = counts.attention + counts.ffn + counts.norms - shape.layers * sum(parts.values())
    for layer in reversed(range(shape.layers)):
        work += [(name, layer, size, size) for name, size in reversed(parts.items())]
        # Biases and both norms; the rounding and the final norm go with the last layer.
        each, rest = divmod(small - final, shape.layers)
        last = layer == shape.layers - 1
        work.append(("vectors", layer, each + (rest + final if last else 0), 0))
    outside = counts.embedding + counts.positions + counts.extra
    work.append(("embedding", None, outside, 0))
    total, done = sum(cost for _, _, _, cost in work), 0
    found = []
    for name, at, elements, cost in work:
        done += cost
        if elements:
            found.append(
                GradientTensor(name=name, layer=at, elements=elements, ready_share=done / total)
            )
    return tuple(found)


def _layer_parts(shape: ModelShape) -> dict[str, int]:
    """Return the matrices of one layer in the order of the forward pass."""
    query, key = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    up = ("gate", "up")[-(FFN_MATRICES[shape.ffn] - 1) :]
    return {
        "query": shape.hidden * query,
        "key": shape.hidden * key,
        "value": shape.hidden * key,
        "output": query * shape.hidden,
        **dict.fromkeys(up, shape.hidden * shape.ffn_hidden),
        "down": shape.ffn_hidden * shape.hidden,
    }


def fill_buckets(
    sizes: Sequence[float],
    first_bucket_bytes: float = FIRST_BUCKET_BYTES,
    bucket_bytes: float = BUCKET_BYTES,
) -> tuple[tuple[int, ...], ...]:
    """Return the indices of the tensors of every bucket; `sizes` are bytes in backward order.

    Raises InputError for a cap that is not positive.
    """
    if first_bucket_bytes <= 0 or bucket_bytes <= 0:
        got = (first_bucket_bytes, bucket_bytes)
        raise InputError("first_bucket_bytes and bucket_bytes", expected="> 0", got=got)
    buckets: list[tuple[int, ...]] = []
    held: list[int] = []
    filled, cap = 0.0, first_bucket_bytes
    for index, size in enumerate(sizes):
        held.append(index)
        filled += size
        if filled >= cap:
            buckets.append(tuple(held))
            held, filled, cap = [], 0.0, bucket_bytes
    if held:
        buckets.append(tuple(held))
    return tuple(buckets)


def reduced_buckets(
    tensors: Sequence[GradientTensor],
    *,
    backward_s: float,
    bytes_per_element: float,
    seconds_per_byte: float,
    bucket_overhead_s: float,
    first_bucket_bytes: float = FIRST_BUCKET_BYTES,
    bucket_bytes: float = BUCKET_BYTES,
) -> tuple[ReducedBucket, ...]:
    """Return every bucket's all-reduce during a backward of `backward_s` that starts at 0.

    An all-reduce of S bytes takes `bucket_overhead_s` + S · `seconds_per_byte`; it starts when its
    last gradient exists and the previous all-reduce has ended.
    """
    sizes = [tensor.elements * bytes_per_element for tensor in tensors]
    found: list[ReducedBucket] = []
    free_at = 0.0
    for indices in fill_buckets(sizes, first_bucket_bytes, bucket_bytes):
        size = sum(sizes[index] for index in indices)
        ready = backward_s * max(tensors[index].ready_share for index in indices)
        start = max(ready, free_at)
        free_at = start + bucket_overhead_s + size * seconds_per_byte
        held = tuple(tensors[index] for index in indices)
        found.append(
            ReducedBucket(tensors=held, bytes=size, ready_s=ready, start_s=start, end_s=free_at)
        )
    return tuple(found)


def exposed_s(buckets: Sequence[ReducedBucket], backward_s: float) -> float:
    """Return the time from the end of the backward pass to the end of the last all-reduce."""
    return max(0.0, buckets[-1].end_s - backward_s)
