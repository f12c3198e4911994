"""The domains of the collectives' formulas, counted out with algorithms run step by step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from figgen.errors import InputError
from figgen.formulas import evaluate
from figgen.models.collectives import synchronous_time_s, trace
from figgen.models.collectives.rings import ring_all_reduce

LINK = {"message_bytes": 1e6, "latency_s": 1e-6, "bandwidth_bytes_per_s": 1e9}


def holds(name: str, **arguments: float) -> bool:
    try:
        evaluate(name, **arguments)
    except InputError:
        return False
    return True


def power_of_two(ranks: int) -> bool:
    return ranks > 0 and ranks & (ranks - 1) == 0


def several(ranks: int) -> bool:
    return ranks >= 2


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        ("halving_doubling_all_reduce_time", {}, power_of_two),
        ("recursive_doubling_all_reduce_time", {}, power_of_two),
        ("recursive_doubling_all_gather_time", {}, power_of_two),
        ("double_binary_tree_all_reduce_time", {}, several),
        ("chain_broadcast_time", {"segments": 4}, several),
        ("ring_all_reduce_time", {}, lambda ranks: ranks >= 1),
    ],
)
def test_a_formula_holds_for_exactly_the_ranks_of_its_algorithm(
    name: str, more: dict[str, float], expected: Callable[[int], bool]
) -> None:
    for ranks in (*range(140), 255, 256, 257, 1023, 1024, 1025):
        assert holds(name, ranks=ranks, **more, **LINK) == expected(ranks), ranks


@pytest.mark.parametrize(
    ("name", "collective", "algorithm"),
    [
        ("halving_doubling_all_reduce_time", "all-reduce", "recursive-halving-doubling"),
        ("recursive_doubling_all_reduce_time", "all-reduce", "recursive-doubling"),
        ("recursive_doubling_all_gather_time", "all-gather", "recursive-doubling"),
        ("ring_all_reduce_time", "all-reduce", "ring"),
        ("ring_all_gather_time", "all-gather", "ring"),
        ("ring_reduce_scatter_time", "reduce-scatter", "ring"),
    ],
)
def test_where_a_formula_holds_it_is_the_time_of_the_trace_and_elsewhere_there_is_none(
    name: str, collective: str, algorithm: str
) -> None:
    for ranks in range(1, 20):
        try:
            run = trace(collective, algorithm, ranks)
        except InputError:
            assert not holds(name, ranks=ranks, **LINK)
            continue
        time = synchronous_time_s(run, 1e6, 1e-6, 1e9)
        assert evaluate(name, ranks=ranks, **LINK).value == pytest.approx(time)


def test_the_switch_needs_two_ranks() -> None:
    held = [holds("switch_all_reduce_bytes_sent", ranks=n, message_bytes=1) for n in range(5)]
    assert held == [False, False, True, True, True]


@pytest.mark.parametrize("name", ["ring_chunk_sent", "ring_chunk_received"])
def test_chunks_of_a_ring_are_defined_for_the_steps_that_a_ring_has(name: str) -> None:
    """A ring of n ranks reduces in n − 1 steps, and two schedules are in use, with offsets 0 and
    −1."""
    for ranks in range(1, 9):
        steps = len([phase for phase in ring_all_reduce(ranks).phases if "scatter" in phase])
        assert steps == ranks - 1
        for rank in range(-1, ranks + 2):
            for step in range(-1, ranks + 2):
                for offset in (-2, -1, 0, 1):
                    inside = 0 <= rank < ranks and 0 <= step < steps and offset in (-1, 0)
                    given = {"rank": rank, "step": step, "ranks": ranks, "offset": offset}
                    assert holds(name, **given) == inside, given


def test_a_rank_owns_a_chunk_if_there_is_such_a_rank() -> None:
    for ranks in range(1, 9):
        for rank in range(-1, ranks + 2):
            for offset in (-2, -1, 0, 1):
                inside = 0 <= rank < ranks and offset in (-1, 0)
                held = holds("ring_chunk_owned", rank=rank, ranks=ranks, offset=offset)
                assert held == inside, (rank, ranks, offset)


def test_halving_has_no_more_steps_than_ranks_have_bits() -> None:
    held = [
        holds("halving_step_bytes", message_bytes=2**20, step=step) for step in (-1, 0, 63, 64, 65)
    ]
    assert held == [False, True, True, False, False]


def test_a_ring_over_nodes_has_a_rank_on_each_node_at_least() -> None:
    given = {"base_latency_s": 0, "intra_latency_s": 1e-6, "inter_latency_s": 1e-5}
    for ranks in range(1, 9):
        for nodes in range(10):
            held = holds("nccl_ring_latency", ranks=ranks, nodes=nodes, **given)
            assert held == (1 <= nodes <= ranks), (ranks, nodes)
