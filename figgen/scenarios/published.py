"""What was published of a run's speed, in the terms in which the models speak of it."""

from __future__ import annotations

from figgen import catalog
from figgen.models.compute import utilisation_of_step
from figgen.scenarios.resolve import TrainingStep
from figgen.scenarios.runs.published_time import published_step_s

__all__ = ["computed_mfu", "how_published", "published_step_s"]


def computed_mfu(found: TrainingStep) -> float:
    """MFU of a computed step, counted as the run's own percentage is.

    With the attention that the run counts, against the peak that the run is held against; that of
    its products without a run.
    """
    if found.run is None:
        return found.estimate.model_flops_utilisation
    return utilisation_of_step(
        found.setup.shape,
        "causal" if found.run.attention == "causal" else "6nd+attention",
        step_time_s=found.estimate.step_time_s,
        tokens_per_step=found.setup.tokens_per_step,
        gpus=found.setup.parallel.world_size,
        peak_flops_per_s=found.run.mfu_peak_flops_per_s,
        sequence=found.setup.sequence,
    )


def how_published(run: catalog.Run) -> str:
    """Where `published_step_s` comes from, in words."""
    if run.step_time is not None:
        return "as printed"
    if published_step_s(run) is None:
        return "not published"
    if run.tokens_per_s_per_gpu is not None:
        return "from the printed tokens per second"
    return "from the printed FLOP rate" if run.flops_rate else "from the printed MFU"
