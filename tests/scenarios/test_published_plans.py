"""Published layouts next to the planner's: quick searches agree, and the file is up to date."""

from __future__ import annotations

from typing import Any

import pytest

from figgen.catalog.planned import planned_best
from figgen.models.memory.fit_probability import SAFE
from figgen.models.planner.ranking import TIED
from figgen.scenarios.evidence.published_plans import published_plan, searched, training_presets
from figgen.scenarios.options.resolve import resolve
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.planning.plan_rows import choices_of, label, layout_words, plan_rows
from figgen.scenarios.planning.planner import fastest, plan
from tests.thorough import one_in

JOBS: tuple[dict[str, Any], ...] = (
    {"model": "llama-3-70b", "nodes": 8, "global_batch": 48},
    {"model": "mixtral-8x7b", "nodes": 4, "sequence": 4096, "global_batch": 64},
    {"model": "llama-3-8b", "nodes": 1, "global_batch": 8, "software": "torchtitan"},
    {"preset": "gpt-175b-selective"},
)
QUICK = ("gpt-175b-selective", "opt-175b", "llama-3-405b-131k", "llama-3-405b-8k-16384")
"""Presets whose search takes a few tenths of a second; the file's other presets are not checked."""


@pytest.mark.parametrize("job", one_in(2, JOBS))
def test_the_fastest_is_the_first_of_all(job: dict[str, Any]) -> None:
    sizes = {} if "preset" in job else {"gpus_per_node": 8}
    question = plan_question(scenario(**sizes, **job))
    first, whole = fastest(question), plan(question)
    assert first.layouts == whole.layouts
    assert choices_of(first, 0) == choices_of(whole, 0)
    assert first.found.step_s[0] == whole.found.step_s[0]
    assert max(first.found.step_s) <= min(whole.found.step_s) * (1 + TIED)


@pytest.mark.parametrize("preset", one_in(2, QUICK))
def test_the_catalog_has_what_is_found_today(preset: str) -> None:
    known = planned_best()[preset]
    assert searched(preset) == (known.layouts, known.choices)


def test_every_published_layout_stands_beside_one_that_surely_fits_and_is_no_slower() -> None:
    assert set(planned_best()) == set(training_presets())
    for preset in training_presets():
        found = published_plan(preset)
        assert (found.best.memory.fit_probability or 0) >= SAFE, preset
        risky = (found.published.memory.fit_probability or 0) < SAFE
        assert found.behind >= -1e-9 or risky, preset
        for step, terms in (
            (found.published, found.published_terms),
            (found.best, found.best_terms),
        ):
            assert sum(terms.values()) == pytest.approx(step.predicted.step_time_s, rel=1e-12)
        assert (found.best.setup.global_batch, found.best.setup.sequence) == (
            found.published.setup.global_batch, found.published.setup.sequence
        )  # fmt: skip
        assert found.loses_by[1] <= 1 + found.behind


def test_a_layout_is_written_alike_from_its_options_and_from_its_step() -> None:
    found = plan(plan_question(scenario(gpus_per_node=8, **JOBS[1])))
    for row in plan_rows(found, range(0, found.fitting, found.fitting // 40)):
        asked = found.question.asked.but(**row.choices)
        assert layout_words(resolve(asked).setup) == label(row)
