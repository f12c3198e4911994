"""Tensor parallelism in NumPy: a block computed on slices of its weights, and as a whole.

Every rank runs the ordinary block on its own slices. What Megatron's two operators do is then
plain: g sums the outputs in forward, f sums the gradients of the input in backward, and each is
the identity in the other direction.
Source: Shoeybi et al. 2019 (Megatron-LM), arXiv:1909.08053, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from figgen.errors import InputError

Matrix: TypeAlias = NDArray[np.float64]
Weights: TypeAlias = tuple[Matrix, ...]


@dataclass(frozen=True, slots=True)
class BlockPass:
    """Forward and backward of one block: output, gradient of the input, of every weight."""

    output: Matrix
    input_gradient: Matrix
    weight_gradients: Weights


Block: TypeAlias = Callable[[Matrix, Weights, Matrix], BlockPass]


def gelu(x: Matrix) -> Matrix:
    """Return GELU in its tanh form."""
    return np.asarray(0.5 * x * (1 + np.tanh(_INNER * (x + 0.044715 * x**3))))


def gelu_slope(x: Matrix) -> Matrix:
    """Return the derivative of `gelu`."""
    t = np.tanh(_INNER * (x + 0.044715 * x**3))
    inner = _INNER * (1 + 3 * 0.044715 * x**2)
    return np.asarray(0.5 * (1 + t) + 0.5 * x * (1 - t**2) * inner)


_INNER = float(np.sqrt(2 / np.pi))


def mlp_block(x: Matrix, weights: Weights, upstream: Matrix) -> BlockPass:
    """Run GELU(x·A)·B with `weights` (A, B); `upstream` is the gradient of the output."""
    up, down = weights
    before = x @ up
    hidden = gelu(before)
    hidden_gradient = (upstream @ down.T) * gelu_slope(before)
    return BlockPass(
        output=hidden @ down,
        input_gradient=hidden_gradient @ up.T,
        weight_gradients=(x.T @ hidden_gradient, hidden.T @ upstream),
    )


def attention_block(head_dim: int, group: int) -> Block:
    """Run causal attention whose `group` consecutive query heads share one key and value head.

    Weights are (Q, K, V, O) in (in, out) layout; the widths determine the number of heads.
    """

    def run(x: Matrix, weights: Weights, upstream: Matrix) -> BlockPass:
        query, key, value, out = weights
        q, k, v = x @ query, x @ key, x @ value
        joined = np.zeros_like(q)
        joined_gradient = upstream @ out.T
        dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
        for head in range(query.shape[1] // head_dim):
            mine = slice(head * head_dim, (head + 1) * head_dim)
            shared = slice(head // group * head_dim, (head // group + 1) * head_dim)
            share, raw = _attend(q[:, mine], k[:, shared])
            joined[:, mine] = share @ v[:, shared]
            spread = joined_gradient[:, mine]
            score = share * (spread @ v[:, shared].T)
            score -= share * score.sum(axis=1, keepdims=True)
            dq[:, mine] = score @ k[:, shared] * raw
            dk[:, shared] += score.T @ q[:, mine] * raw
            dv[:, shared] += share.T @ spread
        return BlockPass(
            output=joined @ out,
            input_gradient=dq @ query.T + dk @ key.T + dv @ value.T,
            weight_gradients=(x.T @ dq, x.T @ dk, x.T @ dv, joined.T @ upstream),
        )

    return run


def _attend(q: Matrix, k: Matrix) -> tuple[Matrix, float]:
    """Return the causal softmax of q·kᵀ/√d and the factor 1/√d."""
    scale = float(1 / np.sqrt(q.shape[1]))
    scores = q @ k.T * scale
    scores[np.triu_indices(len(q), 1)] = -np.inf
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True), scale


def column_row_slices(weights: Weights, tp: int) -> tuple[Weights, ...]:
    """Return the slices of each rank: all weights but the last by columns, the last by rows.

    Raises InputError if `tp` does not divide a width.
    """
    for width in (*(w.shape[1] for w in weights[:-1]), weights[-1].shape[0]):
        if tp < 1 or width % tp:
            raise InputError("tp", expected=f"a divisor of {width}", got=tp)
    columns = [np.split(w, tp, axis=1) for w in weights[:-1]]
    rows = np.split(weights[-1], tp, axis=0)
    return tuple((*(parts[rank] for parts in columns), rows[rank]) for rank in range(tp))


def sharded_pass(block: Block, x: Matrix, slices: Sequence[Weights], upstream: Matrix) -> BlockPass:
    """Run the block on each rank's slices, with g (sums outputs) and f (sums input gradients)."""
    ranks = [block(x, weights, upstream) for weights in slices]
    last = len(slices[0]) - 1
    return BlockPass(
        output=np.sum([rank.output for rank in ranks], axis=0),
        input_gradient=np.sum([rank.input_gradient for rank in ranks], axis=0),
        weight_gradients=tuple(
            np.concatenate(
                [rank.weight_gradients[at] for rank in ranks], axis=0 if at == last else 1
            )
            for at in range(last + 1)
        ),
    )


def row_first_mlp(x: Matrix, weights: Weights, tp: int, *, sum_first: bool) -> Matrix:
    """Compute the MLP with A split by rows, correct only if parts are summed before GELU."""
    up, down = weights
    inputs, rows = np.split(x, tp, axis=1), np.split(up, tp, axis=0)
    parts = [part @ row for part, row in zip(inputs, rows, strict=True)]
    if sum_first:
        return np.asarray(gelu(np.sum(parts, axis=0)) @ down)
    return np.asarray(np.sum([gelu(part) for part in parts], axis=0) @ down)


def largest_difference(whole: BlockPass, sharded: BlockPass) -> tuple[float, float, float]:
    """Return the largest absolute difference of outputs, input gradients and weight gradients."""
    pairs = zip(whole.weight_gradients, sharded.weight_gradients, strict=True)
    return (
        float(np.abs(whole.output - sharded.output).max()),
        float(np.abs(whole.input_gradient - sharded.input_gradient).max()),
        max(float(np.abs(a - b).max()) for a, b in pairs),
    )
