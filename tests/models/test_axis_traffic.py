"""Traffic by axis, compared with published and hand-computed volumes."""

from __future__ import annotations

from typing import Any

import pytest

from figgen import catalog
from figgen.models.machine.layout import ParallelLayout, layout
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.recipes import recipe
from figgen.models.step.axis_traffic import AxisTraffic, axis_traffic


def by_axis(
    model: str, parallel: ParallelLayout, sequence: int, **options: Any
) -> dict[str, AxisTraffic]:
    given = {"microbatches": 1, "recipe": recipe("zero16"), "buckets": 1} | options
    setup = TrainingSetup(
        shape=catalog.model(model).shape, parallel=parallel, sequence=sequence, **given
    )
    return {entry.communicator: entry for entry in axis_traffic(setup)}


def test_gpt_3_tensor_parallel_layer_sends_352_megabytes() -> None:
    parallel = layout(nodes=1, gpus_per_node=8, tp=8)
    plain = by_axis("gpt-3-175b", parallel, 2048, sequence_parallel=False)["tp"]
    assert plain.sent_bytes == 96 * 352_321_536


def test_sequence_parallelism_sends_a_quarter_more_for_the_inputs_that_it_does_not_keep() -> None:
    """Korthikanti et al. 2022, §4.2.2: both blocks' inputs are gathered again in backward."""
    parallel = layout(nodes=1, gpus_per_node=8, tp=8)
    found = by_axis("gpt-3-175b", parallel, 2048)["tp"]
    assert found.operations == 96 * (4 + 4 + 2)
    assert found.sent_bytes == 96 * 440_401_920


def test_llama_405b_sends_301_gb_in_a_full_stage_and_a_64th_less_in_the_mean() -> None:
    """126 layers on 16 stages: eight each, seven at both ends; 16 sequences of 8,192 tokens."""
    parallel = layout(nodes=2048, gpus_per_node=8, tp=8, pp=16)
    found = by_axis("llama-3-405b", parallel, 8192, microbatches=16)["tp"]
    stage = 8 * 16 * 10 * 7 / 8 * 8192 * 16384 * 2
    assert stage == pytest.approx(300.6e9, rel=1e-3)
    assert found.sent_bytes == pytest.approx(stage * 126 / 128)


def test_context_parallel_forward_of_131072_tokens_sends_470_megabytes() -> None:
    # Llama 3 8B has 8 KV heads of 128; forward is one of the three passes.
    parallel = layout(nodes=1, gpus_per_node=8, cp=8)
    for exchange in ("p2p", "all-gather"):
        found = by_axis("llama-3-8b", parallel, 131_072, context_exchange=exchange)
        assert found["cp"].sent_bytes == 32 * 3 * 469_762_048


def test_mixtral_layer_of_4096_tokens_sends_235_megabytes_in_four_all_to_alls() -> None:
    parallel = layout(nodes=1, gpus_per_node=8, ep=8)
    found = by_axis("mixtral-8x7b", parallel, 4096)["ep"]
    assert (found.sent_bytes, found.operations) == (32 * 234_881_024, 32 * 4)


def test_gpt_3_gradients_cost_10_gigabytes_with_tp_8_pp_8_dp_16() -> None:
    parallel = layout(nodes=128, gpus_per_node=8, tp=8, pp=8)
    found = by_axis("gpt-3-175b", parallel, 2048)
    assert set(found) == {"tp", "dp", "pp"}
    # The tied table is held twice, once at either end of the pipeline.
    assert found["dp"].sent_bytes == pytest.approx(10.25e9, rel=0.003)


def test_gpt_3_pipeline_boundary_is_50_megabytes_shared_by_the_tensor_ranks() -> None:
    parallel = layout(nodes=8, gpus_per_node=8, tp=8, pp=8)
    found = by_axis("gpt-3-175b", parallel, 2048, microbatches=3)["pp"]
    assert found.buffer_bytes * 8 == 50_331_648
    assert found.sent_bytes == 2 * 3 * 50_331_648 / 8


