"""The job that the journey follows from one GPU to 512, with one rung of the ladder per page."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.equations.opened_data import Opened
from figgen.errors import InputError
from figgen.scenarios.options.resolve import TrainingStep
from figgen.scenarios.options.written import written_step
from figgen.scenarios.runs.predicted import PredictedStep
from figgen.scenarios.stories.journey_ladder import RUNGS
from figgen.scenarios.stories.journey_step import JourneyStep
from figgen.scenarios.stories.opened import opened


@dataclass(frozen=True, slots=True, kw_only=True)
class JourneyJob(JourneyStep):
    """A training step of the catalog as the numbers that the journey's pages quote."""

    found: TrainingStep
    source = "our models of a step and its memory, which figgen step and figgen memory print"
    follows = True

    def opened(self, field: str) -> Opened:
        """Return what a page shows for an opened field: formula, substitution and parts."""
        described = getattr(type(self), field).__doc__ or ""
        plain = Opened(formula=described.split("\n\n")[0], worked="", parts=())
        return opened(self, field) or plain

    @property
    def predicted(self) -> PredictedStep:
        """The predicted time of the step and its parts."""
        return self.found.predicted


def job(model: str, sizes: str, options: str = "") -> JourneyJob:
    """Return the job for sizes and options as written on pages.

    Raises InputError as `written_step` does.
    """
    first = RUNGS[0]
    alone = written_step(model=first.model, sizes=first.sizes, options=first.options)
    return of_step(written_step(model=model, sizes=sizes, options=options), alone)


def of_step(found: TrainingStep, first: TrainingStep) -> JourneyJob:
    """Return any step as numbers of a journey whose first step is `first`."""
    return JourneyJob(
        setup=found.setup,
        cluster=found.cluster,
        estimate=found.estimate,
        parts=found.predicted.parts,
        memory=found.memory,
        interval_s=found.interval_s,
        interval_of=found.predicted.residuals.name,
        job=found.predicted.job,
        attained=found.predicted.attained,
        first_tokens_per_second=first.setup.tokens_per_step / first.predicted.step_time_s,
        memory_rate=found.accelerator.hbm_bandwidth.value,
        found=found,
    )


def rung(page: int) -> JourneyJob:
    """Return the job at the end of a page. Raises InputError for a page without a job."""
    if page not in range(1, len(RUNGS) + 1):
        raise InputError("page of the journey", expected=f"1 to {len(RUNGS)}", got=page)
    found = RUNGS[page - 1]
    return job(found.model, found.sizes, found.options)
