"""What failures leave of a layout's time, and the days until so many tokens are through."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.catalog.interruptions import DAY_S, Interruptions, interruption
from figgen.formulas.reliability import checkpoint_size, goodput, job_mtbf, nodes_in_repair
from figgen.models.planner.reliability import best_interval_s, spare_nodes
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.transformer import parameter_counts
from figgen.scenarios.planning.saving import CONFIDENCE, REPAIR_S, Saving, saving

USUAL_FAILURES = "llama-3-405b"
"""The published job whose failure rate is assumed by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTraining:
    """One way to save a job's state, at the interval that keeps most of the time.

    `days` is how long `tokens` take at a step of `step_s`, with failures.
    """

    way: str
    mtbf_s: float
    checkpoint_bytes: float
    saving: Saving
    interval_s: float
    goodput: float
    spares: int

    def days(self, tokens: float, tokens_per_step: int, step_s: float) -> float:
        """Days until so many tokens are through, steps alone over the share of time that counts."""
        return tokens / tokens_per_step * step_s / self.goodput / DAY_S


def kept(setup: TrainingSetup, way: str, failures: Interruptions | None = None) -> SavedTraining:
    """What is kept of a job's time when its checkpoints go that way.

    Raises InputError for an unknown way to save.
    """
    known = failures or interruption(USUAL_FAILURES)
    gpus, recipe = setup.parallel.world_size, setup.recipe
    mtbf_s = float(job_mtbf(gpus, known.gpu_mtbf_s))
    size = float(
        checkpoint_size(
            parameter_counts(setup.shape).total, recipe.weight_bytes, recipe.optimizer_bytes
        )
    )
    saved = saving(way, size, gpus)
    interval_s = best_interval_s(saved.stall_s, mtbf_s, saved.lag_s)
    share = goodput(interval_s, saved.stall_s, saved.lag_s, saved.restart_s, mtbf_s)
    out = float(nodes_in_repair(gpus, known.gpu_mtbf_s, REPAIR_S))
    return SavedTraining(
        way=way,
        mtbf_s=mtbf_s,
        checkpoint_bytes=size,
        saving=saved,
        interval_s=interval_s,
        goodput=float(share),
        spares=spare_nodes(out, CONFIDENCE),
    )
