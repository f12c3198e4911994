"""Formulas of parallel training that must agree with each other and with counts."""

import itertools
from collections.abc import Callable

import pytest

from figgen.formulas.collectives import (
    all_reduce_bytes_sent,
    ring_all_reduce_time,
)
from figgen.formulas.compute_and_roofline import (
    attainable_flops_over_network,
    critical_tokens,
    critical_tokens_of_group,
    data_parallel_ccr,
    efficiency_with_overlap,
    efficiency_with_partial_overlap,
    efficiency_without_overlap,
    fsdp_ccr,
    training_flops,
)
from figgen.formulas.data_parallel import (
    chunked_all_reduce_time,
    data_parallel_bytes,
    data_parallel_time,
    exposed_communication_time,
    fsdp_layer_bytes,
    hidden_communication_fraction,
    hsdp_replica_bytes,
    hsdp_shard_bytes,
    zero2_accumulation_bytes,
    zero_bytes_sent,
)
from figgen.formulas.pipeline import pipeline_boundary_bytes
from figgen.formulas.placement import pipeline_rank_bytes, split_pipeline_rank_bytes
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


def step_share(peak: float, bandwidth: float, passes: list[tuple[float, float]]) -> float:
    """Return compute time over step time, where each pass hides its own bytes behind
    its own work."""
    work = sum(flops for flops, _ in passes) / peak
    return work / sum(max(flops / peak, sent / bandwidth) for flops, sent in passes)


def ddp_passes(tokens: float, dp: int, microbatches: int = 1) -> list[tuple[float, float]]:
    """Return (FLOPs, bytes) of every pass of a 7B model: only the last backward sends."""
    n = 7e9
    quiet = [(2 * n * tokens, 0.0), (4 * n * tokens, 0.0)] * microbatches
    return [*quiet[:-1], (4 * n * tokens, data_parallel_bytes(n, 2, dp))]


def fsdp_passes(tokens: float, dp: int) -> list[tuple[float, float]]:
    once = zero_bytes_sent(7e9, 2, dp, 3) / 3
    return [(2 * 7e9 * tokens, once), (4 * 7e9 * tokens, 2 * once)]


@pytest.mark.parametrize("passes", [ddp_passes, fsdp_passes])
def test_from_the_critical_tokens_on_each_pass_hides_what_it_sends_and_not_before(
    passes: Callable[[float, int], list[tuple[float, float]]],
) -> None:
    """Both have the same limit, as in Austin et al. 2025: gradients have no forward that could hide
    them."""
    for dp in range(2, 65):
        tokens = critical_tokens_of_group(989.4e12, 50e9, 2, dp)
        assert step_share(989.4e12, 50e9, passes(1.0001 * tokens, dp)) == pytest.approx(1)
        assert step_share(989.4e12, 50e9, passes(0.999 * tokens, dp)) < 0.9999
        assert critical_tokens(989.4e12, 50e9, 2) == pytest.approx(tokens * dp / (dp - 1))


@pytest.mark.parametrize("microbatches", [1, 2, 4, 32])
@pytest.mark.parametrize("tokens", [512, 4096, 8192, 19_000, 40_000])
def test_gradients_hide_behind_the_last_backward_whatever_was_accumulated(
    tokens: int, microbatches: int
) -> None:
    counted = step_share(989.4e12, 50e9, ddp_passes(tokens, 64, microbatches))
    ccr = data_parallel_ccr(tokens * microbatches, 2, 64)
    closed = efficiency_with_partial_overlap(ccr, 989.4e12 / 50e9, 2 / 3 / microbatches)
    assert closed == pytest.approx(counted)
    if (tokens, microbatches) == (8192, 4):
        assert round(counted, 2) == 0.81


@pytest.mark.parametrize("dp", [1, 3, 8])
def test_gradients_take_the_ring_of_their_bytes(dp: int) -> None:
    sent = data_parallel_time(7e9, 2, dp, 5e-6, 50e9)
    assert sent == pytest.approx(ring_all_reduce_time(dp, 14e9, 5e-6, 50e9))


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


def test_a_rank_within_the_pipeline_passes_on_every_microbatch_of_every_chunk_both_ways() -> None:
    once = pipeline_boundary_bytes(5, 7, 11, 2)
    assert once == 5 * 7 * 11 * 2
    assert pipeline_rank_bytes(3, 2, 5, 7, 11, 2) == 2 * 3 * 2 * once
    # What four ranks that share the messages send together is what one would send alone.
    assert 4 * split_pipeline_rank_bytes(3, 2, 5, 7, 11, 2, 4) == 2 * 3 * 2 * once
