"""The verdict on threads that were held out before it was written."""

from __future__ import annotations

import hashlib

from figgen.catalog.slow_threads import slow_threads, unseen_score
from figgen.scenarios.verdict.causes import CAUSES
from figgen.scenarios.verdict.threads import judged_threads

FIRST_COLLECTED = 20
"""Threads of the order that were known when the verdict was written."""


def test_the_cause_is_among_the_first_three_reasons_of_threads_put_apart() -> None:
    judged = judged_threads(True)
    assert len(judged) == 10
    assert sum(one.found for one in judged) / len(judged) >= 0.7


def test_threads_are_put_apart_by_the_hash_of_their_addresses() -> None:
    apart = [one.address for one in slow_threads(apart=True)]
    first = slow_threads(apart=False)[:FIRST_COLLECTED]
    every = [*apart, *(one.address for one in first)]
    ordered = sorted(every, key=lambda one: hashlib.sha256(one.encode()).hexdigest())
    assert apart == ordered[:10]
    assert len(set(every)) == 30


def test_every_cause_of_a_thread_is_one_that_is_weighed() -> None:
    for apart in (False, True):
        for one in slow_threads(apart=apart):
            assert set(one.causes) <= CAUSES.keys(), one.name


def test_threads_that_came_later_are_others_and_were_scored_before_they_counted() -> None:
    first, later = (
        slow_threads(apart=False)[:FIRST_COLLECTED],
        slow_threads(apart=False)[FIRST_COLLECTED:],
    )
    known = {one.address for one in (*first, *slow_threads(apart=True))}
    found, threads = unseen_score()
    assert threads == len({one.address for one in later} - known) == 15
    assert found / threads >= 0.7
