"""A measurement of a job's speed, as seconds of a step."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError
from figgen.models.step.compute import training_flops_per_token
from figgen.quantity_shown import format_number
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.taking.logs import StepLog, read_log


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSpeed:
    """Seconds of a step, where they come from, and how many steps were timed (0 if unknown).

    `memory_bytes` is the peak that a log prints, or None.
    """

    step_time_s: float
    source: str
    steps: int = 0
    memory_bytes: float | None = None


def measured_time(
    run: DescribedRun,
    *,
    tokens_per_s: float | None = None,
    step_time_s: float | None = None,
    flops_per_s: float | None = None,
    utilisation: float | None = None,
    log: str | None = None,
) -> MeasuredSpeed:
    """Return the measured seconds of a step of `run`, from a single measure of speed.

    Tokens and FLOPs are per GPU per second. If none is given, the run's own time is used. Raises
    InputError for several measures, for none at all, and for a log without steps.
    """
    given = {
        "tokens_per_s": tokens_per_s,
        "step_time": step_time_s,
        "tflops": flops_per_s,
        "mfu": utilisation,
        "log": log,
    }
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise InputError("measured speed", expected="one of these", got=" and ".join(named))
    if log is not None:
        return _logged(run, log)
    if not named:
        if run.step_time_s is None:
            raise InputError("measured speed", expected=f"one of {', '.join(given)}", got="none")
        return MeasuredSpeed(step_time_s=run.step_time_s, source="the run's file")
    value = next(float(value) for value in given.values() if value is not None)
    return MeasuredSpeed(step_time_s=_seconds(run, named[0], value), source=named[0])


def _seconds(run: DescribedRun, name: str, value: float) -> float:
    """Return seconds of a step from a rate per GPU. Raises InputError unless it is positive."""
    return seconds_of_speed(
        name,
        value,
        tokens=run.global_batch * run.sequence / run.gpus,
        flops_per_token=training_flops_per_token(run.shape, sequence=run.sequence),
        peak_flops_per_s=run.accelerator.peak_flops_per_s(run.dtype),
    )


def seconds_of_speed(
    name: str, value: float, *, tokens: float, flops_per_token: float, peak_flops_per_s: float
) -> float:
    """Return the seconds of a step in which a GPU trains on `tokens`, from a measure of speed.

    `name` is its kind: step_time, tokens_per_s, tflops (FLOP/s) or mfu. Raises InputError unless it
    is positive, and for more FLOPs than the peak, which usually is the rate of all GPUs.
    """
    if value <= 0:
        raise InputError(name, expected="> 0", got=value)
    most = peak_flops_per_s / flops_per_token
    rates = {"step_time": tokens / value, "tokens_per_s": value, "mfu": value * most}
    rate = rates[name] if name in rates else value / flops_per_token
    if rate > most:
        raise InputError(
            f"This speed is impossible for this job: it is {rate / most:.0%} MFU, "
            f"{format_number(rate)} tokens/s per GPU, and at its peak a GPU reaches "
            f"{format_number(most)}; is it the rate of all GPUs together, or of another job?"
        )
    return value if name == "step_time" else tokens / rate


def _logged(run: DescribedRun, text: str) -> MeasuredSpeed:
    found = read_log(text)
    if not isinstance(found, StepLog):
        raise InputError("log", expected="step lines of a training framework", got="none")
    counted = run.global_batch / found.samples_per_s if found.samples_per_s else None
    named = {
        "step_time": found.step_time_s or counted,
        "tokens_per_s": found.tokens_per_s_per_gpu,
        "tflops": found.flops_per_s_per_gpu,
    }
    name, value = next((name, value) for name, value in named.items() if value is not None)
    return MeasuredSpeed(
        step_time_s=_seconds(run, name, value),
        source=f"{found.steps} steps of {found.framework}",
        steps=found.steps,
        memory_bytes=found.memory_bytes,
    )
