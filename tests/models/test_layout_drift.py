"""The drifting network: its gradients compared with differences, its rounding with the format's
own."""

from __future__ import annotations

import random
from itertools import islice

import numpy as np
import pytest

from figgen.errors import InputError
from figgen.models.machine.layout_drift import (
    INPUTS,
    RATE,
    WIDTH,
    DriftRun,
    added,
    drawn,
    gradients,
    predicted,
    round_to_bf16,
    summed,
    trained,
)
from figgen.models.shape.number_formats import float_format

DRAW = np.random.default_rng(3)


def small(*shape: int) -> np.ndarray:
    return DRAW.uniform(-1, 1, shape).astype(np.float32)


def test_gradients_are_the_slopes_of_the_loss() -> None:
    x, y, first, second = small(4, INPUTS), small(4), small(INPUTS, WIDTH), small(WIDTH)

    def losses(one: np.ndarray, two: np.ndarray) -> np.ndarray:
        exact = np.maximum(x.astype(float) @ one, 0) @ two
        return np.asarray((exact - y) ** 2 / 2)

    for_first, for_second = gradients(x, y, first, second)
    step = 1e-6
    for at in ((0, 0), (3, 5), (INPUTS - 1, WIDTH - 1)):
        moved = first.astype(float)
        moved[at] += step
        slope = (losses(moved, second) - losses(first.astype(float), second)) / step
        assert for_first[(slice(None), *at)] == pytest.approx(slope, abs=1e-4)
    hidden, _ = predicted(x, first, second)
    assert for_second == pytest.approx((predicted(x, first, second)[1] - y)[:, None] * hidden)


def test_rounding_is_that_of_the_format() -> None:
    numbers = (small(4096) * np.float32(10) ** DRAW.integers(-6, 6, 4096)).astype(np.float32)
    ties = np.array([1 + 2**-8, 1 + 3 * 2**-8, -(1 + 2**-8)], np.float32)
    every = np.concatenate([numbers, ties])
    rounded = every.copy()
    round_to_bf16(rounded)
    assert (rounded == float_format("BF16").rounded(every.astype(float))).all()


@pytest.mark.parametrize("seed", [0, 3, 2**30 - 1, 2**40])
def test_draws_are_those_of_the_generator_one_after_the_other(seed: int) -> None:
    draw = random.Random(seed).random
    singly = [[2 * draw() - 1 for _ in range(INPUTS)] for _ in range(64)]
    assert (drawn(seed, 64, INPUTS) == np.array(singly, np.float32)).all()


@pytest.mark.parametrize("ranks", [1, 2, 8, 64])
def test_every_layout_adds_the_same_terms(ranks: int) -> None:
    whole = DRAW.integers(-99, 99, (64, 3, 2)).astype(np.float32)  # sums of integers are exact
    assert (summed(whole, DriftRun(ranks=ranks)) == whole.sum(axis=0)).all()
    left = summed(whole, DriftRun(ranks=ranks, left_out=0)) if ranks > 1 else None
    assert left is None or (left == whole[64 // ranks :].sum(axis=0)).all()


@pytest.mark.parametrize("shape", [(64, 144), (8, 64, 16), (8, 8, 144), (16, 64)])
def test_sums_are_made_one_after_the_other(shape: tuple[int, ...]) -> None:
    for parts in (small(*shape), np.moveaxis(small(shape[1], shape[0], *shape[2:]), 1, 0)):
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        assert (added(parts, narrow=False) == total).all()


def test_a_sum_in_bf16_loses_what_is_small() -> None:
    terms = np.array([[256.0], *([1.0],) * 63], np.float32)
    assert summed(terms, DriftRun(narrow=True)) == 256
    assert summed(terms, DriftRun()) == 319


def test_layouts_differ_by_roundings_and_a_forgotten_rank_does_not() -> None:
    def after(run: DriftRun, steps: int) -> np.ndarray:
        return list(islice(trained(run, steps), steps))[-1].astype(float)

    def apart(run: DriftRun, steps: int) -> float:
        one = after(DriftRun(), steps)
        return float(np.linalg.norm(after(run, steps) - one) / np.linalg.norm(one))

    assert (after(DriftRun(), 3) == after(DriftRun(), 3)).all()
    # A sum of 64 terms is off by less than 64 roundings of 2⁻²⁴, and the step takes RATE of it.
    assert 0 < apart(DriftRun(ranks=8), 1) < 64 * 2**-24 * RATE
    assert apart(DriftRun(ranks=8, left_out=7), 1) > 1e4 * apart(DriftRun(ranks=8), 1)
    assert apart(DriftRun(ranks=8), 200) > apart(DriftRun(ranks=8), 1)
    assert apart(DriftRun(ranks=8), 200) < 1e-3 * apart(DriftRun(seed=6), 200)


def test_ranks_that_do_not_divide_the_batch_are_refused() -> None:
    with pytest.raises(InputError, match="divisor"):
        DriftRun(ranks=7)
