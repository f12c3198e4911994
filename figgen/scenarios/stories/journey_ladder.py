"""The ladder of the journey: which model each page ends with, and how it is laid out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rung:
    """What a page of the journey ends with: how the model is laid out, in words and as asked."""

    page: int
    model: str
    layout: str
    sizes: str
    options: str


_NODE, _NODES = "nodes=1 gpus_per_node=8", "nodes=8 gpus_per_node=8"
_PLAIN, _SHARDED = "sequence=8192 zero_stage=0", "sequence=8192 zero_stage=3"
RUNGS: tuple[Rung, ...] = (
    Rung(1, "llama-3-1b", "alone", "nodes=1 gpus_per_node=1", f"{_PLAIN} global_batch=1"),
    Rung(2, "llama-3-1b", "DP 2", "nodes=1 gpus_per_node=2", f"{_PLAIN} global_batch=2"),
    Rung(3, "llama-3-1b", "DP 8", _NODE, f"{_PLAIN} global_batch=64"),
    Rung(4, "llama-3-8b", "FSDP 8", _NODE, f"{_SHARDED} global_batch=64"),
    Rung(5, "llama-3-8b", "FSDP 64", _NODES, f"{_SHARDED} global_batch=512"),
    Rung(6, "llama-3-70b", "TP 8 · FSDP 8", f"{_NODES} tp=8", f"{_SHARDED} global_batch=512"),
    Rung(
        7, "llama-3-70b", "TP 8 · PP 2 · DP 4", f"{_NODES} tp=8 pp=2",
        "sequence=8192 global_batch=512 zero_stage=1",
    ),
    Rung(
        8, "llama-3-70b", "TP 8 · CP 16 · PP 2 · DP 2", "nodes=64 gpus_per_node=8 tp=8 cp=16 pp=2",
        "sequence=131072 global_batch=32 zero_stage=1",
    ),
    Rung(
        9, "deepseek-v3", "EP 8 · PP 16 · DP 32", "nodes=64 gpus_per_node=8 ep=8 pp=16",
        "sequence=4096 global_batch=4096 zero_stage=1 recompute=full",
    ),
    Rung(
        10, "llama-3-70b", "TP 8 · PP 2 · DP 32", "nodes=64 gpus_per_node=8 tp=8 pp=2",
        "sequence=8192 global_batch=512 zero_stage=1 schedule=interleaved-1f1b chunks=5",
    ),
)  # fmt: skip
"""The ladder; batches are in sequences, and from page 5 on those of a large run."""
