"""The planner asked the other way round: how many nodes, for a deadline, a budget or memory alone.

The batch stays the same whatever the number of nodes. For each number, the layout is the fastest
that fits with the chance that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from figgen.catalog.interruptions import Interruptions
from figgen.errors import InputError
from figgen.models.memory.fit_probability import SAFE
from figgen.models.planner.node_counts import (
    BUDGET,
    DEADLINE,
    FEWEST,
    MOST_NODES,
    SAVED,
    Counted,
    Goal,
    answer,
    counted,
    goal_of,
    least_nodes,
    next_nodes,
    training_cost,
    within_ranks,
)
from figgen.scenarios.options.scenario import Scenario
from figgen.scenarios.planning.goodput_plan import kept
from figgen.scenarios.planning.plan_question import PlanQuestion, plan_question, usual_batch
from figgen.scenarios.planning.plan_rows import PlanRow, plan_rows
from figgen.scenarios.planning.planner import fastest


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is wanted of a training; `price` is that of one accelerator for an hour.

    A layout fits that does so with a chance of `fit_chance`. `tokens` may be missing where only the
    fewest nodes are asked for.
    """

    tokens: float | None
    price: float | None
    failures: Interruptions
    fit_chance: float
    goal: Goal


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """One number of nodes: its layout, and what the training takes (see `TrainingCost`).

    `row` is None where no layout fits, and the numbers of the training are None without tokens.
    """

    nodes: int
    gpus: int
    row: PlanRow | None
    goodput: float | None = None
    days: float | None = None
    low_days: float | None = None
    high_days: float | None = None
    gpu_hours: float | None = None
    price: float | None = None
    energy_j: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """All numbers of nodes that were asked, ascending, and the answer, None if there is none."""

    question: PlanQuestion
    wanted: Wanted
    found: tuple[Sized, ...]
    best: Sized | None


def wanted_of(
    *,
    days: float | None,
    budget: float | None,
    fewest: bool,
    tokens: float | None,
    price: float | None,
    failures: Interruptions,
    fit_chance: float = SAFE,
    most_nodes: int = MOST_NODES,
) -> Wanted:
    """Return what is wanted. Raises InputError where two things are, or something is missing."""
    given = [
        name
        for name, on in (("--within", days), ("--budget", budget), ("--fewest-nodes", fewest))
        if on
    ]
    if len(given) != 1:
        got = " and ".join(given) or "none"
        expected = "one of --within, --budget and --fewest-nodes"
        raise InputError("question", expected=expected, got=got)
    goal = goal_of(
        kind=DEADLINE if days else BUDGET if budget else FEWEST,
        days=days,
        budget=budget,
        tokens=tokens,
        price=price,
        most_nodes=most_nodes,
    )
    return Wanted(tokens=tokens, price=price, failures=failures, fit_chance=fit_chance, goal=goal)


def sizing(asked: Scenario, wanted: Wanted) -> Sizing:
    """Return the answer. Raises InputError as `plan_question` does."""
    question = _question(asked, wanted, 1)
    asked = asked.but(global_batch=_batch(question))
    found = tuple(sized_counts(asked, wanted))
    best = answer(wanted.goal, [_counted(one) for one in found])
    return Sizing(
        question=question,
        wanted=wanted,
        found=tuple(sorted(found, key=lambda one: one.nodes)),
        best=next((one for one in found if best and one.nodes == best.nodes), None),
    )


def sized_counts(asked: Scenario, wanted: Wanted) -> Iterator[Sized]:
    """Yield one number of nodes after the other, as the search asks them."""
    job, found = _question(asked, wanted, 1).job, list[Counted]()
    goal = within_ranks(wanted.goal, job.setup.parallel.gpus_per_node)
    while nodes := next_nodes(goal, found, least_nodes(job)):
        one = _sized(asked, wanted, nodes)
        found.append(_counted(one))
        yield one


def _question(asked: Scenario, wanted: Wanted, nodes: int) -> PlanQuestion:
    return plan_question(asked.but(nodes=nodes), fit_chance=wanted.fit_chance)


def _batch(question: PlanQuestion) -> int:
    job = question.job
    return usual_batch(job.setup.sequence, 1) if question.batch_assumed else job.global_batch


def _counted(one: Sized) -> Counted:
    return counted(one.nodes, fits=one.row is not None, days=one.days, price=one.price)


def _sized(asked: Scenario, wanted: Wanted, nodes: int) -> Sized:
    question = _question(asked, wanted, nodes)
    job = question.job
    gpus = job.world_size
    try:
        found = fastest(question)
    except InputError:
        return Sized(nodes=nodes, gpus=gpus, row=None)
    if not found.fitting:
        return Sized(nodes=nodes, gpus=gpus, row=None)
    (row,) = plan_rows(found, [0])
    if wanted.tokens is None:
        return Sized(nodes=nodes, gpus=gpus, row=row)
    saved = kept(job.setup, SAVED, wanted.failures)
    batch = job.global_batch * job.setup.sequence
    steps_s = (row.step_s, row.low_s, row.high_s)
    power = question.accelerator.tdp
    taken = training_cost(
        saved,
        wanted.tokens,
        batch,
        steps_s,
        gpus,
        wanted.price,
        None if power is None else power.value,
    )
    return Sized(nodes=nodes, gpus=gpus, row=row, goodput=saved.goodput, **asdict(taken))
