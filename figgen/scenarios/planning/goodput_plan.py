"""The share of a layout's time that is useful at a published failure rate."""

from __future__ import annotations

from figgen.catalog.interruptions import Interruptions, interruption
from figgen.models.planner.saving import SavedTraining, checkpoint_bytes_of, saved_training
from figgen.models.setup.training_setup import TrainingSetup

USUAL_FAILURES = "llama-3-405b"
"""The published job whose failure rate is assumed by default."""


def kept(setup: TrainingSetup, way: str, failures: Interruptions | None = None) -> SavedTraining:
    """Return the share of a job's time that is kept if it saves checkpoints in the given way.

    Raises InputError for an unknown way to save.
    """
    known = failures or interruption(USUAL_FAILURES)
    size = checkpoint_bytes_of(setup)
    return saved_training(way, size, setup.parallel.world_size, known.gpu_mtbf_s)
