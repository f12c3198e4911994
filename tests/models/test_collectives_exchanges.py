"""Recursive exchanges, all-to-alls and two-level all-reduces."""

from __future__ import annotations

from collections import Counter
from math import ceil, log2

import pytest

from figgen.errors import InputError
from figgen.models.collectives import (
    bytes_per_link,
    bytes_sent_per_rank,
    largest_message_per_step,
    states,
    trace,
    verify,
)
from figgen.models.collectives.exchanges import (
    bruck_all_to_all,
    chunk_of_pair,
    pair_of_chunk,
    pairwise_all_to_all,
    recursive_doubling_all_reduce,
    recursive_halving_doubling_all_reduce,
)
from figgen.models.collectives.hierarchical import leader_all_reduce, two_level_all_reduce
from figgen.models.collectives.rings import ring_all_reduce

POWERS = (1, 2, 4, 8, 16)


def test_halving_among_8_sends_4_2_and_1_eighths_and_doubling_the_reverse() -> None:
    sizes = largest_message_per_step(recursive_halving_doubling_all_reduce(8), 8)
    assert sizes == (4, 2, 1, 1, 2, 4)


@pytest.mark.parametrize("n", POWERS)
def test_the_partner_in_step_i_differs_in_one_bit_from_the_highest_down(n: int) -> None:
    exponent = int(log2(n))
    steps = recursive_halving_doubling_all_reduce(n).steps
    distances = [1 << i for i in reversed(range(exponent))]
    assert len(steps) == 2 * exponent
    for distance, sends in zip(distances + distances[::-1], steps, strict=True):
        assert [(s.source, s.target) for s in sends] == [(r, r ^ distance) for r in range(n)]


@pytest.mark.parametrize("n", POWERS)
def test_halving_doubling_sends_the_bytes_of_a_ring(n: int) -> None:
    ring = bytes_sent_per_rank(ring_all_reduce(n), n)
    assert bytes_sent_per_rank(recursive_halving_doubling_all_reduce(n), n) == ring


@pytest.mark.parametrize("n", POWERS)
def test_an_all_reduce_may_start_its_halving_with_the_neighbour_as_mpich_does(n: int) -> None:
    """MPICH's allreduce_intra_reduce_scatter_allgather.c runs `mask` from 1 up, and back down."""
    run = recursive_halving_doubling_all_reduce(n, nearest_first=True)
    verify(run)
    masks = [1 << i for i in range(int(log2(n)))]
    for mask, sends in zip(masks + masks[::-1], run.steps, strict=True):
        assert [(s.source, s.target) for s in sends] == [(r, r ^ mask) for r in range(n)]
    far = recursive_halving_doubling_all_reduce(n)
    assert largest_message_per_step(run, n) == largest_message_per_step(far, n)
    assert bytes_sent_per_rank(run, n) == bytes_sent_per_rank(far, n)
    halfway = list(states(run))[len(masks)]  # a reduce-scatter: rank r has all of chunk r
    assert all(halfway[rank][rank] == frozenset(range(n)) for rank in range(n))


@pytest.mark.parametrize("n", POWERS)
def test_recursive_doubling_sends_the_whole_vector_log2_n_times(n: int) -> None:
    assert bytes_sent_per_rank(recursive_doubling_all_reduce(n), 1) == (log2(n),) * n


@pytest.mark.parametrize("n", range(1, 17))
def test_pairwise_all_to_all_sends_every_block_once(n: int) -> None:
    made = verify(pairwise_all_to_all(n))
    carried = Counter(chunk for sends in made.steps for send in sends for chunk in send.chunks)
    assert carried == {chunk_of_pair(a, b, n): 1 for a in range(n) for b in range(n) if a != b}
    assert len(made.steps) == n - 1
    assert bytes_sent_per_rank(made, n) == (n - 1,) * n


@pytest.mark.parametrize("n", range(1, 17))
def test_bruck_moves_a_block_once_per_bit_of_its_distance(n: int) -> None:
    made = verify(bruck_all_to_all(n))
    carried = Counter(chunk for sends in made.steps for send in sends for chunk in send.chunks)
    for chunk in range(n * n):
        source, target = pair_of_chunk(chunk, n)
        assert carried[chunk] == ((target - source) % n).bit_count()
    assert len(made.steps) == ceil(log2(n))


