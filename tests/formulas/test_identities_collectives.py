"""Formulas of collectives that must agree with each other, term by term or in a limit."""

import contextlib
import itertools
import math

import pytest

from figgen.errors import InputError
from figgen.formulas import FORMULAS, evaluate
from figgen.formulas.alpha_beta import (
    algorithm_bandwidth,
    all_gather_bus_bandwidth,
    all_reduce_bus_bandwidth,
    collective_time,
    inverse_bandwidth,
    point_to_point_crossover_bytes,
    point_to_point_time,
    reducing_collective_time,
    ring_all_reduce_crossover_bytes,
)
from figgen.formulas.collectives import (
    all_reduce_bytes_sent,
    binomial_broadcast_time,
    binomial_scatter_time,
    chain_broadcast_time,
    halving_doubling_all_reduce_time,
    halving_step_bytes,
    recursive_doubling_all_gather_time,
    ring_all_gather_time,
    ring_all_reduce_time,
    ring_chunk_owned,
    ring_chunk_received,
    ring_chunk_sent,
    ring_reduce_scatter_time,
    scatter_all_gather_broadcast_time,
    tree_all_reduce_time,
)
from figgen.formulas.hierarchical_collectives import (
    flat_ring_bytes_per_nic,
    leader_all_reduce_time,
    nccl_ring_latency,
    two_level_all_reduce_time,
)
from tests.formulas.points import FIRST

LINK = (1e-6, 450e9)
SLOW = (5e-6, 50e9)
RANKS = range(1, 65)
POWERS = [2**power for power in range(11)]


@pytest.mark.parametrize("message_bytes", [0, 1e3, 1e6, 1e9])
def test_ring_all_reduce_is_reduce_scatter_then_all_gather(message_bytes: float) -> None:
    for ranks in RANKS:
        halves = ring_reduce_scatter_time(ranks, message_bytes, *LINK)
        halves += ring_all_gather_time(ranks, message_bytes, *LINK)
        assert ring_all_reduce_time(ranks, message_bytes, *LINK) == pytest.approx(halves)


def test_ring_all_reduce_is_the_general_form_without_reduction() -> None:
    for ranks in RANKS:
        steps, sent = 2 * (ranks - 1), all_reduce_bytes_sent(ranks, 1e9)
        ring = ring_all_reduce_time(ranks, 1e9, *LINK)
        beta = inverse_bandwidth(LINK[1])
        assert collective_time(steps, LINK[0], sent, beta) == pytest.approx(ring)
        assert reducing_collective_time(steps, LINK[0], sent, beta, sent / 2, 0) == (
            pytest.approx(ring)
        )


def test_broadcast_by_scatter_and_all_gather_is_their_sum() -> None:
    for ranks in RANKS:
        parts = binomial_scatter_time(ranks, 1e9, *LINK) + ring_all_gather_time(ranks, 1e9, *LINK)
        assert scatter_all_gather_broadcast_time(ranks, 1e9, *LINK) == pytest.approx(parts)


def test_tree_all_reduce_is_reduce_then_broadcast() -> None:
    for ranks in RANKS:
        assert tree_all_reduce_time(ranks, 1e6, *LINK) == (
            2 * binomial_broadcast_time(ranks, 1e6, *LINK)
        )


def test_halving_doubling_sends_what_the_ring_sends_in_fewer_steps() -> None:
    for ranks in POWERS[1:]:
        steps = math.log2(ranks)
        halving = sum(halving_step_bytes(1e9, step) for step in range(int(steps)))
        assert 2 * halving == pytest.approx(all_reduce_bytes_sent(ranks, 1e9))
        saved = ring_all_reduce_time(ranks, 1e9, *LINK)
        saved -= halving_doubling_all_reduce_time(ranks, 1e9, *LINK)
        assert saved == pytest.approx(2 * (ranks - 1 - steps) * LINK[0], abs=1e-15)
        gathered = 2 * recursive_doubling_all_gather_time(ranks, 1e9, *LINK)
        assert gathered == pytest.approx(halving_doubling_all_reduce_time(ranks, 1e9, *LINK))


# What is no traffic of the axis: shares of what stays, and traffic of another axis.
KEPT = {
    "zero_state_bytes", "tensor_parallel_layer_activation_bytes", "kv_ring_buffer_bytes",
    "sequence_parallel_layer_activation_bytes", "selective_recompute_layer_activation_bytes",
    "split_pipeline_boundary_bytes", "split_pipeline_rank_bytes", "stage_activation_bytes",
    "hsdp_replica_bytes", "gated_layer_activation_bytes",
}  # fmt: skip
OTHERS = {("tp", "sharded_data_parallel_bytes"), ("stages", "tensor_parallel_step_bytes")}
AXES = ("ranks", "gpus_per_node", "dp", "tp", "cp", "ep", "shard_ranks", "stages")


