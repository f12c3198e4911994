"""The journey's ladder: the model that each page ends with, and its layout."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """The job that a page of the journey ends with, written in the syntax of pages."""

    page: int
    model: str
    sizes: str
    options: str


_NODE, _NODES = "nodes=1 gpus_per_node=8", "nodes=8 gpus_per_node=8"
_PLAIN, _SHARDED = "sequence=8192 zero_stage=0", "sequence=8192 zero_stage=3"
RUNGS: tuple[Rung, ...] = (
    Rung(
        page=1,
        model="llama-3-1b",
        sizes="nodes=1 gpus_per_node=1",
        options=f"{_PLAIN} global_batch=1",
    ),
    Rung(
        page=2,
        model="llama-3-1b",
        sizes="nodes=1 gpus_per_node=2",
        options=f"{_PLAIN} global_batch=2",
    ),
    Rung(
        page=3,
        model="llama-3-1b",
        sizes="nodes=8 gpus_per_node=1",
        options=f"{_PLAIN} global_batch=64",
    ),
    Rung(
        page=4,
        model="llama-3-8b",
        sizes=_NODE,
        options=f"{_SHARDED} global_batch=64",
    ),
    Rung(
        page=5,
        model="llama-3-8b",
        sizes=_NODES,
        options=f"{_SHARDED} global_batch=512",
    ),
    Rung(
        page=6,
        model="llama-3-70b",
        sizes=f"{_NODES} tp=8",
        options=f"{_SHARDED} global_batch=512 microbatch_size=2 recompute=layernorm",
    ),
    Rung(
        page=7,
        model="llama-3-70b",
        sizes=f"{_NODES} tp=8 pp=2",
        options="sequence=8192 global_batch=512 zero_stage=1",
    ),
    Rung(
        page=8,
        model="llama-3-70b",
        sizes="nodes=64 gpus_per_node=8 tp=8 cp=16 pp=2",
        options="sequence=131072 global_batch=32 zero_stage=1",
    ),
    Rung(
        page=9,
        model="deepseek-v3",
        sizes="nodes=64 gpus_per_node=8 ep=8 pp=16",
        options="sequence=4096 global_batch=4096 zero_stage=1 recompute=full",
    ),
    Rung(
        page=10,
        model="llama-3-70b",
        sizes="nodes=64 gpus_per_node=8 tp=8 pp=2",
        options="sequence=8192 global_batch=512 zero_stage=1 schedule=interleaved-1f1b chunks=5",
    ),
)
"""The ladder. Batches are in sequences; from page 5 on they are those of a large run."""
