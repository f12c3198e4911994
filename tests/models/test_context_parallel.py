"""Sharded attention compared with the whole, and its work with a count of every pair."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from figgen.errors import InputError
from figgen.models.algorithms.context_parallel import (
    SCHEMES,
    causal_attention,
    chunks_of_rank,
    pairs_by_step,
    ring_attention,
    ring_timeline,
    tokens_of_rank,
)

SMALL = list(itertools.product(SCHEMES, (1, 2, 3, 4), (1, 2)))


@pytest.mark.parametrize(("scheme", "cp", "size"), SMALL)
def test_every_token_has_one_rank(scheme: str, cp: int, size: int) -> None:
    length = 2 * cp * size
    held = np.concatenate([tokens_of_rank(scheme, cp, r, length) for r in range(cp)])
    assert sorted(held.tolist()) == list(range(length))


def test_zig_zag_chunks_are_megatrons() -> None:
    assert [chunks_of_rank("zig-zag", 4, r) for r in range(4)] == [(0, 7), (1, 6), (2, 5), (3, 4)]
    assert [chunks_of_rank("zig-zag", 2, r) for r in range(2)] == [(0, 3), (1, 2)]


@pytest.mark.parametrize(("scheme", "cp", "size"), SMALL)
def test_ring_attention_is_attention(scheme: str, cp: int, size: int) -> None:
    draw = np.random.default_rng(cp).standard_normal
    q, k, v = (draw((2 * cp * size, 3)) for _ in range(3))
    assert np.allclose(ring_attention(q, k, v, cp=cp, scheme=scheme), causal_attention(q, k, v))


def test_attention_is_its_definition() -> None:
    q, k, v = (np.random.default_rng(0).standard_normal((4, 2)) for _ in range(3))
    for i in range(4):
        powers = [np.exp(q[i] @ k[j] / np.sqrt(2)) for j in range(i + 1)]
        want = sum(p * v[j] for j, p in enumerate(powers)) / sum(powers)
        assert np.allclose(causal_attention(q, k, v)[i], want)


@pytest.mark.parametrize(("scheme", "cp", "size"), SMALL)
def test_pairs_are_all_pairs_counted_one_by_one(scheme: str, cp: int, size: int) -> None:
    length = 2 * cp * size
    pairs = pairs_by_step(scheme, cp, length)
    assert sum(map(sum, pairs)) == length * (length + 1) // 2
    held = [tokens_of_rank(scheme, cp, r, length) for r in range(cp)]
    for rank, step in itertools.product(range(cp), repeat=2):
        theirs = held[(rank - step) % cp]
        assert pairs[rank][step] == sum(i >= j for i in held[rank] for j in theirs)


@pytest.mark.parametrize("cp", [2, 3, 4, 8])
def test_zig_zag_balances_every_step_and_contiguous_none(cp: int) -> None:
    size = 16
    zig = pairs_by_step("zig-zag", cp, 2 * cp * size)
    assert {pair for row in zig for pair in row[1:]} == {2 * size * size}
    assert {row[0] for row in zig} == {2 * size * size + size}
    whole = [sum(row) for row in pairs_by_step("contiguous", cp, 2 * cp * size)]
    assert whole == sorted(whole)
    assert whole[-1] / whole[0] == pytest.approx(2 * cp - 1, rel=0.1)


def test_timeline_waits_for_blocks_and_for_itself() -> None:
    pairs = pairs_by_step("zig-zag", 4, 64)
    unit = pairs[0][1]
    for block in (0.0, unit / 2, unit, 3 * unit):
        steps = {(s.rank, s.step): s for s in ring_timeline(pairs, pair_s=1, block_s=block)}
        for (rank, step), here in steps.items():
            assert here.block == (rank - step) % 4
            assert here.end - here.start == pairs[rank][step]
            if step:
                before = steps[rank, step - 1]
                source = steps[(rank - 1) % 4, step - 1]
                assert source.block == here.block
                assert here.start >= max(before.end, source.start + block)
        last = max(s.end for s in steps.values())
        assert last == pytest.approx(pairs[0][0] + 3 * max(unit, block), abs=pairs[0][0] - unit)


def test_slow_ring_takes_as_long_as_its_messages() -> None:
    pairs = ((1, 0), (1, 1))
    steps = ring_timeline(pairs, pair_s=1, block_s=10)
    assert max(s.end for s in steps) == 11


def test_unfit_sequences_and_schemes_are_refused() -> None:
    with pytest.raises(InputError, match="a multiple of 2C = 6"):
        tokens_of_rank("zig-zag", 3, 0, 8)
    with pytest.raises(InputError, match="zig-zag"):
        tokens_of_rank("zigzag", 2, 0, 8)
