"""Formulas of parallel training that must agree with each other and with what is counted."""

import itertools

import pytest

from figgen.formulas.collectives import (
    all_reduce_bytes_sent,
    ring_all_reduce_time,
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
