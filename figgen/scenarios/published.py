"""What was published of a run's speed, in the terms in which the models speak of it."""

from __future__ import annotations

from figgen import catalog
from figgen.errors import InputError
from figgen.models.compute import training_flops_per_token, utilisation_of_step
from figgen.scenarios.resolve import TrainingStep


def published_step_s(run: catalog.Run) -> float | None:
    """Seconds of a step, as printed or as they follow from what was printed; None if neither.

    From tokens per second; from a rate of model FLOPs or an MFU, counted as the run counts; from
    a rate with recomputation by the formula of the paper that printed it.
    """
    if run.step_time is not None:
        return run.step_time.value
    if run.tokens_per_step is None or not run.gpus:
        return None
    if run.tokens_per_s_per_gpu is not None:
        return run.tokens_per_step / run.tokens_per_s_per_gpu / run.gpus
    rate, per_token = _rate(run), _flops_per_token(run)
    if rate is None or per_token is None:
        return None
    return run.tokens_per_step * per_token / rate / run.gpus


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


def _rate(run: catalog.Run) -> float | None:
    """FLOP/s per accelerator."""
    if run.flops_rate is not None:
        return run.flops_rate.value
    return None if run.mfu is None else run.mfu.value * run.mfu_peak_flops_per_s


def _flops_per_token(run: catalog.Run) -> float | None:
    """FLOPs of a token by the convention in which the run's rate counts them."""
    shape = run.model.shape
    if run.flops_kind == "hardware" and run.flops_rate is not None:
        try:
            return training_flops_per_token(shape, "megatron", sequence=run.sequence)
        except InputError:
            return None
    if run.flops_kind != "model" and run.mfu is None:
        return None
    convention = "causal" if run.attention == "causal" else "6nd+attention"
    return training_flops_per_token(shape, convention, sequence=run.sequence)
