"""Lines of what a rank holds, as tests compare them with numbers from elsewhere."""

from __future__ import annotations

from figgen.models.memory.memory import memory
from figgen.models.setup.training_setup import TrainingSetup


def state_bytes(setup: TrainingSetup, pipeline_rank: int) -> tuple[float, float, float]:
    """Bytes of weights, accumulated gradients and optimizer state, as ZeRO divides them."""
    held = memory(setup).ranks[pipeline_rank].held
    return held.weights, held.accumulated, held.optimizer


def buffers(setup: TrainingSetup, pipeline_rank: int) -> dict[str, float]:
    """Bytes that communication takes, by the name of the line."""
    lines = memory(setup).ranks[pipeline_rank].lines
    return {line.name: line.bytes for line in lines if line.part == "communication"}
