"""Attention over a sequence that is split over ranks: placement, timing and results.

A sequence is cut into 2C chunks for C ranks, of which each rank holds two, or (striped) dealt
token by token. Keys and values travel round a ring; a rank attends to each block as it passes
and merges the partial results by their maxima and sums.
Sources: Liu et al. 2023 (ring attention), arXiv:2310.01889; Megatron-LM's zig-zag chunks;
Brandon et al. 2023 (striped attention), arXiv:2311.09431.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from figgen.errors import InputError, unknown

SCHEMES = ("contiguous", "zig-zag", "striped")

Matrix = NDArray[np.float64]
Tokens = NDArray[np.int64]


def chunks_of_rank(scheme: str, cp: int, rank: int) -> tuple[int, int]:
    """Return the two of 2C chunks that a rank holds, first token first; `striped` has no chunks."""
    if scheme == "contiguous":
        return 2 * rank, 2 * rank + 1
    if scheme == "zig-zag":
        return rank, 2 * cp - 1 - rank
    raise unknown("scheme with chunks", scheme, SCHEMES[:2])


def check_cut(cp: int, sequence: int) -> None:
    """Raise InputError for a sequence that 2C does not divide."""
    if cp < 1 or sequence % (2 * cp):
        raise InputError("sequence", expected=f"a multiple of 2C = {2 * cp}", got=sequence)


def tokens_of_rank(scheme: str, cp: int, rank: int, sequence: int) -> Tokens:
    """Return the positions of the tokens that a rank holds, in order.

    Raises InputError for a sequence that 2C does not divide, and for an unknown scheme.
    """
    check_cut(cp, sequence)
    if scheme == "striped":
        return np.arange(rank, sequence, cp)
    size = sequence // (2 * cp)
    parts = [np.arange(at * size, (at + 1) * size) for at in chunks_of_rank(scheme, cp, rank)]
    return np.concatenate(parts)


def causal_pairs(scheme: str, cp: int, sequence: int, mine: int, theirs: int) -> int:
    """Count pairs of one rank's queries with another rank's keys that are not later."""
    if scheme == "striped":
        count = sequence // cp
        return count * (count + 1) // 2 if theirs <= mine else count * (count - 1) // 2
    size = sequence // (2 * cp)
    pairs = 0
    for queries in chunks_of_rank(scheme, cp, mine):
        for keys in chunks_of_rank(scheme, cp, theirs):
            if keys < queries:
                pairs += size * size
            elif keys == queries:
                pairs += size * (size + 1) // 2
    return pairs


def pairs_by_step(scheme: str, cp: int, sequence: int) -> tuple[tuple[int, ...], ...]:
    """Count pairs by rank and step; at step t, rank r has the keys of rank r − t.

    Raises InputError as `tokens_of_rank` does.
    """
    check_cut(cp, sequence)
    return tuple(
        tuple(causal_pairs(scheme, cp, sequence, rank, (rank - step) % cp) for step in range(cp))
        for rank in range(cp)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RingStep:
    """A rank's attention to one block: the rank that owns its keys and values, and its times."""

    rank: int
    step: int
    block: int
    start: float
    end: float


def ring_timeline(
    pairs: tuple[tuple[int, ...], ...], *, pair_s: float, block_s: float
) -> tuple[RingStep, ...]:
    """Return when every rank works; with two buffers it sends a block while computing with it.

    A rank sends its block as soon as it has it and its neighbor has begun the block before;
    it begins a step when the block is there and its own work is done.
    """
    cp = len(pairs)
    start: list[list[float]] = [[0.0] * cp for _ in range(cp)]
    end: list[list[float]] = [[0.0] * cp for _ in range(cp)]
    for step in range(cp):
        for rank in range(cp):
            if step:
                neighbour = (rank - 1) % cp
                sent = max(start[rank][step - 1], start[neighbour][step - 1])
                start[rank][step] = max(end[rank][step - 1], sent + block_s)
            end[rank][step] = start[rank][step] + pairs[rank][step] * pair_s
    return tuple(
        RingStep(
            rank=rank,
            step=step,
            block=(rank - step) % cp,
            start=start[rank][step],
            end=end[rank][step],
        )
        for rank in range(cp)
        for step in range(cp)
    )


def causal_attention(q: Matrix, k: Matrix, v: Matrix) -> Matrix:
    """softmax(q·kᵀ/√d)·v of one head over the whole sequence."""
    positions = np.arange(len(q))
    scores = np.where(positions[:, None] >= positions, q @ k.T / np.sqrt(q.shape[1]), -np.inf)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers @ v / powers.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class RunningSoftmax:
    """The state of softmax between blocks of keys, with one row per query.

    `highest` is the largest score so far, `total` the sum of e^(score − highest), and `output` the
    sum of values with these weights; `output` over `total` is attention to the keys so far.
    """

    highest: Matrix
    total: Matrix
    output: Matrix

    def after(self, scores: Matrix, values: Matrix) -> RunningSoftmax:
        """Scale the sums to the new largest score, then add a block (queries × keys)."""
        highest = np.maximum(self.highest, scores.max(axis=1, keepdims=True))
        fade, powers = np.exp(self.highest - highest), np.exp(scores - highest)
        return RunningSoftmax(
            highest,
            self.total * fade + powers.sum(axis=1, keepdims=True),
            self.output * fade + powers @ values,
        )


def no_keys_yet(queries: int, width: int) -> RunningSoftmax:
    """Return the state before the first block, in which every query must see at least one key."""
    zeros = np.zeros((queries, width))
    return RunningSoftmax(np.full((queries, 1), -np.inf), zeros[:, :1], zeros)


def ring_attention(q: Matrix, k: Matrix, v: Matrix, *, cp: int, scheme: str) -> Matrix:
    """Compute `causal_attention` block by block on `cp` ranks with running maxima and sums."""
    length, width = v.shape
    held = [tokens_of_rank(scheme, cp, rank, length) for rank in range(cp)]
    result = np.empty((length, width))
    for rank, mine in enumerate(held):
        state = no_keys_yet(len(mine), width)
        for step in range(cp):
            # The rank's own block comes first, so that no row is still without any key.
            theirs = held[(rank - step) % cp]
            scores = q[mine] @ k[theirs].T / np.sqrt(q.shape[1])
            scores = np.where(mine[:, None] >= theirs, scores, -np.inf)
            state = state.after(scores, v[theirs])
        result[mine] = state.output / state.total
    return result
