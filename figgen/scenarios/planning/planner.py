"""The best layouts of a job: every one is tried, those that fit are ranked and explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp
from statistics import NormalDist

import numpy as np

from figgen.equations.columns import chosen, least, over
from figgen.models.memory.fit_probability import SAFE, fit_probability
from figgen.models.planner.plan import Pipeline, pipelines_of, step_s
from figgen.models.planner.ranking import (
    TIED,
    Ranked,
    TriedPipeline,
    front,
    no_layout,
    ranked,
    same_as_best,
    tried,
)
from figgen.scenarios.planning.plan_question import PlanQuestion

AT_ONCE = 256
"""Entries that are asked at once whether they fit, where only the fastest layout is wanted."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a search found for a question."""

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
        """Places of the fastest layout of every mesh, in order, with how many of that one fit."""
        return self.found.meshes

    @cached_property
    def front(self) -> tuple[int, ...]:
        """Places of layouts that none beats in time and memory, fastest first."""
        return front(self.found)

    @cached_property
    def same(self) -> int:
        """Number of layouts that the error of the model cannot tell from the fastest."""
        known = self.question.residuals
        return same_as_best(self.found, known.low, known.high)

    def chance(self, place: int) -> float:
        """How likely the layout at a place fits, by how far the framework's peaks are off."""
        job, needed = self.question.job, float(self.found.memory_bytes[place])
        return fit_probability(needed, job.capacity_bytes, job.setup.framework_memory.peak_spread)

    @property
    def safest(self) -> int | None:
        """The place of the fastest layout that fits with a chance of `SAFE`; None without one."""
        job = self.question.job
        spread = job.setup.framework_memory.peak_spread
        most = job.capacity_bytes * exp(-spread * NormalDist().inv_cdf(SAFE))
        places = np.flatnonzero(np.asarray(self.found.memory_bytes) <= most)
        return int(places[0]) if len(places) else None


def plan(question: PlanQuestion) -> Plan:
    """Search all layouts. Raises InputError where there is none, with what stands in the way."""
    found = ranked(map(tried, pipelines_of(question.job)))
    if not found.layouts:
        raise no_layout(question.job)
    return Plan(question=question, found=found)


def fastest(question: PlanQuestion) -> Plan:
    """The plan whose first layout is that of `plan`, with none that is slower by more than `TIED`.

    Only what is faster than the best so far is asked whether it fits, so that what does not fit is
    not counted. Raises InputError as `plan` does.
    """
    found, most_s, layouts = list[TriedPipeline](), np.inf, 0
    for pipeline in pipelines_of(question.job):
        layouts += pipeline.count
        least_s = _least_s(pipeline)
        order = np.argsort(least_s, kind="stable")
        for at in range(0, len(order), AT_ONCE):
            places = sorted(place for place in order[at : at + AT_ONCE] if least_s[place] <= most_s)
            if not places:
                break
            one = tried(replace(pipeline, entries=tuple(pipeline.entries[at] for at in places)))
            if len(one.step_s) and least(one.step_s) <= most_s:
                most_s = min(most_s, least(one.step_s) * (1 + TIED))
                found = [_within(each, most_s) for each in (*found, one)]
    if not layouts:
        raise no_layout(question.job)
    best = replace(ranked(found), layouts=layouts, refused={}, least_bytes=np.inf)
    return Plan(question=question, found=best)


def _least_s(found: Pipeline) -> np.ndarray:
    """Seconds of the fastest layout of every entry, whether it fits or not."""
    (seconds,) = over(
        found.modes,
        found.zeros,
        found.entries,
        lambda mode, zero, entry: (step_s(found, mode, zero, entry),),
    )
    least_s: np.ndarray = np.asarray(seconds).reshape(-1, len(found.entries)).min(axis=0)
    return least_s


def _within(found: TriedPipeline, most_s: float) -> TriedPipeline:
    """The layouts that take no longer than that."""
    kept = [place for place, step_s in enumerate(found.step_s) if step_s <= most_s]
    return replace(
        found,
        places=chosen(found.places, kept),
        step_s=chosen(found.step_s, kept),
        memory_bytes=chosen(found.memory_bytes, kept),
        ties=chosen(found.ties, kept),
        meshes=chosen(found.meshes, kept),
    )
