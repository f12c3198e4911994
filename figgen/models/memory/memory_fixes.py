"""The smallest change that makes a step fit, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from figgen.models.memory.memory import MemoryEstimate, memory
from figgen.models.setup.training_setup import TrainingSetup

CHEAP = "layernorm,moe_act"
"""Recomputation in experts that repeats no matmul."""


def heavier_recomputation(setup: TrainingSetup) -> tuple[str, ...]:
    """Return what can be recomputed beyond what `setup` recomputes, cheapest first."""
    if setup.recomputation.method:
        return ()
    return (CHEAP, "full") if setup.shape.experts else ("full",)


def what_fits(setup: TrainingSetup, capacity_bytes: float, reserve_bytes: float) -> str:
    """Return the first change, in order of cost, that makes the step fit; "" if none does."""
    for words, changed, share in _changes(setup):
        found = memory(
            changed,
            capacity_bytes=capacity_bytes,
            reserve_bytes=reserve_bytes,
            allocator_share=share,
        )
        if found.fits:
            return words
    return ""


def reason(found: MemoryEstimate) -> str:
    """Return why a step does not fit: the rank, its need, the capacity, and its largest part."""
    rank, capacity = found.fullest, found.capacity_bytes or 0.0
    most = max(rank.parts, key=lambda part: part.bytes)
    return (
        f"pipeline rank {rank.pipeline_rank} needs {rank.total_bytes / 1e9:.1f} GB of "
        f"{capacity / 1e9:.1f} GB, {most.bytes / 1e9:.1f} of them {most.name}"
    )


def _changes(setup: TrainingSetup) -> Iterator[tuple[str, TrainingSetup, float | None]]:
    yield "expandable segments in the allocator", setup, 0.0
    sharded = range(setup.zero_stage + 1, 4) if setup.dense_shards > 1 else ()
    heavier = heavier_recomputation(setup)
    for mode in heavier:
        yield f"recompute={mode}", replace(setup, recompute=mode), None
    for stage in sharded:
        yield f"zero_stage={stage}", replace(setup, zero_stage=stage), None
    for stage in sharded:
        for mode in heavier:
            both = replace(setup, zero_stage=stage, recompute=mode)
            yield f"zero_stage={stage} and recompute={mode}", both, None
    yield from _offloaded(setup, heavier)
    size = setup.microbatch_size
    while size % 2 == 0:
        size //= 2
        many = setup.microbatches * setup.microbatch_size // size
        smaller = replace(setup, microbatch_size=size, microbatches=many)
        yield f"microbatch_size={size}", smaller, None
        for mode in heavier:
            mixed = replace(smaller, recompute=mode)
            yield f"microbatch_size={size} and recompute={mode}", mixed, None


def _offloaded(
    setup: TrainingSetup, heavier: tuple[str, ...]
) -> Iterator[tuple[str, TrainingSetup, float | None]]:
    """Yield activations in the host's memory, with all recomputation, which hides their copies."""
    if setup.offloaded_activations or setup.cuda_graphs == "step":
        return
    mode = heavier[-1] if heavier else setup.recompute
    words = (
        "offloaded_activations=1"
        if mode == setup.recompute
        else (f"recompute={mode} and offloaded_activations=1")
    )
    yield words, replace(setup, recompute=mode, offloaded_activations=1.0), None
