"""Laws that tie formulas to each other, and to the arrays that they are about."""

import contextlib
import itertools
import math

import numpy as np
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
from figgen.formulas.compute_and_roofline import (
    attainable_flops_over_network,
    critical_tokens,
    data_parallel_ccr,
    efficiency_with_overlap,
    efficiency_without_overlap,
    fsdp_ccr,
    ridge_point,
    training_flops,
)
from figgen.formulas.data_parallel import (
    chunked_all_reduce_time,
    data_parallel_bytes,
    exposed_communication_time,
    fsdp_layer_bytes,
    hidden_communication_fraction,
    hsdp_replica_bytes,
    hsdp_shard_bytes,
    zero2_accumulation_bytes,
    zero_bytes_sent,
)
from figgen.formulas.hierarchical_collectives import (
    flat_ring_bytes_per_nic,
    leader_all_reduce_time,
    nccl_ring_latency,
    two_level_all_reduce_time,
)
from figgen.formulas.scale_and_state import (
    growth_for_loss_ratio,
    power_law_loss,
    zero_state_bytes,
)
from figgen.formulas.tensor_parallel import (
    sequence_parallel_layer_bytes,
    tensor_parallel_layer_bytes,
    tensor_parallel_message_bytes,
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
    "split_pipeline_boundary_bytes", "stage_activation_bytes", "hsdp_replica_bytes",
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


def test_zero_volumes_are_two_or_three_model_sizes() -> None:
    for dp in range(1, 65):
        plain = data_parallel_bytes(7e9, 2, dp)
        for stage in (0, 1, 2):
            assert zero_bytes_sent(7e9, 2, dp, stage) == plain
        assert zero_bytes_sent(7e9, 2, dp, 3) == pytest.approx(1.5 * plain)
        assert zero2_accumulation_bytes(7e9, 2, dp, 1) == plain
        assert fsdp_layer_bytes(7e9, 2, dp) == zero_bytes_sent(7e9, 2, dp, 3)


def test_hybrid_sharding_has_fsdp_and_replication_as_its_ends() -> None:
    for ranks in range(1, 33):
        assert hsdp_shard_bytes(7e9, 2, ranks) == zero_bytes_sent(7e9, 2, ranks, 3)
        assert hsdp_replica_bytes(7e9, 2, ranks, 1) == 0
        assert hsdp_shard_bytes(7e9, 2, 1) == 0
        assert hsdp_replica_bytes(7e9, 2, 1, ranks) == pytest.approx(
            data_parallel_bytes(7e9, 2, ranks)
        )


# Bytes per parameter as the ZeRO paper and Megatron-LM's docs write them, for D ranks.
RECIPES = {
    (2, 2, 12): lambda dp: (16, 4 + 12 / dp, 2 + 14 / dp, 16 / dp),
    (2, 4, 12): lambda dp: (18, 6 + 12 / dp, 2 + 16 / dp, 18 / dp),
    (2, 2, 16): lambda dp: (20, 4 + 16 / dp, 2 + 18 / dp, 20 / dp),
}


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_zero_state_follows_the_recipe(recipe: tuple[int, int, int]) -> None:
    for dp in range(1, 65):
        for stage, expected in enumerate(RECIPES[recipe](dp)):
            assert zero_state_bytes(1, *recipe, dp, stage) == pytest.approx(expected)


def test_sequence_parallelism_moves_what_tensor_parallelism_moves() -> None:
    for tp in range(1, 17):
        sizes = (tp, 1, 2048, 12288, 2)
        assert sequence_parallel_layer_bytes(4, *sizes) == pytest.approx(
            tensor_parallel_layer_bytes(4, *sizes)
        )
        message = tensor_parallel_message_bytes(1, 2048, 12288, 2)
        assert tensor_parallel_layer_bytes(4, *sizes) == pytest.approx(
            4 * all_reduce_bytes_sent(tp, message)
        )


def test_ccr_is_work_over_bytes_sent() -> None:
    for dp in range(2, 65):
        work = training_flops(7e9, 2048)
        assert data_parallel_ccr(2048, 2, dp) == pytest.approx(
            work / data_parallel_bytes(7e9, 2, dp)
        )
        assert fsdp_ccr(2048, 2, dp) == pytest.approx(work / zero_bytes_sent(7e9, 2, dp, 3))


def test_critical_tokens_put_data_parallelism_at_the_ridge_point() -> None:
    for dp in range(2, 65):
        tokens = critical_tokens(989.4e12, 450e9, 2, dp)
        assert data_parallel_ccr(tokens, 2, dp) == pytest.approx(ridge_point(989.4e12, 450e9))


def test_overlap_at_most_doubles_the_efficiency() -> None:
    for exponent in range(-20, 21):
        ccr = 1000 * 1.5**exponent
        with_, without = efficiency_with_overlap(ccr, 1000), efficiency_without_overlap(ccr, 1000)
        assert without < with_ <= 2 * without + 1e-12
        attained = attainable_flops_over_network(1e15, 1e12, ccr)
        assert with_ == pytest.approx(attained / 1e15)


def test_exposed_time_is_bounded_by_one_bucket_and_by_everything() -> None:
    for communication_s, buckets in itertools.product((0.01, 0.2, 0.3, 5.0), (1, 2, 16, 100)):
        exposed = exposed_communication_time(communication_s, 0.2, buckets, 0)
        assert communication_s / buckets <= exposed <= communication_s
        assert hidden_communication_fraction(communication_s, 0.2, buckets, 0) == pytest.approx(
            1 - exposed / communication_s
        )


def test_overlap_agrees_with_a_queue_of_buckets() -> None:
    for communication_s, buckets in itertools.product((0.01, 0.2, 0.3, 5.0), (1, 2, 16, 100)):
        done = 0.0
        for bucket in range(1, buckets + 1):
            done = max(done, 0.2 * bucket / buckets) + communication_s / buckets + 1e-3
        assert exposed_communication_time(communication_s, 0.2, buckets, 1e-3) == (
            pytest.approx(done - 0.2)
        )


def test_chunks_without_overhead_take_as_long_as_the_whole() -> None:
    for buckets in (1, 3, 16):
        whole = ring_all_reduce_time(8, 500e6, 0, 300e9)
        assert chunked_all_reduce_time(8, buckets, 500e6, 300e9, 0) == pytest.approx(whole)
        assert chunked_all_reduce_time(8, buckets, 500e6, 300e9, 5e-6) == pytest.approx(
            whole + buckets * 5e-6
        )


def test_doubling_the_model_lowers_the_loss_by_a_twentieth() -> None:
    assert power_law_loss(2e9) / power_law_loss(1e9) == pytest.approx(0.948684315, rel=1e-8)
    for ratio in (1.01, 1.5, 2):
        grown = 1e9 * growth_for_loss_ratio(ratio)
        assert power_law_loss(1e9) / power_law_loss(grown) == pytest.approx(ratio)


def test_mean_of_local_gradients_is_the_gradient_of_the_global_batch() -> None:
    rng = np.random.default_rng(0)
    weights, inputs, targets = rng.normal(size=5), rng.normal(size=(12, 5)), rng.normal(size=12)

    def gradient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Of the mean squared error, by central differences."""
        loss = lambda w: np.mean((x @ w - y) ** 2)  # noqa: E731
        steps = 1e-6 * np.eye(5)
        return np.array([(loss(weights + d) - loss(weights - d)) / 2e-6 for d in steps])

    local = [gradient(inputs[part::3], targets[part::3]) for part in range(3)]
    np.testing.assert_allclose(np.mean(local, axis=0), gradient(inputs, targets), rtol=1e-7)
    uneven = [gradient(inputs[:2], targets[:2]), gradient(inputs[2:], targets[2:])]
    assert not np.allclose(np.mean(uneven, axis=0), gradient(inputs, targets))


def test_column_then_row_parallel_mlp_is_the_whole_mlp() -> None:
    rng = np.random.default_rng(0)
    x, a, b = rng.normal(size=(3, 8)), rng.normal(size=(8, 32)), rng.normal(size=(32, 8))
    gelu = np.vectorize(lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))))
    for tp in (1, 2, 4, 8):
        columns, rows = np.split(a, tp, axis=1), np.split(b, tp, axis=0)
        partial = [gelu(x @ column) @ row for column, row in zip(columns, rows, strict=True)]
        np.testing.assert_allclose(sum(partial), gelu(x @ a) @ b, rtol=1e-12)
    # The first product split by rows instead would need its sum before the nonlinearity.
    halves = [x[:, :4] @ a[:4], x[:, 4:] @ a[4:]]
    assert not np.allclose(gelu(halves[0]) + gelu(halves[1]), gelu(x @ a))


def gate(scores: np.ndarray, top_k: int) -> np.ndarray:
    """Softmax, then the largest `top_k` gates scaled to sum to one."""
    weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    smallest = np.sort(weights, axis=-1)[..., -top_k, None]
    kept = np.where(weights >= smallest, weights, 0)
    return kept / kept.sum(axis=-1, keepdims=True)


def test_chosen_gates_are_renormalised() -> None:
    gates = gate(np.log([0.5, 0.3, 0.15, 0.05]), 2)
    np.testing.assert_allclose(gates, [0.625, 0.375, 0, 0])
    np.testing.assert_allclose(gate(np.log([0.7, 0.2, 0.1]), 2), [7 / 9, 2 / 9, 0])
    # Scaling the chosen gates is the same as a softmax over the chosen scores alone.
    np.testing.assert_allclose(gate(np.array([2.0, 1.0, -3.0]), 2)[:2], gate(np.array([2.0, 1]), 2))


def load_balancing_loss(chosen: np.ndarray, probabilities: np.ndarray) -> float:
    """E Σ fᵢ Pᵢ, with fᵢ the share of the T·k assignments that expert i gets."""
    experts = probabilities.shape[1]
    share = np.bincount(chosen.ravel(), minlength=experts) / chosen.size
    return float(experts * (share * probabilities.mean(axis=0)).sum())


def test_balanced_routing_has_load_balancing_loss_one() -> None:
    for experts, top_k in ((8, 2), (16, 4), (4, 1)):
        tokens = np.arange(experts)[:, None]
        chosen = (tokens + np.arange(top_k)) % experts
        even = np.full((experts, experts), 1 / experts)
        assert load_balancing_loss(chosen, even) == pytest.approx(1)
        peaked = np.eye(experts)[np.zeros(experts, int)]
        assert load_balancing_loss(np.zeros((experts, 1), int), peaked) == pytest.approx(experts)
