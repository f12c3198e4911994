"""Counts what the GPUs of each node send to other nodes in one step."""

from __future__ import annotations

import numpy as np

from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.nic_load import FloatArray, leaving_bytes


def leaving_by_gpu(setup: TrainingSetup) -> FloatArray:
    """Return bytes over all axes, with shape (nodes, GPUs of a node)."""
    world = np.zeros(setup.parallel.world_size)
    return sum(leaving_bytes(setup).values(), world).reshape(-1, setup.parallel.gpus_per_node)
