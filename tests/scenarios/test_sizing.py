"""Asking the planner for a number of nodes, compared with a plan for each, and its bounds."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from statistics import NormalDist
from typing import Any

import pytest

from figgen.catalog.interruptions import interruption
from figgen.equations.columns import over
from figgen.errors import InputError
from figgen.models.memory.fit_probability import SAFE, deviations_below, fit_probability, most_bytes
from figgen.models.planner.fastest import bounds_of
from figgen.models.planner.may_fit import may_fit
from figgen.models.planner.plan import Pipeline, pipelines_of, step_s
from figgen.models.planner.ranking import tried
from figgen.models.planner.saving import DAY_S
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.goodput_plan import kept
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.planning.planner import plan
from figgen.scenarios.planning.sizing import Wanted, sizing, wanted_of
from tests.thorough import drawn
from tests.translation.test_plans import random_job

JOB = {"model": "llama-3-8b", "gpus_per_node": 8, "global_batch": 128, "sequence": 4096}
FAILURES = interruption("llama-3-405b")


def _wanted(
    days: float | None = None, budget: float | None = None, *, fewest: bool = False
) -> Wanted:
    return wanted_of(
        days=days,
        budget=budget,
        fewest=fewest,
        tokens=1e11,
        price=2.0,
        failures=FAILURES,
        most_nodes=32,
    )


@cache
def random_pipelines() -> list[tuple[dict[str, Any], Pipeline]]:
    """Return the pipelines of every random job that the planner accepts, with their job."""
    rng, found = random.Random(11), []
    for _ in range(drawn(5, 12)):
        job, every = random_job(rng)
        try:
            question = plan_question(scenario(**job), every)
        except InputError:
            continue
        found += [(job, one) for one in pipelines_of(question.job)]
    return found


def test_no_layout_is_faster_than_the_bound_of_its_entry() -> None:
    compared = 0
    for job, found in random_pipelines():
        bounds = bounds_of(found)
        (seconds,) = over(
            found.modes,
            found.zeros,
            found.entries,
            lambda mode, zero, entry, found=found: (step_s(found, mode, zero, entry),),
        )
        for place, least_s in enumerate(bounds):
            times = seconds[place :: len(found.entries)]
            assert min(times) >= least_s * (1 - 1e-12), (job, found.schedule, found.pp)
            compared += len(times)
    assert compared > 1_000


def test_layouts_left_out_of_a_search_overflow_for_the_reason_counted() -> None:
    left_out = 0
    for job, found in random_pipelines():
        whole, parts = tried(found), [tried(one) for one in may_fit(found)]
        assert [sum(one.refused[at] for one in parts) for at in range(4)] == [*whole.refused]
        assert sum(len(one.places) for one in parts) == len(whole.places), job
        assert min(one.least_bytes for one in parts) == whole.least_bytes, job
        left_out += sum(sum(one.pipeline.left_out) for one in parts)
    assert left_out > 200


@pytest.mark.parametrize("chance", [SAFE, 0.5])
def test_an_answer_is_the_first_layout_that_a_plan_of_its_nodes_offers(chance: float) -> None:
    found = sizing(scenario(**JOB, nodes=1), replace(_wanted(days=5), fit_chance=chance))
    best = found.best
    assert best is not None
    assert best.row is not None
    assert best.days is not None
    assert best.price is not None
    assert best.days <= 5
    whole = plan(plan_question(scenario(**JOB, nodes=best.nodes), fit_chance=chance))
    assert best.row.step_s == whole.found.step_s[0]
    assert min(map(whole.chance, range(whole.fitting))) >= chance * (1 - 1e-12)
    saved = kept(whole.question.job.setup, "behind", FAILURES)
    assert best.days == saved.days(1e11, 128 * 4096, best.row.step_s)
    assert best.price == pytest.approx(2.0 * best.gpus * best.days * 24)
    assert best.energy_j == pytest.approx(700 * best.gpus * best.days * DAY_S)
    fewer = [one for one in found.found if one.nodes < best.nodes and one.days is not None]
    assert fewer
    assert all(one.days > 5 for one in fewer if one.days)


def test_a_budget_buys_the_soonest_end_and_the_batch_stays() -> None:
    cheap = sizing(scenario(**JOB, nodes=1), _wanted(budget=7000))
    rich = sizing(scenario(**JOB, nodes=1), _wanted(budget=9000))
    assert cheap.best is not None
    assert rich.best is not None
    assert cheap.best.price is not None
    assert cheap.best.price <= 7000
    assert rich.best.nodes > cheap.best.nodes
    for one in (*cheap.found, *rich.found):
        if one.row is not None:
            size = int(str(one.row.choices["microbatch_size"]))
            assert one.row.dp * one.row.microbatches * size == 128
    assert sizing(scenario(**JOB, nodes=1), _wanted(budget=1)).best is None


def test_the_fewest_nodes_need_no_tokens_and_leave_out_what_cannot_fit() -> None:
    wanted = replace(_wanted(fewest=True), tokens=None)
    asked = scenario(model="llama-3-70b", gpus_per_node=8, global_batch=64, nodes=1)
    found = sizing(asked, wanted)
    assert found.best is not None
    assert found.best.days is None
    for nodes in range(1, found.best.nodes):
        assert not plan(plan_question(asked.but(nodes=nodes))).fitting, nodes
    # Weights and optimizer state of 70.6 billion parameters take more than one node has.
    assert min(one.nodes for one in found.found) == 2


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({}, "one of --within, --budget and --fewest-nodes"),
        ({"days": 3, "fewest": True}, "one of --within, --budget and --fewest-nodes"),
        ({"days": 3}, "the tokens to train on"),
        ({"budget": 3, "tokens": 1e9}, "your price of one GPU for an hour"),
    ],
)
def test_what_is_missing_is_asked_for(question: dict[str, float], said: str) -> None:
    none = {"days": None, "budget": None, "fewest": False, "tokens": None, "price": None}
    with pytest.raises(InputError, match=said):
        wanted_of(**{**none, **question}, failures=FAILURES)


@pytest.mark.parametrize("chance", [0.01, 0.3, 0.5, 0.6, SAFE, 0.999])
def test_a_chance_has_the_deviations_of_a_normal_distribution(chance: float) -> None:
    found = NormalDist().inv_cdf(chance)
    assert deviations_below(chance) == pytest.approx(found, rel=1e-12, abs=1e-12)
    most = most_bytes(80e9, 0.13, deviations_below(chance))
    assert fit_probability(most, 80e9, 0.13) == pytest.approx(chance, rel=1e-12)


@pytest.mark.parametrize("chance", [0, 1, 95])
def test_a_chance_that_is_none_is_refused(chance: float) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        deviations_below(chance)


def test_days_are_read_as_days() -> None:
    assert _wanted(days=1).goal.most_s == DAY_S
