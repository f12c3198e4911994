"""The lines of what a GPU of one pipeline rank holds at its fullest: names and parts of its bytes.

All lines describe one moment: all microbatches that the schedule allows are in flight, and the
loss, the backward of one layer or the update is running. A caching allocator puts temporary tensors
into blocks that do not fit them exactly; the bytes that it holds beyond them are a share fitted per
framework. The CUDA context and NCCL's channels lie outside the allocator.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.models.memory.rank_bytes import RankBytes

PARTS = (
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "working",
    "communication",
    "reserve",
)
"""The parts that lines belong to, in order; "working" is what the loss, the backward of one layer
or the update needs."""

UNALLOCATED, CONTEXTS = "allocator", "contexts"
"""Names of the two lines of the reserve: allocator bytes without a tensor, and bytes outside."""


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """The bytes of one line on one GPU, and the part that the line belongs to."""

    part: str
    name: str
    bytes: float


def memory_lines(held: RankBytes, *, trades_heads: bool) -> tuple[MemoryLine, ...]:
    """Return every line that is not empty.

    `trades_heads` says that context ranks trade heads, and so exchange queries too.
    """
    keys = (
        "queries, keys and values of some heads"
        if trades_heads
        else "keys and values of other ranks"
    )
    lines = (
        MemoryLine("weights", "weights", held.weights),
        MemoryLine("weights", "FP8 weights", held.cast_weights),
        MemoryLine("gradients", "accumulated gradients", held.accumulated),
        MemoryLine("gradients", "buckets of gradients", held.buckets),
        MemoryLine("gradients", "fresh gradients", held.fresh),
        MemoryLine("optimizer", "optimizer state", held.optimizer),
        MemoryLine("activations", "activations in flight", held.activations),
        MemoryLine("working", "copies of logits", held.logits),
        MemoryLine("working", "recomputed layers", held.recomputed),
        MemoryLine("working", "gradients of a layer", held.layer_gradients),
        MemoryLine("working", "copies for the update", held.update),
        MemoryLine("communication", "pipeline messages", held.messages),
        MemoryLine("communication", "gathered layer inputs", held.gathered_inputs),
        MemoryLine("communication", "gathered layer gradients", held.gathered_gradients),
        MemoryLine("communication", keys, held.keys),
        MemoryLine("communication", "routed tokens", held.routed),
        MemoryLine("communication", "gradients before they are scattered", held.scattered),
        MemoryLine("communication", "gathered weights", held.gathered_weights),
        MemoryLine("reserve", UNALLOCATED, held.allocator),
        MemoryLine("reserve", CONTEXTS, held.contexts),
    )
    return tuple(line for line in lines if line.bytes)
