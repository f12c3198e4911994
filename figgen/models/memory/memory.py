"""Memory of a training step on every pipeline rank: state, activations, buffers and a reserve.

    >>> estimate = memory(setup, capacity_bytes=85.0e9)        # doctest: +SKIP
    >>> estimate.fullest.bytes_of("optimizer")                 # doctest: +SKIP

All GPUs of a pipeline rank need the same. State is divided as ZeRO does: what is not a routed
expert over DP · CP, routed experts over EDP, in even shards. `figgen.models.memory.memory_lines`
has the lines, and `tests/models/test_memory_peaks.py` holds them against 904 measured peaks.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError, unknown
from figgen.models.memory.activations import peak_activation_bytes
from figgen.models.memory.fit_probability import fit_probability
from figgen.models.memory.memory_lines import (
    CONTEXTS,
    PARTS,
    MemoryLine,
    allocated_bytes,
    rank_lines,
    reserve_lines,
    reserved_bytes,
    working_bytes,
)
from figgen.models.memory.rank_parameters import rank_parameters
from figgen.models.setup.framework_memory import Prints
from figgen.models.setup.stage_layers import virtual_stage_shares
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

    `parameters` are those that it computes with, before ZeRO divides them; `in_flight` is the
    most microbatches whose activations it holds.
    """

    pipeline_rank: int
    parameters: int
    layers: int
    in_flight: float
    lines: tuple[MemoryLine, ...]

    @property
    def parts(self) -> tuple[MemoryPart, ...]:
        """The lines added up by part, in the order of `PARTS`."""
        return tuple(MemoryPart(name, size) for name, size in self._by_part().items())

    @property
    def total_bytes(self) -> float:
        """Bytes of the device that the process takes: reserved, and outside the allocator."""
        return sum(self._by_part().values())

    def _by_part(self) -> dict[str, float]:
        found: dict[str, float] = dict.fromkeys(PARTS, 0)
        for line in self.lines:
            found[line.part] += line.bytes
        return found

    @property
    def allocated_bytes(self) -> float:
        """Bytes of tensors, as `torch.cuda.max_memory_allocated` prints them."""
        return allocated_bytes(self.lines)

    @property
    def reserved_bytes(self) -> float:
        """Bytes that the allocator holds, as `torch.cuda.max_memory_reserved` prints them."""
        return reserved_bytes(self.lines)

    @property
    def outside_bytes(self) -> float:
        """Bytes that the process holds outside its allocator: contexts of CUDA and NCCL."""
        return sum(line.bytes for line in self.lines if line.name == CONTEXTS)

    def bytes_of(self, name: str) -> float:
        """Bytes of the part of that name. Raises InputError for an unknown one."""
        for part in self.parts:
            if part.name == name:
                return part.bytes
        raise unknown("part of memory", name, PARTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """Memory on every pipeline rank, against the capacity of one GPU where that is given.

    `prints` is what the log of the framework has, `peak_spread` how far its peaks are off, see
    `figgen.models.setup.framework_memory`.
    """

    ranks: tuple[RankMemory, ...]
    capacity_bytes: float | None
    prints: Prints = "fullest"
    peak_spread: float = 0.13

    @property
    def fullest(self) -> RankMemory:
        """The pipeline rank that needs most."""
        return max(self.ranks, key=lambda rank: rank.total_bytes)

    @property
    def printed_bytes(self) -> float:
        """What a log of the framework would print as its peak."""
        if self.prints == "device":
            return self.fullest.total_bytes
        if self.prints == "first":
            return self.ranks[0].reserved_bytes
        return max(rank.reserved_bytes for rank in self.ranks)

    @property
    def free_bytes(self) -> float | None:
        """What the fullest rank leaves of the capacity, negative when it does not fit."""
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
        """How likely every rank fits; None without a capacity, above a half where `fits` is."""
        if self.capacity_bytes is None:
            return None
        return fit_probability(self.fullest.total_bytes, self.capacity_bytes, self.peak_spread)


def memory(
    setup: TrainingSetup,
    *,
    capacity_bytes: float | None = None,
    reserve_bytes: float = RESERVE_BYTES,
    allocator_share: float | None = None,
) -> MemoryEstimate:
    """What every pipeline rank needs for a step of `setup`.

    `allocator_share` in place of the framework's. Raises InputError for a negative reserve or a
    capacity that is not positive.
    """
    if reserve_bytes < 0:
        raise InputError("reserve_bytes", expected=">= 0", got=reserve_bytes)
    if capacity_bytes is not None and capacity_bytes <= 0:
        raise InputError("capacity_bytes", expected="> 0", got=capacity_bytes)
    framework, in_flight, ranks = setup.framework_memory, setup.in_flight, []
    shares, working = virtual_stage_shares(setup), working_bytes(setup)
    share = framework.allocator_share if allocator_share is None else allocator_share
    for rank, peak in enumerate(peak_activation_bytes(setup)):
        stages = setup.placement.stages_of_rank(rank)
        held = rank_parameters(setup, rank)
        lines = rank_lines(setup, rank, held, peak, [working[stage] for stage in stages])
        ranks.append(
            RankMemory(
                pipeline_rank=rank,
                parameters=sum(part.count for part in held),
                layers=sum(shares[stage].layers for stage in stages),
                in_flight=in_flight[rank],
                lines=(*lines, *reserve_lines(lines, share, reserve_bytes)),
            )
        )
    return MemoryEstimate(
        ranks=tuple(ranks),
        capacity_bytes=capacity_bytes,
        prints=framework.prints,
        peak_spread=framework.peak_spread,
    )
