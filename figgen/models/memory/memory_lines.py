"""What a GPU of one pipeline rank holds at its fullest, line by line.

The lines are those of one moment: all microbatches that the schedule allows are in flight, and
the loss or the backward of one layer is at work. Tensors that come and go are held by a caching
allocator, whose blocks do not fit them; what it holds beyond them is a share that is fitted per
framework. The CUDA context and NCCL's channels are outside of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from figgen.models.memory.activations import (
    layer_gradient_bytes,
    loss_bytes,
    recomputed_bytes,
)
from figgen.models.memory.communication_buffers import communication_buffers
from figgen.models.memory.rank_parameters import TABLES, HeldParameters, rank_parameters
from figgen.models.memory.trained_state import Kept, kept_by_rank
from figgen.models.setup.stage_layers import by_stage
from figgen.models.setup.training_setup import TrainingSetup

PARTS = (
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "working",
    "communication",
    "reserve",
)
"""What lines belong to, in order: "working" is what the loss or one layer's backward needs."""

UNALLOCATED, CONTEXTS = "allocator", "contexts"
"""Names of the two lines of the reserve: what is in the allocator without a tensor, and outside."""
LASTING = (
    "weights",
    "FP8 weights",
    "accumulated gradients",
    "buckets of gradients",
    "optimizer state",
)
"""Names of the lines of tensors that stay for the whole training."""


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """Bytes of one kind of thing on one GPU, and the part that it belongs to."""

    part: str
    name: str
    bytes: float


@dataclass(frozen=True, slots=True)
class WorkingBytes:
    """What a virtual stage needs for the backward of one layer, and for the loss beside the head.

    `anew` is made by recomputing, `gradients` are those of the layer.
    """

    anew: float
    gradients: float
    loss: float

    @property
    def backward(self) -> float:
        """What the backward needs."""
        return self.anew + self.gradients


def working_bytes(setup: TrainingSetup) -> tuple[WorkingBytes, ...]:
    """What every virtual stage needs for a moment."""
    return by_stage(
        setup,
        lambda share: WorkingBytes(
            recomputed_bytes(setup, share),
            layer_gradient_bytes(setup, share),
            loss_bytes(setup) if share.head else 0.0,
        ),
    )


def rank_lines(
    setup: TrainingSetup,
    pipeline_rank: int,
    held: Sequence[HeldParameters],
    activation_bytes: float,
    working: Sequence[WorkingBytes],
) -> tuple[MemoryLine, ...]:
    """Every line of a GPU of `pipeline_rank` that is not empty, its reserve apart.

    `held` are the rank's parameters, `activation_bytes` its own of
    `figgen.models.memory.activations.peak_activation_bytes`, `working` what its virtual stages need
    for a moment.
    """
    lines = (
        *_state(setup, held, kept_by_rank(setup, pipeline_rank)),
        *_moving(setup, pipeline_rank, activation_bytes, working),
    )
    return tuple(line for line in lines if line.bytes)


def reserve_lines(
    lines: tuple[MemoryLine, ...], allocator_share: float, reserve_bytes: float
) -> tuple[MemoryLine, ...]:
    """What the allocator holds beyond `lines`, and `reserve_bytes` outside of it."""
    moving = sum(line.bytes for line in lines if line.name not in LASTING)
    found = (
        MemoryLine("reserve", UNALLOCATED, allocator_share * moving),
        MemoryLine("reserve", CONTEXTS, reserve_bytes),
    )
    return tuple(line for line in found if line.bytes)


def cast_weight_bytes(setup: TrainingSetup) -> float:
    """Bytes of the 8-bit copies of a weight of a layer that stay through a step.

    Where ZeRO-3 gathers each layer, they come and go with it.
    """
    stay = setup.framework_memory.caches_casts and setup.lora_rank is None and setup.zero_stage < 3
    return setup.activation_format.cast_weight_bytes if stay else 0.0


