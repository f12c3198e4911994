"""Memory of a training step on every pipeline rank: state, activations, buffers and a reserve.

    >>> estimate = memory(setup, capacity_bytes=80e9)        # doctest: +SKIP
    >>> estimate.fullest.bytes_of("optimizer")               # doctest: +SKIP

All GPUs of a pipeline rank need the same. State is divided as ZeRO does: what is not a routed
expert over DP · CP, routed experts over EDP, in even shards. Not counted: gradients of activations
on their way through a layer, workspaces of kernels, fragmentation. The reserve stands for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError, unknown
from figgen.models.activations import peak_activation_bytes, recomputed_bytes
from figgen.models.communication_buffers import communication_buffers
from figgen.models.rank_parameters import parameters_of, rank_parameters
from figgen.models.stage_layers import shares_of_rank
from figgen.models.training_setup import TrainingSetup

RESERVE_BYTES = 4e9
"""What is set aside by default: about 1 GB for the CUDA context and kernels, 1 GB for NCCL's
channels, 2 GB for workspaces and fragmentation. An assumption, to be replaced where one knows."""

PARTS = (
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "recomputed",
    "communication",
    "reserve",
)
"""Names of the parts of a `RankMemory`, in order."""


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """One part of a GPU's memory, in bytes."""

    name: str
    bytes: float


@dataclass(frozen=True, slots=True)
class RankMemory:
    """Memory of a GPU of one pipeline rank.

    `parameters` are those that it computes with, before ZeRO divides them; `parts` are named as
    in `PARTS`, `in_flight` is the most microbatches whose activations it holds.
    """

    pipeline_rank: int
    parameters: int
    layers: int
    in_flight: float
    parts: tuple[MemoryPart, ...]

    @property
    def total_bytes(self) -> float:
        """All parts together."""
        return sum(part.bytes for part in self.parts)

    def bytes_of(self, name: str) -> float:
        """Bytes of the part of that name. Raises InputError for an unknown one."""
        for part in self.parts:
            if part.name == name:
                return part.bytes
        raise unknown("part of memory", name, PARTS)


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Memory on every pipeline rank, against the capacity of one GPU where that is given."""

    ranks: tuple[RankMemory, ...]
    capacity_bytes: float | None

    @property
    def fullest(self) -> RankMemory:
        """The pipeline rank that needs most."""
        return max(self.ranks, key=lambda rank: rank.total_bytes)

    @property
    def free_bytes(self) -> float | None:
        """What the fullest rank leaves of the capacity, negative when it does not fit."""
        if self.capacity_bytes is None:
            return None
        return self.capacity_bytes - self.fullest.total_bytes

    @property
    def fits(self) -> bool | None:
        """Whether every rank fits; None without a capacity."""
        return None if self.free_bytes is None else self.free_bytes >= 0


def memory(
    setup: TrainingSetup,
    *,
    capacity_bytes: float | None = None,
    reserve_bytes: float = RESERVE_BYTES,
) -> MemoryEstimate:
    """What every pipeline rank needs for a step of `setup`.

    Raises InputError for a negative reserve or a capacity that is not positive.
    """
    if reserve_bytes < 0:
        raise InputError("reserve_bytes", expected=">= 0", got=reserve_bytes)
    if capacity_bytes is not None and capacity_bytes <= 0:
        raise InputError("capacity_bytes", expected="> 0", got=capacity_bytes)
    peaks, in_flight = peak_activation_bytes(setup), setup.in_flight
    ranks = []
    for rank, peak in enumerate(peaks):
        shares = shares_of_rank(setup, rank)
        buffers = sum(buffer.bytes for buffer in communication_buffers(setup, rank))
        recomputed = max(recomputed_bytes(setup, share) for share in shares)
        held = rank_parameters(setup, rank)
        sizes = (*state_bytes(setup, rank), peak, recomputed, buffers, reserve_bytes)
        ranks.append(
            RankMemory(
                pipeline_rank=rank,
                parameters=sum(part.count for part in held),
                layers=sum(share.layers for share in shares),
                in_flight=in_flight[rank],
                parts=tuple(MemoryPart(*pair) for pair in zip(PARTS, sizes, strict=True)),
            )
        )
    return MemoryEstimate(tuple(ranks), capacity_bytes)


def state_bytes(setup: TrainingSetup, pipeline_rank: int) -> tuple[float, float, float]:
    """Bytes of weights, gradients and optimizer state on a GPU, as ZeRO divides them."""
    held, recipe = rank_parameters(setup, pipeline_rank), setup.recipe
    groups = (
        (parameters_of(held, routed=False), setup.dense_shards),
        (parameters_of(held, routed=True), setup.parallel.edp),
    )
    sizes = []
    # Stage 1 divides the optimizer state, 2 the gradients as well, 3 the weights too.
    for first_stage, per_parameter in (
        (3, recipe.weight_bytes),
        (2, recipe.gradient_bytes),
        (1, recipe.optimizer_bytes),
    ):
        divided = setup.zero_stage >= first_stage
        sizes.append(
            sum(count * per_parameter / (shards if divided else 1) for count, shards in groups)
        )
    weights, gradients, optimizer = sizes
    return weights, gradients, optimizer