def test_experts_are_reduced_over_their_own_copies_and_the_rest_over_all() -> None:
    parallel = layout(nodes=256, gpus_per_node=8, pp=16, ep=64)
    found = by_axis("deepseek-v3", parallel, 4096)
    dense, expert = found["dp"], found["edp"]
    counts = catalog.model("deepseek-v3").counts
    # The first of 16 stages has dense layers only.
    held = dense.buffer_bytes * 16 + expert.buffer_bytes * 15 * 64
    assert held == pytest.approx(2 * counts.total)
    # EDP is 2: half of the gradients out, half of the weights back.
    assert expert.sent_bytes == pytest.approx(2 * counts.routed_experts / (16 * 64))


def test_axes_of_one_rank_send_nothing() -> None:
    assert by_axis("llama-3-8b", layout(nodes=1, gpus_per_node=1), 1024) == {}


def test_a_stage_without_experts_does_not_dilute_the_buffers_of_the_others() -> None:
    """4,096 tokens to 8 experts each, 7,168 wide, in 16 bits; 58 layers on 16 stages.

    One node of eight holds an eighth of a group of 64, so 56 of 63 peers are on other nodes.
    """
    parallel = layout(nodes=256, gpus_per_node=8, pp=16, ep=64)
    found = by_axis("deepseek-v3", parallel, 4096, microbatches=120)["ep"]
    assert found.buffer_bytes == 4096 * 8 * 7168 * 2
    assert found.operations == 58 / 16 * 120 * 4
    assert found.sent_bytes == pytest.approx(found.operations * found.buffer_bytes * 63 / 64)
    assert found.leaving_bytes == pytest.approx(found.sent_bytes * 56 / 63)


def test_interleaved_stages_send_from_the_last_rank_to_the_first() -> None:
    parallel = layout(nodes=4, gpus_per_node=8, tp=8, pp=4)
    found = by_axis(
        "llama-3-8b", parallel, 1024, microbatches=4, schedule="interleaved-1f1b", chunks=2
    )["pp"]
    # Two chunks on four ranks are eight stages: seven boundaries, crossed twice a microbatch.
    assert found.leaving_bytes * 4 == pytest.approx(2 * 7 * 4 * found.buffer_bytes)


@pytest.mark.parametrize(
    ("model", "most"), [("gpt-3-175b", 12), ("llama-3-70b", 94), ("llama-3-405b", 187)]
)
def test_context_sends_less_than_tensor_parallelism_where_heads_share_keys(
    model: str, most: int
) -> None:
    """Per layer per token: 3 · 2(C − 1) widths of keys and values over T, and 10 (T − 1) / T.

    So it does with TP 8 up to C = 12 without sharing, and up to nearly a multiple of that if heads
    share keys.
    """
    shape = catalog.model(model).shape
    wide = shape.kv_heads * shape.head_dim / shape.hidden
    for cp in (2, 4, 8, 12, 13, 16, 94, 95, 187, 188):
        parallel = layout(nodes=cp, gpus_per_node=8, tp=8, cp=cp)
        found = by_axis(model, parallel, 1024 * cp)
        by_hand = 3 * (cp - 1) * 2 * wide / (10 * 7)
        ratio = found["cp"].sent_bytes / found["tp"].sent_bytes
        assert ratio == pytest.approx(by_hand)
        assert (ratio < 1) == (cp <= most)


@pytest.mark.parametrize("microbatches", [1, 2, 3, 32])
def test_gpt_3_sends_most_for_tensor_parallelism_from_three_microbatches_on(
    microbatches: int,
) -> None:
    """4.23 GB per microbatch with TP 8 and PP 8, 10.2 GB of gradients per step with DP 16."""
    parallel = layout(nodes=128, gpus_per_node=8, tp=8, pp=8)
    found = by_axis(
        "gpt-3-175b", parallel, 2048, microbatches=microbatches, sequence_parallel=False
    )
    assert found["tp"].sent_bytes == microbatches * 12 * 352_321_536
    assert (found["tp"].sent_bytes > found["dp"].sent_bytes) == (microbatches >= 3)
