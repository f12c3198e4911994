"""Routing compared with small cases done by hand and sums over every outcome."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from figgen.errors import InputError
from figgen.models.shape.routing import (
    bias_balancing,
    expected_groups,
    expected_overflow,
    load_balance_loss,
    route,
)


def test_gates_are_the_chosen_probabilities_renormalised() -> None:
    routing = route(np.log(np.array([[0.5, 0.3, 0.15, 0.05], [0.1, 0.2, 0.7, 0.0001]])), 2)
    assert routing.choices.tolist() == [[0, 1], [2, 1]]
    assert routing.gates[0] == pytest.approx([0.625, 0.375])
    assert routing.gates[1] == pytest.approx([0.7 / 0.9, 0.2 / 0.9])
    assert routing.loads == (1, 2, 1, 0)


def test_bias_changes_the_choice_and_not_the_gates() -> None:
    logits = np.log(np.array([[0.5, 0.3, 0.2]]))
    routing = route(logits, 1, bias=np.array([0.0, 0.0, 0.4]))
    assert routing.choices.tolist() == [[2]]
    assert routing.probabilities[0] == pytest.approx([0.5, 0.3, 0.2])
    assert routing.gates.tolist() == [[1.0]]


@pytest.mark.parametrize(("experts", "top_k"), [(4, 1), (8, 2), (8, 4)])
def test_even_routing_has_loss_1_and_one_hot_routing_the_most(experts: int, top_k: int) -> None:
    even = np.full((experts, experts), 1 / experts)
    round_robin = (np.arange(experts)[:, None] + np.arange(top_k)) % experts
    assert load_balance_loss(even, round_robin) == pytest.approx(1)
    same = np.tile(np.arange(top_k), (experts, 1))
    hot = np.zeros((experts, experts))
    hot[:, :top_k] = 1 / top_k
    assert load_balance_loss(hot, same) == pytest.approx(experts / top_k)


@pytest.mark.parametrize(("tokens", "share", "capacity"), [(6, 0.25, 2), (5, 0.5, 0), (4, 0.1, 9)])
def test_overflow_is_the_mean_over_every_outcome(tokens: int, share: float, capacity: int) -> None:
    mean = 0.0
    for outcome in itertools.product((0, 1), repeat=tokens):
        hits = sum(outcome)
        mean += share**hits * (1 - share) ** (tokens - hits) * max(0, hits - capacity)
    assert expected_overflow(tokens, share, capacity) == pytest.approx(mean)


@pytest.mark.parametrize(
    ("experts", "groups", "top_k"), [(6, 3, 2), (8, 4, 3), (6, 6, 4), (4, 1, 2)]
)
def test_groups_are_the_mean_over_every_choice(experts: int, groups: int, top_k: int) -> None:
    sets = list(itertools.combinations(range(experts), top_k))
    each = experts // groups
    mean = sum(len({expert // each for expert in chosen}) for chosen in sets) / len(sets)
    assert expected_groups(experts, groups, top_k) == pytest.approx(mean)


def test_bias_evens_out_what_a_router_prefers() -> None:
    sizes = {"experts": 8, "top_k": 2, "tokens": 256, "steps": 80}
    alone = bias_balancing(**sizes, rate=0.0)
    helped = bias_balancing(**sizes, rate=0.02)
    assert alone[0] == helped[0] > 1.5
    assert min(alone) > 1.4
    assert max(helped[-20:]) < 1.4


def test_unfit_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="1 to 3"):
        route(np.zeros((1, 3)), 4)
    for groups in (3, 0):
        with pytest.raises(InputError, match="divisor of 8 experts"):
            expected_groups(8, groups, 2)
    with pytest.raises(InputError, match="between 0 and 1"):
        expected_overflow(4, 1.0, 2)


@pytest.mark.parametrize("top_k", [0, 5])
def test_a_token_goes_to_one_expert_at_least_and_to_all_at_most(top_k: int) -> None:
    with pytest.raises(InputError, match="top_k: expected 1 to 4"):
        route(np.zeros((2, 4)), top_k)
