"""A run's step time as predicted, with the interval in which runs of its class were measured."""

from __future__ import annotations

from dataclasses import dataclass, replace

from figgen.catalog.hardware import Accelerator
from figgen.catalog.residuals import Residuals, residuals
from figgen.errors import check_share
from figgen.models.machine.cluster import Cluster
from figgen.models.step.attained import Attained, slowed, with_latencies
from figgen.models.step.compute import utilisation_of_step
from figgen.models.step.job import Job
from figgen.models.step.timed_step import StepSeconds, timed_step
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.job import run_job
from figgen.scenarios.runs.measured_rates import Measured
from figgen.scenarios.runs.names import UNKNOWN_SOFTWARE
from figgen.scenarios.runs.rates import attained, generation_of

OWN_CLASS = ("nanotron", "llm-foundry", "torchtitan")
"""Frameworks whose runs err in a way of their own."""

UNKNOWN = "unmeasured"
"""What nobody published a time of: other hardware, software or layers, more GPUs."""
UNTIMED = ("torchtune", "pytorch", UNKNOWN_SOFTWARE)
"""Software of which the fit has no run: the class is that of what was never measured."""

LARGE, LARGE_GPUS, MOST_GPUS = "dense models on thousands of GPUs", 3000, 16_384
"""Production runs of reports, slower and faster than benchmarks of the same chips on fewer; the
largest there is.

Trainings and benchmarks are not told apart: six runs of three reports took 11 to 18 % longer than
predicted and the benchmarks did not, but MegaScale's could be either, and ends of intervals from
all sources but one hold 10 of the 14 runs of the remaining ones with two classes, 9 with one."""


FEWEST_GPUS = 8
"""The fit has no run on fewer GPUs but one, on two GB200; plain transformers on one GPU is
predicted from its operations, in `figgen.scenarios.runs.device_run`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedStep:
    """Seconds of a step with their interval, and the parts of which they are made.

    `job` is what was timed, with rates that are `attained`.
    """

    job: Job
    attained: Attained
    parts: StepSeconds
    step_time_s: float
    low_s: float
    high_s: float
    residuals: Residuals
    tokens_per_s_per_gpu: float
    model_flops_utilisation: float


def class_of(run: DescribedRun) -> str:
    """The class whose residuals tell how far off a prediction may be.

    What was never measured, state-space layers or experts on thousands of GPUs, is one of its own.
    """
    return residual_class(
        gpus=run.gpus,
        state_space=run.shape.state_space is not None,
        experts=run.shape.experts is not None,
        framework=framework_class(run),
        dense=dense_class(run.accelerator),
    )


def residual_class(
    *, gpus: int, state_space: bool, experts: bool, framework: str, dense: str
) -> str:
    """The class of a run by its size, its layers, its framework and its generation of chips.

    `framework` is `framework_class` of the run and `dense` is `dense_class` of its chip.
    """
    large = gpus >= LARGE_GPUS
    if state_space or gpus > MOST_GPUS or (large and experts) or framework == UNKNOWN:
        return UNKNOWN
    if large and dense != UNKNOWN:
        return LARGE
    if framework:
        return framework
    return "mixtures of experts" if experts else dense


def framework_class(run: DescribedRun) -> str:
    """The framework of a run whose residuals make a class of their own; empty for all others.

    For software without a run in the fit it is the class of what was never measured.
    """
    if run.framework in UNTIMED:
        return UNKNOWN
    return run.framework if run.framework in OWN_CLASS else ""


def dense_class(chip: Accelerator) -> str:
    """The class of dense models on chips of a generation."""
    generation = generation_of(chip)
    known = generation not in ("other", "volta")
    return f"dense models on {generation.title()}" if known else UNKNOWN


def interval_class(run: DescribedRun, *, tuned: bool) -> str:
    """The class whose residuals are the interval of a prediction.

    On fewer GPUs than anybody published, and where adapters are `tuned`, of which the fit has no
    run, it is that of what was never measured.
    """
    return UNKNOWN if tuned or run.gpus < FEWEST_GPUS else class_of(run)


def at_share(rates: Attained, peak_flops_per_s: float, compute_efficiency: float) -> Attained:
    """The rates where all matmuls with weights reach this share of the peak.

    Raises InputError for a share outside 0 … 1.
    """
    check_share("compute_efficiency", compute_efficiency)
    rate = peak_flops_per_s * compute_efficiency
    return replace(rates, product_flops_per_s=rate, plain_flops_per_s=rate, expert_flops_per_s=rate)


def predicted_step(
    run: DescribedRun,
    compute_efficiency: float | None = None,
    job: Job | None = None,
    measured: Measured | None = None,
    latencies: tuple[Cluster, Cluster] | None = None,
    time_factor: float | None = None,
) -> PredictedStep:
    """Predict a run; with `compute_efficiency` all its products reach that share of the peak.

    `job` has its numbers where they are not those of `run_job`, and `measured` the rates of a
    reader's machine. `latencies` are the known hardware and the same with a reader's own latencies.
    With a `time_factor` the step takes so many times as long.

    Raises InputError for an efficiency outside 0 … 1.
    """
    rates = attained(run, measured)
    if latencies is not None:
        rates = with_latencies(rates, *latencies)
    if compute_efficiency is not None:
        peak = run.accelerator.peak_flops_per_s(run.dtype)
        rates = at_share(rates, peak, compute_efficiency)
    if time_factor is not None:
        rates = slowed(rates, time_factor)
    job = job or run_job(run)
    parts = timed_step(job, rates)
    seconds = float(parts.total_s)
    known = residuals()[interval_class(run, tuned=bool(job.lora_rank))]
    tokens = run.global_batch * run.sequence
    return PredictedStep(
        job=job,
        attained=rates,
        parts=parts,
        step_time_s=seconds,
        low_s=seconds * known.low,
        high_s=seconds * known.high,
        residuals=known,
        tokens_per_s_per_gpu=tokens / seconds / run.gpus,
        model_flops_utilisation=utilisation_of_step(
            run.shape,
            step_time_s=seconds,
            tokens_per_step=tokens,
            gpus=run.gpus,
            peak_flops_per_s=run.accelerator.peak_flops_per_s(run.dtype),
            sequence=run.sequence,
        ),
    )
