"""The time of a step, from whatever a run's record gives of its speed."""

from __future__ import annotations

from figgen.errors import InputError
from figgen.models.shape.model_shape import ModelShape
from figgen.models.step.compute import training_flops_per_token
from figgen.scenarios.runs.fields import Record, number_of

PER_SECOND = {
    "tokens_per_s_per_accelerator": "a GPU",
    "derived_tokens_per_s_per_accelerator": "a GPU",
    "tokens_per_s_per_gpu": "a GPU",
    "tokens_per_s_total": "all",
}
"""Fields with tokens per second, per GPU or in total."""


def measured_s(record: Record, shape: ModelShape, tokens: int, gpus: int) -> float | None:
    """Return the measured seconds of a step, printed or from a token or FLOP rate, or None."""
    if seconds := number_of(record, "step_time_s"):
        return seconds
    for field, units in PER_SECOND.items():
        if rate := number_of(record, field):
            return tokens / (rate * (gpus if units == "a GPU" else 1))
    rate = number_of(record, "reported_tflops_per_accelerator")
    if rate is None:
        return None
    words = str(record.get("reported_tflops_convention") or "").lower()
    counted = flops_counted(words)
    try:
        per_token = training_flops_per_token(shape, counted, sequence=shape.sequence)
    except InputError:
        return None
    return tokens * per_token / (rate * 1e12 * gpus)


def flops_counted(words: str) -> str:
    """Return the convention of `figgen.models.step.compute` that a source's words describe."""
    if "hardware" in words and "selective" not in words:
        return "megatron" if "96" in words else "hfu-full"
    return "causal" if "causal" in words else "6nd+attention"
