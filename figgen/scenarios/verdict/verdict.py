"""Whether a job's measured speed is good, and if not, why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from figgen.catalog.rates import constants
from figgen.models.step.attained import Attained
from figgen.models.step.job import Job
from figgen.scenarios.options.resolve import TrainingStep
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.predicted import PredictedStep
from figgen.scenarios.runs.step_as_run import described, job_of
from figgen.scenarios.verdict.changed import TimedJob
from figgen.scenarios.verdict.like import LikeRun, like_runs, utilisation_of
from figgen.scenarios.verdict.measurement import MeasuredSpeed, measured_time
from figgen.scenarios.verdict.reasons import Reason, reasons_of, spread_of
from figgen.scenarios.verdict.words import verdict_word


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A measured step with its prediction, similar published runs, and reasons.

    `word` says whether it is faster or slower than the interval of eight in ten runs of its class.
    """

    run: DescribedRun
    predicted: PredictedStep
    measured: MeasuredSpeed
    utilisation: float
    like: tuple[LikeRun, ...]
    reasons: tuple[Reason, ...]

    @property
    def ratio(self) -> float:
        """Measured seconds divided by predicted seconds."""
        return self.measured.step_time_s / self.predicted.step_time_s

    @property
    def word(self) -> str:
        known = self.predicted.residuals
        return verdict_word(self.ratio, known.low, known.high)

    @property
    def slower_than(self) -> int:
        """Number of similar runs with a higher utilization."""
        return sum(one.row.utilisation > self.utilisation for one in self.like)


def timed_job(run: DescribedRun, job: Job, rates: Attained, seconds: float) -> TimedJob:
    """Return a run in the form that causes need; a chip without TF32 counts half of its peak."""
    peak = run.accelerator.peak_flops_per_s(run.dtype)
    tf32 = run.accelerator.tf32
    values = constants()
    return TimedJob(
        job=job,
        rates=rates,
        seconds=seconds,
        head_dim=run.shape.head_dim,
        framework=run.framework,
        network_per_node=run.network.per == "node",
        peak_flops_per_s=peak,
        tf32_flops_per_s=tf32.value if tf32 is not None else peak / 2,
        eager_elementwise=values["elementwise.eager"].value,
        eager_loss_bytes=values["loss_bytes.eager"].value,
    )


def verdict_of(
    run: DescribedRun,
    job: Job,
    predicted: PredictedStep,
    measured: MeasuredSpeed,
    *,
    filled: float | None = None,
) -> Verdict:
    """Return the verdict on a run; `filled` is the share of the GPU's memory in use."""
    timed = timed_job(run, job, predicted.attained, predicted.step_time_s)
    known = predicted.residuals
    if measured.memory_bytes is not None:
        filled = measured.memory_bytes / run.accelerator.capacity_bytes
    return Verdict(
        run=run,
        predicted=predicted,
        measured=measured,
        utilisation=utilisation_of(run, measured.step_time_s),
        like=like_runs(run),
        reasons=tuple(
            reasons_of(
                timed,
                measured.step_time_s,
                spread_of(known.low, known.high),
                filled=filled,
                steps=measured.steps,
            )
        ),
    )


def verdict_of_step(asked: TrainingStep, measured: Mapping[str, float | str | None]) -> Verdict:
    """Return the verdict on a configured step; `measured` are keywords of `measured_time`.

    Raises InputError for an impossible step, and in the cases of `measured_time`.
    """
    setup = asked.setup
    run = described(setup, asked.accelerator, asked.nic, asked.dtype, asked.software, asked.title)
    filled = asked.memory.fullest.total_bytes / asked.accelerator.capacity_bytes
    found = measured_time(run, **measured)  # type: ignore[arg-type]
    job, predicted = job_of(setup, run), asked.predicted
    return verdict_of(run, job, predicted, found, filled=filled)
