"""Sharded blocks compared with the whole block, and the whole block with finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

from figgen.errors import InputError
from figgen.models.algorithms.tensor_parallel import (
    Block,
    Matrix,
    Weights,
    attention_block,
    column_row_slices,
    gelu,
    largest_difference,
    mlp_block,
    row_first_mlp,
    sharded_pass,
)

HEADS, KV_HEADS, HEAD_DIM, TOKENS, HIDDEN = 8, 4, 3, 5, 6


def drawn(*shape: int, seed: int = 0) -> Matrix:
    return np.random.default_rng(seed).standard_normal(shape)


def weights(kind: str) -> Weights:
    if kind == "mlp":
        return drawn(HIDDEN, 16, seed=1), drawn(16, HIDDEN, seed=2)
    kv = KV_HEADS * HEAD_DIM
    return (
        drawn(HIDDEN, HEADS * HEAD_DIM, seed=3),
        drawn(HIDDEN, kv, seed=4),
        drawn(HIDDEN, kv, seed=5),
        drawn(HEADS * HEAD_DIM, HIDDEN, seed=6),
    )


KINDS = ("mlp", "attention")


def block_of(kind: str) -> Block:
    return mlp_block if kind == "mlp" else attention_block(HEAD_DIM, HEADS // KV_HEADS)


def test_attention_is_a_softmax_of_scaled_products_over_earlier_tokens() -> None:
    """Vaswani et al. 2017, arXiv:1706.03762, equation 1, in numbers; two heads share a key."""
    given, x = weights("attention"), drawn(TOKENS, HIDDEN)
    q, k, v = (x @ each for each in given[:3])
    joined = np.zeros((TOKENS, HEADS * HEAD_DIM))
    for head in range(HEADS):
        for token in range(TOKENS):
            mine = [head * HEAD_DIM + i for i in range(HEAD_DIM)]
            shared = [head // 2 * HEAD_DIM + i for i in range(HEAD_DIM)]
            scores = [
                sum(q[token, a] * k[at, b] for a, b in zip(mine, shared, strict=True))
                for at in range(token + 1)
            ]
            powers = [math.exp(score / math.sqrt(HEAD_DIM)) for score in scores]
            for a, b in zip(mine, shared, strict=True):
                values = sum(power * v[at, b] for at, power in enumerate(powers))
                joined[token, a] = values / sum(powers)
    found = block_of("attention")(x, given, drawn(TOKENS, HIDDEN, seed=9))
    assert found.output == pytest.approx(joined @ given[3], rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_finite_differences(kind: str) -> None:
    block, given, x = block_of(kind), weights(kind), drawn(TOKENS, HIDDEN)
    upstream, step = drawn(TOKENS, HIDDEN, seed=9), 1e-6
    done = block(x, given, upstream)
    for at in ((0, 0), (2, 3), (4, 5)):
        moved = x.copy()
        moved[at] += step
        slope = ((block(moved, given, upstream).output - done.output) * upstream).sum() / step
        assert done.input_gradient[at] == pytest.approx(slope, rel=1e-4, abs=1e-4)
    for number, weight in enumerate(given):
        changed = weight.copy()
        changed[1, 2] += step
        other = (*given[:number], changed, *given[number + 1 :])
        slope = ((block(x, other, upstream).output - done.output) * upstream).sum() / step
        assert done.weight_gradients[number][1, 2] == pytest.approx(slope, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tp", [1, 2, 4])
def test_column_then_row_is_the_whole_block(kind: str, tp: int) -> None:
    block, given = block_of(kind), weights(kind)
    x, upstream = drawn(TOKENS, HIDDEN), drawn(TOKENS, HIDDEN, seed=9)
    sharded = sharded_pass(block, x, column_row_slices(given, tp), upstream)
    assert max(largest_difference(block(x, given, upstream), sharded)) < 1e-10


def test_a_rank_alone_has_only_a_part_of_the_sum() -> None:
    given, x, upstream = weights("mlp"), drawn(TOKENS, HIDDEN), drawn(TOKENS, HIDDEN, seed=9)
    rank = mlp_block(x, column_row_slices(given, 2)[0], upstream)
    whole = mlp_block(x, given, upstream)
    assert np.abs(whole.output - rank.output).max() > 0.1
    assert np.abs(whole.input_gradient - rank.input_gradient).max() > 0.1


def test_attention_is_causal() -> None:
    given, x, upstream = weights("attention"), drawn(TOKENS, HIDDEN), drawn(TOKENS, HIDDEN, seed=9)
    changed = x.copy()
    changed[-1] += 1
    first = block_of("attention")(x, given, upstream).output
    second = block_of("attention")(changed, given, upstream).output
    assert np.array_equal(first[:-1], second[:-1])


def test_the_tanh_form_is_the_gaussian_one_to_a_thousandth() -> None:
    """Hendrycks and Gimpel 2016, arXiv:1606.08415: x times the normal distribution
    function at x."""
    x = np.linspace(-5, 5, 101)
    normal = np.array([(1 + math.erf(value / math.sqrt(2))) / 2 for value in x])
    assert gelu(x) == pytest.approx(x * normal, abs=1e-3)


def test_gelu_before_the_sum_is_another_function() -> None:
    x, given = drawn(TOKENS, HIDDEN), weights("mlp")
    whole = gelu(x @ given[0]) @ given[1]
    assert np.allclose(row_first_mlp(x, given, 1, sum_first=False), whole)
    assert np.allclose(row_first_mlp(x, given, 2, sum_first=True), whole)
    assert np.abs(row_first_mlp(x, given, 2, sum_first=False) - whole).max() > 0.1


def test_tp_that_does_not_divide_is_refused() -> None:
    with pytest.raises(InputError, match="a divisor of 16"):
        column_row_slices(weights("mlp"), 3)
    with pytest.raises(InputError, match="a divisor of 12"):  # keys and values, not queries
        column_row_slices(weights("attention"), 8)
