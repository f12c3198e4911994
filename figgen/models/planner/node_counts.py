"""The number of nodes that meets a goal: a deadline, a budget, or the fewest that fit.

The search tries powers of two until more nodes cannot help, then counts between the best of them
and its neighbor, in sixteenths of the larger one. `next_nodes` returns the count to try next, so
that the best answer so far can be shown while the search goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf

from figgen.errors import InputError
from figgen.models.machine.layout import MOST_RANKS
from figgen.models.planner.plan import PlannedJob
from figgen.models.planner.saving import DAY_S, SavedTraining
from figgen.models.shape.transformer import parameter_counts

DEADLINE, BUDGET, FEWEST = "deadline", "budget", "fewest"
GOALS = (DEADLINE, BUDGET, FEWEST)
"""Fewest nodes within a time, least time within a price, and fewest nodes that fit."""

SAVED = "behind"
"""How checkpoints are saved: to storage, while training goes on."""

MOST_NODES = 16_384
"""Most nodes that a search tries if no limit is given."""

HOUR_S = 3600.0

STEPS = 16
"""The search tries counts in steps of 1/`STEPS` of the larger of two powers of two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A limit on a training: `most_s` seconds or a `budget`, on at most `most_nodes` nodes.

    The budget is in the currency of the price of a GPU-hour.
    """

    kind: str
    most_nodes: int
    most_s: float = inf
    budget: float = inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A number of nodes, with the seconds and the price of the whole training on them.

    Both are inf where no layout fits. A search for the fewest nodes needs neither.
    """

    nodes: int
    fits: bool
    training_s: float
    price: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCost:
    """The cost of a training: days with their interval, GPU-hours, price and energy.

    `price` and `energy_j` are None where the price or the power is unknown. The energy is that of
    the accelerators alone, at their power limit.
    """

    days: float
    low_days: float
    high_days: float
    gpu_hours: float
    price: float | None
    energy_j: float | None


def goal_of(
    *,
    kind: str,
    days: float | None,
    budget: float | None,
    tokens: float | None,
    price: float | None,
    most_nodes: int = MOST_NODES,
) -> Goal:
    """Return the goal of a search; `price` is the price of a GPU-hour.

    Raises InputError for a deadline or budget without tokens, and for a budget without a price.
    """
    if kind != FEWEST and tokens is None:
        raise InputError("tokens", expected="the tokens to train on", got="none")
    if kind == BUDGET and price is None:
        expected = "your price of one GPU for an hour"
        what = "price of a GPU-hour"
        raise InputError(what, expected=expected, got="none", key="gpu_hour_price")
    return Goal(
        kind=kind,
        most_nodes=most_nodes,
        most_s=days * DAY_S if kind == DEADLINE and days is not None else inf,
        budget=budget if kind == BUDGET and budget is not None else inf,
    )


def within_ranks(goal: Goal, gpus_per_node: int) -> Goal:
    """Return the goal with `most_nodes` lowered to what `MOST_RANKS` GPUs allow."""
    return replace(goal, most_nodes=min(goal.most_nodes, MOST_RANKS // gpus_per_node))


def counted(nodes: int, *, fits: bool, days: float | None, price: float | None) -> Counted:
    """Return a number of nodes with its training time (inf if unknown) and price (0 if unknown)."""
    training_s = inf if days is None else days * DAY_S
    return Counted(nodes=nodes, fits=fits, training_s=training_s, price=price or 0.0)


def training_cost(
    saved: SavedTraining,
    tokens: float,
    tokens_per_step: int,
    steps_s: tuple[float, float, float],
    gpus: int,
    price: float | None,
    power_w: float | None,
) -> TrainingCost:
    """Return what training on `tokens` tokens costs.

    `steps_s` holds the predicted seconds of a step and the two ends of their interval, `price` is
    the price of a GPU-hour, and `power_w` is the power limit of an accelerator.
    """
    days, low, high = [saved.days(tokens, tokens_per_step, step_s) for step_s in steps_s]
    hours = gpus * days * DAY_S / HOUR_S
    return TrainingCost(
        days=days,
        low_days=low,
        high_days=high,
        gpu_hours=hours,
        price=None if price is None else hours * price,
        energy_j=None if power_w is None else power_w * hours * HOUR_S,
    )


def meets(goal: Goal, one: Counted) -> bool:
    """Return whether a number of nodes fits the job and meets the goal."""
    return one.fits and one.training_s <= goal.most_s and one.price <= goal.budget


def answer(goal: Goal, found: Sequence[Counted]) -> Counted | None:
    """Return the best of the counts that meet the goal, or None if none of them does."""
    best: Counted | None = None
    for one in found:
        if meets(goal, one) and (best is None or _better(goal, one, best)):
            best = one
    return best


def _better(goal: Goal, one: Counted, other: Counted) -> bool:
    if goal.kind == BUDGET:
        return one.training_s < other.training_s
    return one.nodes < other.nodes


def next_nodes(goal: Goal, found: Sequence[Counted], least: int) -> int:
    """Return the number of nodes to try next, or 0 when the search is over.

    `found` holds the counts tried so far, in order. Below `least` nodes, weights and optimizer
    state alone do not fit.
    """
    nodes = _power_at_least(least)
    known = {one.nodes: one for one in found}
    while nodes <= goal.most_nodes:
        one = known.get(nodes)
        if one is None:
            return nodes
        if _enough(goal, one, known.get(nodes // 2)):
            break
        nodes *= 2
    best = answer(goal, found)
    if best is not None:
        return _between(goal, known, best.nodes)
    fitting = [one.nodes for one in found if one.fits]
    # Fewer nodes than the first power of two that fits may be cheap enough.
    return _between(goal, known, min(fitting)) if goal.kind == BUDGET and fitting else 0


def least_nodes(job: PlannedJob) -> int:
    """Return a number of nodes below which no layout can hold the job's state."""
    setup = job.setup
    if setup.lora_rank is not None:
        return 1
    recipe = setup.recipe
    held = recipe.weight_bytes + recipe.optimizer_bytes * (1 - setup.offloaded_optimizer)
    state = parameter_counts(setup.shape).total * held
    return max(1, ceil(state / job.most_bytes / setup.parallel.gpus_per_node))


def _power_at_least(number: int) -> int:
    power = 1
    while power < number:
        power *= 2
    return power


def _enough(goal: Goal, one: Counted, half: Counted | None) -> bool:
    """Return whether larger counts need not be tried.

    The search still tries twice the nodes of an answer, so that the curve extends beyond it.
    """
    if half is None or not half.fits:
        return False
    if not one.fits:
        return True  # the batch has too few sequences for more nodes
    if goal.kind != FEWEST and one.training_s >= half.training_s:
        return True
    if goal.kind == BUDGET:
        return not meets(goal, one) and not meets(goal, half)
    return meets(goal, half)


def _between(goal: Goal, known: dict[int, Counted], best: int) -> int:
    """Return the next count to try between two powers of two, or 0 if there is none."""
    top = _power_at_least(best)
    if goal.kind == BUDGET:
        top = top * 2 if top == best and meets(goal, known[best]) else top
        asked = list(range(top - 1, top // 2, -1))
    else:
        asked = list(range(top // 2 + 1, top))
    step = max(1, top // STEPS)
    for nodes in asked:
        if nodes % step == 0 and nodes <= goal.most_nodes:
            one = known.get(nodes)
            if one is None:
                return nodes
            if meets(goal, one):
                return 0
    return 0
