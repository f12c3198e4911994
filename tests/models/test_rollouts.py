"""Generating a batch of answers, compared with closed forms, a token-by-token simulation, and its
mean."""

from __future__ import annotations

import random
from math import fsum

import pytest

from figgen.errors import InputError
from figgen.models.algorithms.rollouts import Decoding, answer_lengths, rollout

STEP = Decoding(
    held_bytes=16e9, cache_bytes_per_token=131_072, bandwidth_bytes_per_s=3e12, latency_s=1e-4
)


def token_by_token(lengths: list[int], prompt: int, slots: int) -> float:
    """Follow every token of every answer; the longest waiting answer takes a free slot."""
    waiting = sorted(max(1, each - prompt) for each in lengths)
    writing: list[list[int]] = []
    time_s = 0.0
    while writing or waiting:
        while waiting and len(writing) < slots:
            writing.append([waiting.pop(), 0])
        read = STEP.held_bytes
        read += STEP.cache_bytes_per_token * sum(prompt + written for _, written in writing)
        time_s += read / STEP.bandwidth_bytes_per_s + STEP.latency_s
        for one in writing:
            one[1] += 1
        writing = [one for one in writing if one[1] < one[0]]
    return time_s


def test_equal_answers_take_their_closed_form() -> None:
    """s steps read the weights s times, and caches that grow by one token each."""
    count, length, prompt = 32, 1000, 200
    done = rollout(STEP, [length] * count, prompt=prompt, slots=count)
    steps = length - prompt
    assert done.steps == steps
    assert done.weights_s == pytest.approx(steps * 16e9 / 3e12)
    tokens = count * (steps * prompt + steps * (steps - 1) / 2)
    assert done.caches_s == pytest.approx(tokens * 131_072 / 3e12)
    assert done.latency_s == pytest.approx(steps * 1e-4)
    assert done.alive == ((0.0, count), (pytest.approx(done.time_s), 0))


@pytest.mark.parametrize("slots", [1, 3, 7, 40])
def test_any_answers_take_what_following_every_token_takes(slots: int) -> None:
    draw = random.Random(slots)
    for _ in range(8):
        lengths = [draw.randint(1, 300) for _ in range(draw.randint(1, 20))]
        prompt = draw.randint(0, 40)
        done = rollout(STEP, lengths, prompt=prompt, slots=slots)
        assert done.time_s == pytest.approx(token_by_token(lengths, prompt, slots), rel=1e-9)
        assert done.alive[-1][0] == pytest.approx(done.time_s)
        assert max(count for _, count in done.alive) <= slots


def test_more_copies_do_not_write_the_longest_answer_faster() -> None:
    lengths = answer_lengths(1000, 4096, 64)
    whole = rollout(STEP, lengths, prompt=0, slots=64)
    half = rollout(STEP, lengths[1::2], prompt=0, slots=32)
    assert half.weights_s == pytest.approx(whole.weights_s, rel=0.02)
    assert half.caches_s < 0.55 * whole.caches_s


@pytest.mark.parametrize(
    ("mean", "longest", "count"), [(1000, 4096, 2000), (5700, 8192, 512), (10, 10, 3)]
)
def test_lengths_have_the_mean_and_the_limit_that_were_asked_for(
    mean: int, longest: int, count: int
) -> None:
    lengths = answer_lengths(mean, longest, count)
    assert fsum(lengths) / count == pytest.approx(mean, rel=0.01)
    assert max(lengths) <= longest
    assert list(lengths) == sorted(lengths)


def test_an_exponential_that_is_hardly_cut_has_its_mean_and_median() -> None:
    lengths = answer_lengths(100, 100_000, 10_001)
    assert lengths[5000] == pytest.approx(100 * 0.6931, rel=0.02)


def test_what_cannot_be_is_refused() -> None:
    for mean, count in ((0.5, 1), (101, 1), (50, 0)):
        with pytest.raises(InputError):
            answer_lengths(mean, 100, count)
    for lengths, slots in (([], 1), ([5], 0)):
        with pytest.raises(InputError, match="slots and answers"):
            rollout(STEP, lengths, prompt=0, slots=slots)
