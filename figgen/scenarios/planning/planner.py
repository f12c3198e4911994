"""Tries every layout of a job, and ranks the ones that fit by step time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from figgen.models.planner.fastest import fastest as fastest_layouts
from figgen.models.planner.plan import pipelines_of
from figgen.models.planner.ranking import (
    Ranked,
    chance_at,
    front,
    no_layout,
    ranked,
    same_as_best,
    tried,
)
from figgen.scenarios.planning.plan_question import PlanQuestion


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The answer of the planner to a question."""

    question: PlanQuestion
    found: Ranked

    @property
    def layouts(self) -> int:
        """Number of layouts that were tried."""
        return self.found.layouts

    @property
    def fitting(self) -> int:
        """Number of layouts that fit."""
        return self.found.fitting

    @property
    def meshes(self) -> Mapping[int, int]:
        """Positions of each mesh's fastest layout, in order, with its number of fitting layouts."""
        return self.found.meshes

    @cached_property
    def front(self) -> tuple[int, ...]:
        """Positions of layouts that no other beats in both time and memory, fastest first."""
        return front(self.found)

    @cached_property
    def same(self) -> int:
        """Number of layouts that the model's error cannot distinguish from the fastest."""
        known = self.question.residuals
        return same_as_best(self.found, known.low, known.high)

    def chance(self, place: int) -> float:
        """Return the chance that the layout at a position fits, from the spread of peak errors."""
        return chance_at(self.found, place)


def plan(question: PlanQuestion) -> Plan:
    """Search all layouts. Raises InputError with the reason if none fits.

    A page leaves out with `may_fit` what overflows, which with arrays takes twice as long.
    """
    found = ranked(map(tried, pipelines_of(question.job)))
    if not found.layouts:
        raise no_layout(question.job)
    return Plan(question=question, found=found)


def fastest(question: PlanQuestion) -> Plan:
    """Return a plan with the fastest layout and its ties, which are at most `TIED` slower.

    Layouts that do not fit are not counted. Raises InputError as `plan` does.
    """
    return Plan(question=question, found=fastest_layouts(question.job))