def allocated_bytes(lines: tuple[MemoryLine, ...]) -> float:
    """Bytes of tensors, which PyTorch prints as allocated."""
    return sum(line.bytes for line in lines if line.part != "reserve")


def reserved_bytes(lines: tuple[MemoryLine, ...]) -> float:
    """Bytes that the framework's allocator holds, which PyTorch prints as reserved."""
    return sum(line.bytes for line in lines if line.name != CONTEXTS)


def state_bytes(setup: TrainingSetup, pipeline_rank: int) -> tuple[float, float, float]:
    """Bytes of weights, gradients and optimizer state on a GPU, as ZeRO divides them.

    Frozen weights are divided as those that are trained.
    """
    held = rank_parameters(setup, pipeline_rank)
    return _divided(setup, held, kept_by_rank(setup, pipeline_rank))


def _divided(
    setup: TrainingSetup, held: Sequence[HeldParameters], kept: Kept
) -> tuple[float, float, float]:
    recipe = setup.recipe
    ways = (setup.dense_shards, setup.parallel.edp)
    trained, frozen = (kept.trained, kept.trained_routed), (
        kept.frozen_bytes, kept.frozen_routed_bytes,
    )  # fmt: skip
    sizes = []
    # Stage 1 divides the optimizer state, 2 the gradients as well, 3 the weights too.
    for first_stage, per_parameter, beside in (
        (3, recipe.weight_bytes, frozen),
        (2, recipe.gradient_bytes, (0, 0)),
        (1, setup.optimizer_bytes, (0, 0)),
    ):
        divided = setup.zero_stage >= first_stage
        sizes.append(
            sum(
                (count * per_parameter + more) / (shards if divided else 1)
                for count, more, shards in zip(trained, beside, ways, strict=True)
            )
        )
    weights, gradients, optimizer = sizes
    if setup.lora_rank is None:
        tables = sum(part.count for part in held if part.part in TABLES) * setup.table_bytes
        optimizer += tables / (setup.dense_shards if setup.zero_stage >= 1 else 1)
    return weights, gradients, optimizer


def _state(
    setup: TrainingSetup, held: Sequence[HeldParameters], kept: Kept
) -> Iterator[MemoryLine]:
    """What lasts, and the gradients that one backward makes anew."""
    framework = setup.framework_memory
    trained = kept.trained + kept.trained_routed
    weights, gradients, optimizer = _divided(setup, held, kept)
    yield MemoryLine("weights", "weights", weights)
    tables = sum(part.count for part in held if part.part in TABLES)
    yield MemoryLine("weights", "FP8 weights", (trained - tables) * cast_weight_bytes(setup))
    yield MemoryLine("gradients", "accumulated gradients", gradients)
    if setup.zero_stage == 0 and setup.dense_shards > 1:
        size = trained * framework.bucket_bytes
        yield MemoryLine("gradients", "buckets of gradients", size)
    size = trained * framework.fresh_gradient_bytes
    yield MemoryLine("gradients", "fresh gradients", size)
    yield MemoryLine("optimizer", "optimizer state", optimizer)


def _moving(
    setup: TrainingSetup,
    pipeline_rank: int,
    activation_bytes: float,
    working: Sequence[WorkingBytes],
) -> Iterator[MemoryLine]:
    """What comes and goes with every microbatch."""
    yield MemoryLine("activations", "activations in flight", activation_bytes)
    yield from _working(working)
    for buffer in communication_buffers(setup, pipeline_rank):
        yield MemoryLine("communication", buffer.name, buffer.bytes)


def _working(stages: Sequence[WorkingBytes]) -> tuple[MemoryLine, ...]:
    """The loss or the backward of one layer, whichever takes more."""
    most = max(stages, key=lambda stage: stage.backward)
    loss = max(stage.loss for stage in stages)
    if loss > most.backward:
        return (MemoryLine("working", "copies of logits", loss),)
    return (
        MemoryLine("working", "recomputed layers", most.anew),
        MemoryLine("working", "gradients of a layer", most.gradients),
    )
