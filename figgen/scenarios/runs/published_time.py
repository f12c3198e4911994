"""The time of a published run's step, from whatever its source gives of its speed."""

from __future__ import annotations

from figgen.catalog.runs import Run
from figgen.errors import InputError
from figgen.models.step.compute import training_flops_per_token


def published_step_s(run: Run) -> float | None:
    """Return the seconds of a step, as printed or derived from what was printed, or None.

    They are derived from tokens per second; from a rate of model FLOPs or an MFU, counted as the
    run counts; or from a rate with recomputation, by the formula of the paper that printed it.
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


def _rate(run: Run) -> float | None:
    """Return the printed rate in FLOP/s per accelerator, or None."""
    if run.flops_rate is not None:
        return run.flops_rate.value
    return None if run.mfu is None else run.mfu.value * run.mfu_peak_flops_per_s


def _flops_per_token(run: Run) -> float | None:
    """Return the FLOPs per token by the convention of the run's rate, or None."""
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
