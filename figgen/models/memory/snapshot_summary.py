"""What filled the memory of a recorded job, and the cheapest change that would lower it."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.models.memory.allocator_snapshot import AllocatorState, Moment

TELLING = 0.15
"""The least share of the memory that makes a change worth naming."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change, what it costs, and the page about it without its suffix."""

    change: str
    cost: str
    page: str


REMEDIES: dict[str, Remedy] = {
    "unused": Remedy(
        change="set PYTORCH_ALLOC_CONF=expandable_segments:True, which closes the holes"
        " between blocks",
        cost="no time",
        page="guide/out-of-memory",
    ),
    "loss": Remedy(
        change="compute the cross-entropy in chunks or with a fused kernel, so that the logits"
        " never exist as a whole",
        cost="next to no time",
        page="guide/out-of-memory",
    ),
    "gradients": Remedy(
        change="free gradients with zero_grad(set_to_none=True) and shard them over the"
        " data-parallel ranks (ZeRO-2)",
        cost="no more bytes on the network",
        page="guide/zero-fsdp",
    ),
    "optimizer": Remedy(
        change="shard the optimizer's states over the data-parallel ranks (ZeRO-1), or keep them"
        " in 8 bits on a single GPU",
        cost="no more bytes on the network",
        page="guide/zero-fsdp",
    ),
    "communication": Remedy(
        change="prefetch fewer layers and use smaller buckets",
        cost="some overlap",
        page="guide/zero-fsdp",
    ),
    "activations": Remedy(
        change="recompute activations in the backward pass (torch.utils.checkpoint), or halve the"
        " microbatch",
        cost="up to a third more computing",
        page="guide/memory",
    ),
    "weights": Remedy(
        change="shard the weights over the data-parallel ranks (ZeRO-3, FSDP)",
        cost="half as many bytes again on the network",
        page="guide/zero-fsdp",
    ),
    "other": Remedy(
        change="record from before the model is built, so that every tensor has frames",
        cost="no time in training",
        page="guide/out-of-memory",
    ),
}
"""Remedies by what fills the memory, cheapest first; the last is for tensors of unknown purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The largest part of the memory in use, in bytes, and the cheapest remedy worth naming.

    `remedied_bytes` are the bytes of the kind that the remedy lowers.
    """

    kind: str
    bytes: int
    of_bytes: int
    remedy: str
    remedied_bytes: int


def summary_of(state: AllocatorState, peak: Moment | None) -> Summary | None:
    """Return the summary of a snapshot at its peak, or else as it is; None if nothing is in use."""
    kinds = state.kinds if peak is None else peak.kinds
    in_use = state.allocated if peak is None else peak.bytes
    reserved = state.reserved if peak is None else peak.reserved
    largest = max(kinds, key=lambda kind: kinds[kind], default="")
    if not largest or not in_use:
        return None
    sizes = {"unused": max(0, reserved - in_use)}
    for kind, size in kinds.items():
        known = kind if kind in REMEDIES else "other"
        sizes[known] = sizes.get(known, 0) + size
    remedy = largest if largest in REMEDIES else "other"
    for kind in REMEDIES:
        of_bytes = reserved if kind == "unused" else in_use
        if sizes.get(kind, 0) >= TELLING * of_bytes:
            remedy = kind
            break
    return Summary(
        kind=largest,
        bytes=kinds[largest],
        of_bytes=in_use,
        remedy=remedy,
        remedied_bytes=sizes.get(remedy, 0),
    )
