"""How many nodes a training needs to meet a deadline or a budget, or to fit in memory.

The batch is the same for every number of nodes. For each number, the layout is the fastest that
fits with the requested chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

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
from figgen.models.planner.plan import PlannedJob
from figgen.models.planner.saving import checkpoint_bytes_of, saved_training
from figgen.scenarios.options.scenario import Scenario
from figgen.scenarios.planning.plan_question import PlanQuestion, plan_question, usual_batch
from figgen.scenarios.planning.plan_rows import plan_rows
from figgen.scenarios.planning.planner import fastest


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the user wants of a training; `price` is per accelerator-hour.

    A layout counts as fitting if it fits with a chance of `fit_chance`. `tokens` may be missing if
    only the fewest nodes are asked for.
    """

    tokens: float | None
    price: float | None
    failures: Interruptions
    fit_chance: float
    goal: Goal


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """The answer for one number of nodes: the layout, and the training's cost (`TrainingCost`)."""

    nodes: int
    gpus: int
    global_batch: int
    row: Any
    goodput: float | None = None
    days: float | None = None
    low_days: float | None = None
    high_days: float | None = None
    gpu_hours: float | None = None
    price: float | None = None
    energy_j: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """The answers for all numbers of nodes in ascending order, and the chosen one or None."""

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
    """Return what is wanted. Raises InputError if it is contradictory or incomplete."""
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
    """Return the answer to the question. Raises InputError as `plan_question` does."""
    question = _question(asked, wanted, 1)
    asked = asked.but(global_batch=held_batch(question.job, question.batch_assumed))
    one_node = _question(asked, wanted, 1).job
    found = tuple(sized_counts(wanted.goal, one_node, lambda nodes: _sized(asked, wanted, nodes)))
    best = answer(wanted.goal, [counted_of(one) for one in found])
    return Sizing(
        question=question,
        wanted=wanted,
        found=tuple(sorted(found, key=lambda one: one.nodes)),
        best=next((one for one in found if best and one.nodes == best.nodes), None),
    )


def sized_counts(
    goal: Goal, one_node: PlannedJob, sized: Callable[[int], Sized]
) -> Iterator[Sized]:
    """Yield the answer for one number of nodes after the other, as the search requests them."""
    goal = within_ranks(goal, one_node.setup.parallel.gpus_per_node)
    least, found = least_nodes(one_node), list[Counted]()
    while nodes := next_nodes(goal, found, least):
        one = sized(nodes)
        found.append(counted_of(one))
        yield one


def counted_of(one: Sized) -> Counted:
    """Return what the search needs to know about a number of nodes."""
    return counted(one.nodes, fits=one.row is not None, days=one.days, price=one.price)


def sized_training(
    one: Sized,
    job: PlannedJob,
    steps_s: tuple[float, float, float],
    *,
    tokens: float,
    price: float | None,
    gpu_mtbf_s: float,
    power_w: float | None,
) -> Sized:
    """Return the same number of nodes with the cost of a training on `tokens`.

    The step's times are in seconds: the prediction and the ends of its interval.
    """
    size = checkpoint_bytes_of(job.setup)
    saved = saved_training(SAVED, size, job.world_size, gpu_mtbf_s)
    batch = job.global_batch * job.setup.sequence
    taken = training_cost(saved, tokens, batch, steps_s, job.world_size, price, power_w)
    return replace(
        one,
        goodput=saved.goodput,
        days=taken.days,
        low_days=taken.low_days,
        high_days=taken.high_days,
        gpu_hours=taken.gpu_hours,
        price=taken.price,
        energy_j=taken.energy_j,
    )


def _question(asked: Scenario, wanted: Wanted, nodes: int) -> PlanQuestion:
    return plan_question(asked.but(nodes=nodes), fit_chance=wanted.fit_chance)


def held_batch(job: PlannedJob, assumed: bool) -> int:
    """Return the batch that is used for every number of nodes, from the job on any number."""
    return usual_batch(job.setup.sequence, 1) if assumed else job.global_batch


def _sized(asked: Scenario, wanted: Wanted, nodes: int) -> Sized:
    question = _question(asked, wanted, nodes)
    job = question.job
    none = Sized(nodes=nodes, gpus=job.world_size, global_batch=job.global_batch, row=None)
    try:
        found = fastest(question)
    except InputError:
        return none
    if not found.fitting:
        return none
    (row,) = plan_rows(found, [0])
    one, power = replace(none, row=row), question.accelerator.tdp
    if wanted.tokens is None:
        return one
    return sized_training(
        one,
        job,
        (row.step_s, row.low_s, row.high_s),
        tokens=wanted.tokens,
        price=wanted.price,
        gpu_mtbf_s=wanted.failures.gpu_mtbf_s,
        power_w=None if power is None else power.value,
    )