@pytest.mark.parametrize("axis", AXES)
def test_a_group_of_one_communicates_nothing_or_has_no_such_formula(axis: str) -> None:
    alone = {"nodes": 1, "base_latency_s": 0, "bucket_overhead_s": 0, "rank": 0, "stage": 0}
    tried = 0
    for name in sorted(FIRST.keys() - KEPT):
        formula, given = FORMULAS[name], FIRST[name].arguments
        if axis not in given or formula.unit not in ("s", "B") or "step" in formula.symbol:
            continue
        if (axis, name) in OTHERS:
            continue
        at_one = {**given, **{key: alone[key] for key in given.keys() & alone.keys()}, axis: 1}
        tried += 1
        with contextlib.suppress(InputError):
            assert evaluate(name, **at_one).value == 0, name
    assert tried


def test_bytes_sent_tend_to_twice_the_buffer() -> None:
    sent = [all_reduce_bytes_sent(ranks, 1) for ranks in (*RANKS, 10**12)]
    assert sent == sorted(sent)
    assert sent[-1] == pytest.approx(2)


def test_chain_broadcast_tends_to_one_transfer_in_many_segments() -> None:
    assert chain_broadcast_time(8, 10**9, 1e9, 0, 50e9) == pytest.approx(1e9 / 50e9)
    assert chain_broadcast_time(8, 1, 1e9, *SLOW) == 7 * point_to_point_time(1e9, *SLOW)


def test_bus_bandwidth_of_a_ring_without_latency_is_the_links() -> None:
    for ranks in range(2, 65):
        time = ring_all_reduce_time(ranks, 1e9, 0, 450e9)
        assert all_reduce_bus_bandwidth(ranks, 1e9, time) == pytest.approx(450e9)
        time = ring_all_gather_time(ranks, 1e9, 0, 450e9)
        assert all_gather_bus_bandwidth(ranks, 1e9, time) == pytest.approx(450e9)
        assert algorithm_bandwidth(1e9, time) > 450e9


def test_latency_is_half_of_the_time_at_the_crossover() -> None:
    size = point_to_point_crossover_bytes(*SLOW)
    assert point_to_point_time(size, *SLOW) == pytest.approx(2 * SLOW[0])
    for ranks in range(2, 65):
        size = ring_all_reduce_crossover_bytes(ranks, *SLOW)
        latency = ring_all_reduce_time(ranks, 0, *SLOW)
        assert ring_all_reduce_time(ranks, size, *SLOW) == pytest.approx(2 * latency)


@pytest.mark.parametrize("offset", [-1, 0])
def test_ring_chunks_reduce_every_chunk_at_its_owner(offset: int) -> None:
    for ranks in range(2, 9):
        held = [{chunk: {rank} for chunk in range(ranks)} for rank in range(ranks)]
        for step in range(ranks - 1):
            sent = [ring_chunk_sent(rank, step, ranks, offset) for rank in range(ranks)]
            messages = [(rank, chunk, set(held[rank][chunk])) for rank, chunk in enumerate(sent)]
            for rank, chunk, contributions in messages:
                target = (rank + 1) % ranks
                assert chunk == ring_chunk_received(target, step, ranks, offset)
                assert not held[target][chunk] & contributions
                held[target][chunk] |= contributions
        for rank in range(ranks):
            assert held[rank][ring_chunk_owned(rank, ranks, offset)] == set(range(ranks))


@pytest.mark.parametrize("message_bytes", [1e3, 1e9])
def test_hierarchy_of_one_node_is_the_flat_ring(message_bytes: float) -> None:
    for gpus in range(1, 17):
        flat = ring_all_reduce_time(gpus, message_bytes, *LINK)
        assert two_level_all_reduce_time(gpus, 1, message_bytes, *LINK, *SLOW) == (
            pytest.approx(flat)
        )


@pytest.mark.parametrize("message_bytes", [1e3, 1e9])
def test_hierarchy_of_nodes_with_one_gpu_is_the_flat_ring(message_bytes: float) -> None:
    for nodes in range(1, 17):
        flat = ring_all_reduce_time(nodes, message_bytes, *SLOW)
        assert two_level_all_reduce_time(1, nodes, message_bytes, *LINK, *SLOW) == (
            pytest.approx(flat)
        )
        # The leader still copies the buffer to itself in this form; without that it is flat.
        copy = 2 * message_bytes / LINK[1]
        assert leader_all_reduce_time(1, nodes, message_bytes, *LINK, *SLOW) == (
            pytest.approx(flat + copy)
        )


def test_two_levels_move_an_nth_of_the_flat_rings_bytes_between_nodes() -> None:
    for gpus, nodes in itertools.product((2, 4, 8), (2, 3, 16)):
        per_nic = 1e9 * 2 * (nodes - 1) / nodes / gpus
        flat = flat_ring_bytes_per_nic(gpus * nodes, 1, 1e9)
        assert per_nic < flat / gpus
        assert flat_ring_bytes_per_nic(gpus * nodes, gpus, 1e9) == pytest.approx(flat / gpus)


def test_nccl_latency_of_one_node_has_no_network_hop() -> None:
    for ranks in (2, 8, 16):
        assert nccl_ring_latency(ranks, 1, 6.6e-6, 0.6e-6, 1.0) == pytest.approx(
            6.6e-6 + ring_all_reduce_time(ranks, 0, 0.6e-6, 1)
        )
