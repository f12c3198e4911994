"""What was published of a run's speed, in the terms of the models."""

from __future__ import annotations

from figgen import catalog
from figgen.models.step.step import needed_utilisation
from figgen.scenarios.options.resolve import TrainingStep
from figgen.scenarios.runs.published_time import published_step_s

__all__ = ["computed_mfu", "how_published", "published_step_s"]


def computed_mfu(found: TrainingStep) -> float:
    """Return the MFU of a computed step, counted as the run counts its own.

    The run decides how attention counts and the number format of the peak; without a run, the peak
    is that of the matmuls.
    """
    if found.run is None:
        return found.estimate.model_flops_utilisation
    return needed_utilisation(
        found.setup,
        "causal" if found.run.attention == "causal" else "6nd+attention",
        tokens_per_s_per_gpu=found.estimate.tokens_per_s_per_gpu,
        peak_flops_per_s=found.run.mfu_peak_flops_per_s,
    )


def how_published(run: catalog.Run) -> str:
    """Return where `published_step_s` comes from, in words."""
    if run.step_time is not None:
        return "as printed"
    if published_step_s(run) is None:
        return "not published"
    if run.tokens_per_s_per_gpu is not None:
        return "from the printed tokens per second"
    return "from the printed FLOP rate" if run.flops_rate else "from the printed MFU"
