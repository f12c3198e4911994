"""How long a step took, from whatever of its speed a run's record prints."""

from __future__ import annotations

from figgen.errors import InputError
from figgen.models.shape.model_shape import ModelShape
from figgen.models.step.compute import training_flops_per_token
from figgen.scenarios.runs.fields import Record


def measured_s(record: Record, shape: ModelShape, tokens: int, gpus: int) -> float | None:
    """Measured time of a step: printed, or from tokens per second, or from a FLOP rate."""
    if record.get("step_time_s"):
        return float(record["step_time_s"])
    for field in ("tokens_per_s_per_accelerator", "derived_tokens_per_s_per_accelerator"):
        if record.get(field):
            return tokens / (float(record[field]) * gpus)
    rate = record.get("reported_tflops_per_accelerator")
    if not rate:
        return None
    words = str(record.get("reported_tflops_convention") or "").lower()
    counted = flops_counted(words)
    try:
        per_token = training_flops_per_token(shape, counted, sequence=shape.sequence)
    except InputError:
        return None
    return tokens * per_token / (float(rate) * 1e12 * gpus)


def flops_counted(words: str) -> str:
    """The convention of `figgen.models.step.compute` that a source's words describe."""
    if "hardware" in words and "selective" not in words:
        return "megatron" if "96" in words else "hfu-full"
    return "causal" if "causal" in words else "6nd+attention"
