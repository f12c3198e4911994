"""Memory of a training step on every pipeline rank: state, activations, buffers and a reserve.

    >>> estimate = memory(setup, capacity_bytes=85.0e9)        # doctest: +SKIP
    >>> estimate.fullest.bytes_of("optimizer")                 # doctest: +SKIP

All GPUs of a pipeline rank need the same. ZeRO divides state into even shards: routed experts over
EDP, everything else over DP · CP. `figgen.models.memory.rank_bytes` does the arithmetic, for the
planner too, and `tests/models/test_memory_peaks.py` checks it against 904 measured peaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from figgen.errors import InputError, unknown
from figgen.models.memory.fit_probability import deviation_bytes, normal_share
from figgen.models.memory.held_sizes import LayerSizes, job_sizes, layer_sizes, recomputed_sizes
from figgen.models.memory.memory_lines import PARTS, MemoryLine, memory_lines
from figgen.models.memory.rank_bytes import (
    HeldSizes,
    RankBytes,
    activation_bytes,
    gathered_inputs,
    rank_bytes,
)
from figgen.models.memory.rank_load import RankLoad, kept_counts, kinds_held, lasting_counts
from figgen.models.memory.rank_parameters import rank_parameters
from figgen.models.setup.framework_memory import FrameworkMemory
from figgen.models.setup.stage_layers import StageShare, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup

RESERVE_BYTES = 2e9
"""What a process holds outside its allocator: the CUDA context with its kernels, 0.82 GB on an H100
without NCCL, and NCCL's channels. An assumption between the 1.3 and 2.45 GB of two out-of-memory
messages (prime-rl on one H100 and on eight B200), to be replaced by what you measure. One published
run leaves 1.9 GB: 83.1 GB in its allocator on an H100 of 85.0."""


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """One part of a GPU's memory, in bytes."""

    name: str
    bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMemory:
    """Memory of a GPU of one pipeline rank.

    `parameters` is the number of parameters that the GPU computes with, before ZeRO divides them;
    `in_flight` is the largest number of microbatches whose activations it holds.
    """

    pipeline_rank: int
    parameters: int
    layers: int
    in_flight: float
    held: RankBytes
    trades_heads: bool = False

    @property
    def lines(self) -> tuple[MemoryLine, ...]:
        """What the GPU holds, line by line."""
        return memory_lines(self.held, trades_heads=self.trades_heads)

    @property
    def parts(self) -> tuple[MemoryPart, ...]:
        """The lines added up by part, in the order of `PARTS`."""
        found: dict[str, float] = dict.fromkeys(PARTS, 0)
        for line in self.lines:
            found[line.part] += line.bytes
        return tuple(MemoryPart(name, size) for name, size in found.items())

    @property
    def total_bytes(self) -> float:
        """Bytes of the device that the process takes, in its allocator and outside of it."""
        total: float = self.held.total_bytes
        return total

    @property
    def allocated_bytes(self) -> float:
        """Bytes of tensors, as `torch.cuda.max_memory_allocated` prints them."""
        allocated: float = self.held.allocated_bytes
        return allocated

    @property
    def reserved_bytes(self) -> float:
        """Bytes that the allocator holds, as `torch.cuda.max_memory_reserved` prints them."""
        reserved: float = self.held.reserved_bytes
        return reserved

    @property
    def outside_bytes(self) -> float:
        """Bytes that the process holds outside its allocator: the contexts of CUDA and NCCL."""
        outside: float = self.held.contexts
        return outside

    def bytes_of(self, name: str) -> float:
        """Return the bytes of the part `name`. Raises InputError for an unknown part."""
        for part in self.parts:
            if part.name == name:
                return part.bytes
        raise unknown("part of memory", name, PARTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """Memory on every pipeline rank, compared with the capacity of one GPU if that is given.

    `framework` says which peak its log prints and how far measured peaks lie from predictions;
    `gathered_bytes` are the two inputs that a layer gathers from tensor-parallel ranks.
    """

    ranks: tuple[RankMemory, ...]
    capacity_bytes: float | None
    framework: FrameworkMemory
    gathered_bytes: float

    @property
    def fullest(self) -> RankMemory:
        """The pipeline rank that needs most."""
        return max(self.ranks, key=lambda rank: rank.total_bytes)

    @property
    def printed_bytes(self) -> float:
        """The peak that a log of the framework would print."""
        if self.framework.prints == "device":
            return self.fullest.total_bytes
        if self.framework.prints == "first":
            return self.ranks[0].reserved_bytes
        return max(rank.reserved_bytes for rank in self.ranks)

    @property
    def free_bytes(self) -> float | None:
        """Bytes of the capacity that the fullest rank leaves free, negative if it does not fit."""
        if self.capacity_bytes is None:
            return None
        return self.capacity_bytes - self.fullest.total_bytes

    @property
    def fits(self) -> bool | None:
        """Whether every rank fits; None without a capacity."""
        free = self.free_bytes
        return None if free is None else free >= 0

    @property
    def fit_probability(self) -> float | None:
        """Chance that every rank fits, at least 0.5 if `fits`; None without a capacity."""
        free, spread = self.free_bytes, self.spread_bytes
        return None if free is None or spread is None else normal_share(free / spread)

    @property
    def spread_bytes(self) -> float | None:
        """The standard deviation of what the fullest rank needs; None without a capacity."""
        if self.capacity_bytes is None:
            return None
        return deviation_bytes(
            self.fullest.total_bytes,
            self.capacity_bytes,
            self.framework.peak_spread,
            self.waiting_bytes,
        )

    @property
    def waiting_bytes(self) -> float:
        """The standard deviation of the bytes that wait for tensor-parallel collectives."""
        return self.framework.waiting_pairs * self.gathered_bytes


def memory(
    setup: TrainingSetup,
    *,
    capacity_bytes: float | None = None,
    reserve_bytes: float = RESERVE_BYTES,
    allocator_share: float | None = None,
) -> MemoryEstimate:
    """Return what every pipeline rank needs for a step of `setup`.

    `allocator_share` replaces that of the framework. Raises InputError for a negative reserve or a
    capacity that is not positive.
    """
    if reserve_bytes < 0:
        raise InputError("reserve_bytes", expected=">= 0", got=reserve_bytes)
    if capacity_bytes is not None and capacity_bytes <= 0:
        raise InputError("capacity_bytes", expected="> 0", got=capacity_bytes)
    framework, in_flight = setup.framework_memory, setup.in_flight
    share = framework.allocator_share if allocator_share is None else allocator_share
    held, shares = held_sizes(setup, share, reserve_bytes), virtual_stage_shares(setup)
    ranks = []
    for rank in range(setup.parallel.pp):
        mine = [shares[stage] for stage in setup.placement.stages_of_rank(rank)]
        load = fullest_load(setup, rank, held)
        ranks.append(
            RankMemory(
                pipeline_rank=rank,
                parameters=sum(part.count for part in rank_parameters(setup, rank)),
                layers=sum(one.layers for one in mine),
                in_flight=in_flight[rank],
                held=rank_bytes(load, replace(held, layer=_of_rank(setup, held.layer, mine))),
                trades_heads=setup.traded_ranks > 1,
            )
        )
    return MemoryEstimate(
        ranks=tuple(ranks),
        capacity_bytes=capacity_bytes,
        framework=framework,
        gathered_bytes=gathered_inputs(held),
    )


def held_sizes(setup: TrainingSetup, allocator_share: float, contexts: float) -> HeldSizes:
    """Return the sizes of everything that a GPU holds in a setup."""
    parallel = setup.parallel
    return HeldSizes(
        layer=layer_sizes(setup),
        job=job_sizes(setup, allocator_share, contexts),
        tokens=setup.tokens,
        split_tokens=setup.split_tokens,
        tp=parallel.tp,
        cp=parallel.cp,
        pp=parallel.pp,
        ep=parallel.ep,
        expert_ways=parallel.ep * parallel.etp if setup.shape.experts is not None else 1,
        shards=setup.dense_shards,
        expert_shards=parallel.edp,
        zero_stage=setup.zero_stage,
        microbatches=setup.microbatches,
    )


def _of_rank(setup: TrainingSetup, layer: LayerSizes, held: Sequence[StageShare]) -> LayerSizes:
    """Return a rank's sizes: its own stages decide how many layers are recomputed at once."""
    if setup.recomputation.number == 1 and setup.recomputation.method != "block":
        return layer
    dense, experts, both = recomputed_sizes(setup, held)
    return replace(layer, recomputed_dense=dense, recomputed_experts=experts, recomputed_both=both)


def fullest_load(setup: TrainingSetup, pipeline_rank: int, sizes: HeldSizes) -> RankLoad:
    """Return what a rank holds at the moment when it has most activations."""
    shares, again = virtual_stage_shares(setup), setup.recomputation
    held = [shares[stage] for stage in setup.placement.stages_of_rank(pipeline_rank)]
    dense, experts, embeddings, heads, tables, mixers = lasting_counts(
        held, setup.shape.tied_embeddings
    )
    only_dense, only_experts, both = kinds_held(held)
    loads = []
    for moment in setup.short_order.in_flight[pipeline_rank]:
        kept = [0, 0, 0, 0, 0, 0, 0]
        for stage, count in moment:
            for at, one in enumerate(kept_counts(setup.shape, again, shares[stage])):
                kept[at] += count * one
        loads.append(
            RankLoad(
                dense_layers=dense,
                expert_layers=experts,
                embeddings=embeddings,
                heads=heads,
                tables=tables,
                mixers=mixers,
                kept_inputs=kept[0],
                kept_dense=kept[1],
                kept_experts=kept[2],
                kept_embeddings=kept[3],
                kept_heads=kept[4],
                kept_outputs=kept[5],
                kept_mixers=kept[6],
                only_dense=int(only_dense),
                only_experts=int(only_experts),
                both=int(both),
            )
        )
    return max(loads, key=lambda load: activation_bytes(load, sizes))
