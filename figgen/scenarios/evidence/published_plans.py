"""Published layouts next to the fastest that the planner finds for the same job.

Planning all of them takes half a minute, so the catalog stores the fastest layouts; their times and
those of the published layouts are recomputed. Model, cluster, batch, sequence, precision and
software are those of the publication.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from figgen import catalog
from figgen.catalog.planned import planned_best
from figgen.lookups import remembered
from figgen.models.planner.plan_terms import named_terms
from figgen.scenarios.options.option import Choices
from figgen.scenarios.options.resolve import TrainingStep, resolve
from figgen.scenarios.options.scenario import Scenario, scenario
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.planning.plan_rows import TERMS, choices_of
from figgen.scenarios.planning.planner import fastest
from figgen.scenarios.runs.step_as_run import described, job_of


def training_presets() -> tuple[str, ...]:
    """Return the presets of published runs, by name."""
    found = catalog.PRESETS.items()
    return tuple(name for name, preset in found if isinstance(preset, catalog.TrainingPreset))


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPlan:
    """A published layout, the fastest one of `layouts`, and the seconds of both by `TERMS`."""

    preset: str
    layouts: int
    published: TrainingStep
    best: TrainingStep
    published_terms: Mapping[str, float]
    best_terms: Mapping[str, float]

    @property
    def behind(self) -> float:
        """Relative excess of the published layout's predicted time.

        It is negative if the published layout is faster, as with layouts that the planner does not
        search: uneven stages, other dispatchers.
        """
        return self.published.predicted.step_time_s / self.best.predicted.step_time_s - 1

    @property
    def apart(self) -> bool:
        """Whether the intervals of both are disjoint."""
        return self.best.predicted.high_s < self.published.predicted.low_s

    @property
    def loses_by(self) -> tuple[str, float]:
        """The term with the largest excess, and the excess relative to the best step."""
        more = {n: self.published_terms[n] - self.best_terms[n] for n in TERMS}
        worst = max(more, key=lambda name: more[name])
        return worst, more[worst] / self.best.predicted.step_time_s


@remembered(64)
def published_plan(preset: str) -> PublishedPlan:
    """Return the published layout of a preset next to the planner's.

    Raises InputError for a preset that was not planned.
    """
    found = planned_best()[preset]
    published = resolve(scenario(preset=preset))
    best = resolve(best_scenario(published, dict(found.choices)))
    return PublishedPlan(
        preset=preset,
        layouts=found.layouts,
        published=published,
        best=best,
        published_terms=step_terms(published),
        best_terms=step_terms(best),
    )


def best_scenario(published: TrainingStep, choices: Choices) -> Scenario:
    """Return the published job with another layout."""
    # None would keep the publication's chunks.
    chunks = choices["chunks"] or 1
    return published.asked.but(
        **{**choices, "chunks": chunks}, global_batch=published.setup.global_batch
    )


def step_terms(found: TrainingStep) -> dict[str, float]:
    """Return the seconds of a step by `TERMS`."""
    name = found.run.name if found.run else ""
    run = described(found.setup, found.accelerator, found.nic, found.dtype, found.software, name)
    terms = named_terms(job_of(found.setup, run), found.predicted.parts)
    return {term: float(terms[term]) for term in TERMS}


def searched(preset: str) -> tuple[int, Choices]:
    """Return the number of layouts of a published job, and the options of the fastest one."""
    found = fastest(plan_question(scenario(preset=preset)))
    return found.layouts, choices_of(found, 0)
