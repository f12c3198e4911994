"""The search over numbers of nodes compared with trying every number."""

from __future__ import annotations

import random
from math import inf

import pytest

from figgen.models.planner.node_counts import (
    BUDGET,
    DEADLINE,
    FEWEST,
    Counted,
    Goal,
    answer,
    meets,
    next_nodes,
)


def _searched(goal: Goal, training_s: dict[int, float], least: int = 1) -> list[Counted]:
    found: list[Counted] = []
    while nodes := next_nodes(goal, found, least):
        seconds = training_s.get(nodes, inf)
        price = nodes * seconds if seconds < inf else inf
        found.append(Counted(nodes=nodes, fits=seconds < inf, training_s=seconds, price=price))
    assert len({one.nodes for one in found}) == len(found)
    return found


def _scaling(rng: random.Random, fits_from: int) -> dict[int, float]:
    """Return the days of a training by Amdahl's law, of which a share does not get faster."""
    whole, serial = 10 ** rng.uniform(1, 5), rng.uniform(0, 0.02)
    return {n: whole * (serial + (1 - serial) / n) for n in range(fits_from, 2100)}


def test_where_more_nodes_are_faster_the_answer_is_the_best_of_the_grid() -> None:
    rng = random.Random(3)
    answered = 0
    for _ in range(60):
        fits_from = rng.choice((1, 1, 3, 17))
        times = _scaling(rng, fits_from)
        limit = times[rng.randint(fits_from, 1000)] * rng.uniform(0.9, 1.1)
        for goal in (
            Goal(kind=DEADLINE, most_nodes=2048, most_s=limit),
            Goal(kind=BUDGET, most_nodes=2048, budget=limit * rng.randint(1, 300)),
            Goal(kind=FEWEST, most_nodes=2048),
        ):
            found = _searched(goal, times)
            best = answer(goal, found)
            all_of_them = [
                Counted(nodes=n, fits=True, training_s=s, price=n * s) for n, s in times.items()
            ]
            wanted = answer(goal, [one for one in all_of_them if one.nodes <= 2048])
            if wanted is None:
                assert best is None
                continue
            answered += 1
            assert best is not None, (goal, wanted)
            assert meets(goal, best)
            # Within a sixteenth of a power of two of the best of all numbers.
            away = abs(best.nodes - wanted.nodes) / max(best.nodes, wanted.nodes)
            assert away <= 1 / 8, (goal, best, wanted)
            assert len(found) <= 13 + 8
    assert answered > 100


def test_a_search_ends_where_more_nodes_do_not_help() -> None:
    slower = {n: 100.0 / n + n for n in range(1, 5000)}
    found = _searched(Goal(kind=DEADLINE, most_nodes=2048, most_s=1.0), slower)
    assert [one.nodes for one in found] == [1, 2, 4, 8, 16]
    assert answer(Goal(kind=DEADLINE, most_nodes=2048, most_s=1.0), found) is None


def test_numbers_of_nodes_below_the_least_are_not_asked() -> None:
    goal = Goal(kind=FEWEST, most_nodes=64)
    found = _searched(goal, dict.fromkeys(range(22, 65), 1.0), least=20)
    assert [one.nodes for one in found] == [32, 64, 18, 20, 22]
    best = answer(goal, found)
    assert best is not None
    assert best.nodes == 22


@pytest.mark.parametrize("most", [1, 3, 100])
def test_no_more_nodes_than_allowed_are_asked(most: int) -> None:
    goal = Goal(kind=DEADLINE, most_nodes=most, most_s=1e-9)
    found = _searched(goal, {n: 1.0 / n for n in range(1, 200)})
    assert max(one.nodes for one in found) <= most
    assert answer(goal, found) is None
