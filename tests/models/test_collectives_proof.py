"""`verify` accepts traces that add up.

Here integers decide what adds up: an executor that knows nothing of contributor sets moves and adds
them, and the results are compared with sums.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from inspect import signature
from itertools import product

import numpy as np
import pytest

from figgen.errors import InputError
from figgen.models.collectives import TRACES, CollectiveTrace, algorithms, states, trace
from figgen.models.collectives.traces import assemble
from figgen.models.collectives.traffic import chunks_received_per_rank, chunks_sent_per_rank

POWERS_OF_TWO_ONLY = {
    ("all-reduce", "recursive-doubling"),
    ("all-reduce", "recursive-halving-doubling"),
    ("reduce-scatter", "recursive-halving"),
    ("all-gather", "recursive-doubling"),
}


def option_sets(ranks: int, accepted: Iterable[str]) -> list[dict[str, int | str]]:
    """Return every schedule and node width, the first and last root, and some numbers
    of segments."""
    values: dict[str, list[int | str]] = {
        "schedule": ["nccl", "textbook"],
        "root": sorted({0, ranks // 2, ranks - 1}),
        "segments": [1, 3],
        "nearest_first": [False, True],
        "ranks_per_node": [g for g in range(1, ranks + 1) if ranks % g == 0],
    }
    names = [name for name in accepted if name != "ranks"]
    return [
        dict(zip(names, combination, strict=True))
        for combination in product(*(values[name] for name in names))
    ]


@cache
def small_traces(key: tuple[str, str]) -> list[CollectiveTrace]:
    """Return the traces of an algorithm for every number of ranks up to 16 that it must support."""
    allowed = (1, 2, 4, 8, 16) if key in POWERS_OF_TWO_ONLY else range(1, 17)
    return [
        trace(*key, ranks, **options)
        for ranks in allowed
        for options in option_sets(ranks, signature(TRACES[key]).parameters)
    ]


every_algorithm = pytest.mark.parametrize("key", list(TRACES), ids="-".join)


def run_on_numbers(trace: CollectiveTrace, held: np.ndarray) -> np.ndarray:
    """Return buffers [rank, chunk] after all messages are applied to `held`."""
    held = held.copy()
    for sends in trace.steps:
        leaving = [held[send.source, list(send.chunks)] for send in sends]
        for send, values in zip(sends, leaving, strict=True):
            into = (send.target, list(send.chunks))
            held[into] = held[into] + values if send.reduces else values
    return held


def check_on_numbers(trace: CollectiveTrace) -> None:
    n, chunks = trace.ranks, np.arange(trace.chunk_count)
    values = np.random.default_rng(n).integers(1, 10**9, size=(n, len(chunks)))
    garbage = np.full_like(values, -1)
    owners, root = np.array(trace.owners, dtype=int), trace.root

    match trace.collective:
        case "all-reduce":
            assert (run_on_numbers(trace, values) == values.sum(axis=0)).all()
        case "reduce":
            assert (run_on_numbers(trace, values)[root] == values.sum(axis=0)).all()
        case "reduce-scatter":
            assert (run_on_numbers(trace, values)[owners, chunks] == values.sum(axis=0)).all()
        case "all-gather" | "gather":
            garbage[owners, chunks] = values[owners, chunks]
            after = run_on_numbers(trace, garbage)
            after = after[root] if trace.collective == "gather" else after
            assert (after == values[owners, chunks]).all()
        case "broadcast":
            garbage[root] = values[root]
            assert (run_on_numbers(trace, garbage) == values[root]).all()
        case "scatter":
            garbage[root] = values[root]
            assert (run_on_numbers(trace, garbage)[owners, chunks] == values[root]).all()
        case "all-to-all":
            sender, addressee = np.divmod(chunks, n)
            garbage[sender, chunks] = values[sender, chunks]
            after = run_on_numbers(trace, garbage)
            assert (after[addressee, chunks] == values[sender, chunks]).all()
        case other:
            pytest.fail(f"no promise written down for {other}")


@every_algorithm
def test_running_the_messages_on_numbers_gives_what_the_collective_promises(
    key: tuple[str, str],
) -> None:
    for made in small_traces(key):
        check_on_numbers(made)


@every_algorithm
def test_what_is_sent_is_received(key: tuple[str, str]) -> None:
    for made in small_traces(key):
        assert sum(chunks_sent_per_rank(made)) == sum(chunks_received_per_rank(made))


@every_algorithm
def test_contributions_never_disappear(key: tuple[str, str]) -> None:
    for made in (made for made in small_traces(key) if made.ranks <= 9):
        before, *after = states(made)
        for state in after:
            for had, has in zip(before, state, strict=True):
                assert all(old <= new for old, new in zip(had, has, strict=True))
            before = state


@every_algorithm
def test_a_trace_carries_the_names_it_was_asked_by(key: tuple[str, str]) -> None:
    for made in small_traces(key):
        assert (made.collective, made.algorithm) in TRACES
        assert len(made.phases) == len(made.steps)
        assert (len(made.steps) == 0) == (made.ranks == 1)


@pytest.mark.parametrize("key", sorted(POWERS_OF_TWO_ONLY))
def test_other_than_a_power_of_two_is_refused_with_the_nearest(key: tuple[str, str]) -> None:
    for ranks in (3, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15):
        below = 1 << ranks.bit_length() - 1
        with pytest.raises(InputError, match=f"mean {below} or {2 * below}"):
            trace(*key, ranks)


def test_the_registry_says_what_it_knows() -> None:
    with pytest.raises(InputError, match="did you mean all-reduce"):
        trace("allreduce", "ring", 4)
    with pytest.raises(InputError, match=r"unknown all-reduce algorithm 'rign'.*did you mean ring"):
        trace("all-reduce", "rign", 4)
    with pytest.raises(InputError, match=r"unknown option 'shedule'.*did you mean schedule"):
        trace("all-reduce", "ring", 4, shedule="nccl")
    assert "ring" in algorithms("all-gather")


@pytest.mark.parametrize(
    ("algorithm", "sends"), [("ring", 2 * 255 * 256), ("double-binary-tree", 2 * 2 * 255)]
)
def test_an_all_reduce_of_256_is_built_and_proved(algorithm: str, sends: int) -> None:
    """At this size, a proof that does much work per message would be noticeably slow."""
    assert sum(len(step) for step in trace("all-reduce", algorithm, 256).steps) == sends


USUAL = {
    "root": {0}, "segments": {1, 4}, "ranks_per_node": {8}, "nearest_first": {False},
    "schedule": {"nccl"},
}  # fmt: skip


def test_what_nobody_says_is_rank_zero_and_a_node_of_eight() -> None:
    for (collective, algorithm), build in TRACES.items():
        for name, option in signature(build).parameters.items():
            if name != "ranks" and option.default is not option.empty:
                assert option.default in USUAL[name], (collective, algorithm, name)
    assert signature(assemble).parameters["root"].default == 0
    segments = {
        key: signature(build).parameters["segments"].default
        for key, build in TRACES.items()
        if "segments" in signature(build).parameters
    }
    assert {key for key, count in segments.items() if count == 4} == {
        ("broadcast", "chain"), ("reduce", "chain"),
    }  # fmt: skip