@pytest.mark.parametrize("n", POWERS[1:])
def test_bruck_sends_half_the_buffer_per_step_for_powers_of_two(n: int) -> None:
    assert set(largest_message_per_step(bruck_all_to_all(n), 2)) == {1}


@pytest.mark.parametrize("n", range(2, 17))
def test_bruck_never_sends_more_than_half_the_buffer_per_step(n: int) -> None:
    assert max(largest_message_per_step(bruck_all_to_all(n), 2)) <= 1


def phase_time_s(made, message_bytes: float, links: dict[str, tuple[float, float]]) -> float:
    """Return the time if phases whose name contains a word run on the link of that word."""
    total = 0.0
    for phase, size in zip(made.phases, largest_message_per_step(made, message_bytes), strict=True):
        (latency_s, bandwidth) = next(link for word, link in links.items() if word in phase)
        total += latency_s + size / bandwidth
    return total


@pytest.mark.parametrize(
    ("nodes", "size", "alphas", "published_s"),
    [(8, 1e9, (1e-6, 5e-6), 0.00834788889), (4, 4 * 2**30, (0, 0), 0.032808778)],
)
def test_a_two_level_all_reduce_takes_the_published_time(
    nodes: int, size: float, alphas: tuple[float, float], published_s: float
) -> None:
    made = two_level_all_reduce(8 * nodes, ranks_per_node=8)
    links = {"within": (alphas[0], 450e9), "between": (alphas[1], 50e9)}
    assert phase_time_s(made, size, links) == pytest.approx(published_s)


def test_a_pipelined_leader_all_reduce_approaches_the_published_bandwidth_term() -> None:
    made = leader_all_reduce(64, ranks_per_node=8, segments=32)
    time_s = phase_time_s(made, 1e9, {"within": (0, 450e9), "between": (0, 50e9)})
    published_s = 2 * 1e9 / 450e9 + 2 * 7 / 8 * 1e9 / 50e9
    assert published_s < time_s < published_s * 1.005


def bytes_out_of_nodes(made, width: int) -> list[float]:
    links = bytes_per_link(made, 1)
    return [
        sum(size for (a, b), size in links.items() if a // width == node != b // width)
        for node in range(made.ranks // width)
    ]


def test_a_flat_ring_over_8_nodes_sends_the_published_bytes_out_of_each() -> None:
    assert bytes_out_of_nodes(ring_all_reduce(64), 8) == [1.96875] * 8


def test_both_hierarchies_send_the_lower_bound_of_8_nodes_out_of_each() -> None:
    bound = 2 * 7 / 8
    assert bytes_out_of_nodes(two_level_all_reduce(64), 8) == [bound] * 8
    assert bytes_out_of_nodes(leader_all_reduce(64), 8) == [bound] * 8


def test_each_rank_of_a_two_level_all_reduce_carries_its_share_between_nodes() -> None:
    between = bytes_per_link(two_level_all_reduce(64), 1)
    out = Counter[int]()
    for (source, target), size in between.items():
        out[source] += size if source // 8 != target // 8 else 0
    assert set(out.values()) == {2 * 7 / 8 / 8}


@pytest.mark.parametrize("width", [1, 2, 3, 4, 6, 12])
def test_a_two_level_all_reduce_sends_what_a_flat_ring_sends(width: int) -> None:
    flat = bytes_sent_per_rank(ring_all_reduce(12), 12)
    assert bytes_sent_per_rank(two_level_all_reduce(12, ranks_per_node=width), 12) == flat


def test_ranks_that_do_not_fill_whole_nodes_are_refused() -> None:
    with pytest.raises(InputError, match=r"multiple of ranks_per_node = 8, got 12.*8 or 16"):
        trace("all-reduce", "hierarchical", 12)
    with pytest.raises(InputError, match=r"got 4 \(did you mean 8\?\)"):
        trace("all-reduce", "hierarchical-leader", 4)
