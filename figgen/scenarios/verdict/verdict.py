"""Whether a job's measured speed is good, and if not, why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from figgen.models.step.job import Job
from figgen.scenarios.options.resolve import TrainingStep
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.predicted import PredictedStep
from figgen.scenarios.runs.step_as_run import described, job_of
from figgen.scenarios.verdict.changed import TimedJob
from figgen.scenarios.verdict.like import LikeRun, like_runs, utilisation_of
from figgen.scenarios.verdict.measurement import MeasuredSpeed, measured_time
from figgen.scenarios.verdict.reasons import Reason, reasons_of, spread_of

WORDS = ("faster than predicted", "as predicted", "slower than predicted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A measured step beside its prediction, like runs that were published, and reasons.

    `word` is one of `WORDS`, by the interval in which eight of ten runs of its class lie.
    """

    run: DescribedRun
    predicted: PredictedStep
    measured: MeasuredSpeed
    utilisation: float
    like: tuple[LikeRun, ...]
    reasons: tuple[Reason, ...]

    @property
    def ratio(self) -> float:
        """Measured over predicted seconds."""
        return self.measured.step_time_s / self.predicted.step_time_s

    @property
    def word(self) -> str:
        known = self.predicted.residuals
        return WORDS[0 if self.ratio < known.low else 2 if self.ratio > known.high else 1]

    @property
    def slower_than(self) -> int:
        """How many of the like runs have a higher utilisation."""
        return sum(one.utilisation > self.utilisation for one in self.like)


def verdict_of(
    run: DescribedRun,
    job: Job,
    predicted: PredictedStep,
    measured: MeasuredSpeed,
    *,
    filled: float | None = None,
) -> Verdict:
    """The verdict on a run: `job` are its numbers, `filled` its share of the GPU's memory."""
    timed = TimedJob(run=run, job=job, rates=predicted.attained, seconds=predicted.step_time_s)
    known = predicted.residuals
    if measured.memory_bytes is not None:
        filled = measured.memory_bytes / run.accelerator.capacity_bytes
    return Verdict(
        run=run,
        predicted=predicted,
        measured=measured,
        utilisation=utilisation_of(run, measured.step_time_s),
        like=like_runs(run),
        reasons=reasons_of(timed, measured, spread_of(known.low, known.high), filled),
    )


def verdict_of_step(asked: TrainingStep, measured: Mapping[str, float | str | None]) -> Verdict:
    """The verdict on a configured step; `measured` are the keywords of `measured_time`.

    Raises InputError for a step that cannot be, and for what `measured_time` refuses.
    """
    setup = asked.setup
    run = described(setup, asked.accelerator, asked.nic, asked.dtype, asked.software, asked.title)
    filled = asked.memory.fullest.total_bytes / asked.accelerator.capacity_bytes
    found = measured_time(run, **measured)  # type: ignore[arg-type]
    job, predicted = job_of(setup, run), asked.predicted
    return verdict_of(run, job, predicted, found, filled=filled)
