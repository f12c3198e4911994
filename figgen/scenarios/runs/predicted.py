"""A run's predicted step time, with the interval of measured runs of its class."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.catalog.residuals import Residuals
from figgen.models.step.attained import Attained
from figgen.models.step.compute import utilisation_of_step
from figgen.models.step.job import Job
from figgen.models.step.timed_step import StepSeconds, timed_step
from figgen.scenarios.runs.classes import residuals_of
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.job import run_job
from figgen.scenarios.runs.rate_row import NOTHING_GIVEN, GivenRates
from figgen.scenarios.runs.rates import attained


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedStep:
    """Seconds of a step with their interval, and the parts that make them up.

    `job` is what was timed, at the rates `attained`.
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


def predicted_step(
    run: DescribedRun, job: Job | None = None, said: GivenRates = NOTHING_GIVEN
) -> PredictedStep:
    """Predict a run; `job` replaces the job that `run_job` returns.

    Raises InputError for an efficiency outside 0 … 1 in `said`.
    """
    rates = attained(run, said)
    job = job or run_job(run)
    parts = timed_step(job, rates)
    seconds = float(parts.total_s)
    known = residuals_of(run, tuned=bool(job.lora_rank))
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
