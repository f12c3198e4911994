"""Sums of a rank's memory lines, for comparison with numbers from elsewhere."""

from __future__ import annotations

from figgen.models.memory.memory import memory
from figgen.models.setup.training_setup import TrainingSetup


def state_bytes(setup: TrainingSetup, pipeline_rank: int) -> tuple[float, float, float]:
    """Return bytes of weights, accumulated gradients and optimizer state, as ZeRO divides them."""
    held = memory(setup).ranks[pipeline_rank].held
    return held.weights, held.accumulated, held.optimizer


def buffers(setup: TrainingSetup, pipeline_rank: int) -> dict[str, float]:
    """Return bytes of communication buffers by the name of their line."""
    lines = memory(setup).ranks[pipeline_rank].lines
    return {line.name: line.bytes for line in lines if line.part == "communication"}
