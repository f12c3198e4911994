"""Bytes of a step: the formulas' test points."""

from __future__ import annotations

from typing import Any

import pytest

from figgen import catalog
from figgen.errors import InputError
from figgen.formulas.context_parallel import ring_attention_forward_bytes
from figgen.formulas.data_parallel import (
    data_parallel_bytes,
    fsdp_layer_bytes,
    zero2_accumulation_bytes,
    zero_bytes_sent,
)
from figgen.formulas.tensor_parallel import tensor_parallel_step_bytes
from figgen.models.machine.layout import layout
from figgen.models.memory.rank_parameters import stage_parameters
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.recipes import recipe
from figgen.models.step.data_traffic import GRADIENTS, WEIGHTS, data_traffic, stage_traffic
from figgen.models.step.layer_traffic import (
    AGAIN,
    HEAD_AGAIN,
    KEYS,
    LAYERS,
    TABLES,
    TOKENS,
    microbatch_traffic,
)
from figgen.models.step.step_traffic import Traffic


def setup(model: str, sizes: dict[str, int], sequence: int, **options: Any) -> TrainingSetup:
    given = {"microbatches": 1, "recipe": recipe("zero16"), "zero_stage": 0} | options
    nodes = sizes.pop("nodes", 1)
    parallel = layout(nodes=nodes, gpus_per_node=8, **sizes)
    return TrainingSetup(
        shape=catalog.model(model).shape, parallel=parallel, sequence=sequence, **given
    )


def sent(run: TrainingSetup, stage: int, axis: str, *purposes: str) -> float:
    """Return bytes that a rank of `stage` sends per microbatch or step, for these
    purposes or all."""
    return sum(
        entry.calls * entry.sent_bytes
        for entry in stage_traffic(run, stage)
        if entry.axis == axis and (not purposes or entry.purpose in purposes)
    )


@pytest.mark.parametrize(("options", "passes"), [({}, 4), ({"recompute": "full"}, 6)])
@pytest.mark.parametrize("sequence_parallel", [True, False])
def test_gpt_3_tensor_parallel_layer_sends_352_megabytes_and_half_as_much_again_if_recomputed(
    options: dict[str, str], passes: int, sequence_parallel: bool
) -> None:
    run = setup("gpt-3-175b", {"tp": 8}, 2048, sequence_parallel=sequence_parallel, **options)
    assert sent(run, 0, "tp", LAYERS) == 96 * 352_321_536 * passes / 4
    one = tensor_parallel_step_bytes(1, 96, 1, passes, 8, 1, 2048, 12288, 2)
    assert sent(run, 0, "tp", LAYERS) == one
    # Sequence parallelism gathers two inputs a layer and the head's once more in backward.
    once = 7 / 8 * 50_331_648 if sequence_parallel else 0
    assert sent(run, 0, "tp", AGAIN) == 2 * 96 * once
    assert sent(run, 0, "tp", HEAD_AGAIN) == once
    # The table's ends: one all-reduce each, or its two halves.
    assert sent(run, 0, "tp", TABLES) == 2 * 2 * 7 / 8 * 50_331_648


def test_context_parallel_forward_of_131072_tokens_sends_470_megabytes() -> None:
    for exchange in ("p2p", "all-gather"):
        run = setup("llama-3-8b", {"cp": 8}, 131_072, context_exchange=exchange)
        # Llama 3 8B has 8 KV heads of 128; forward is one of the three passes.
        assert sent(run, 0, "cp", KEYS) == 32 * 3 * 469_762_048
    assert ring_attention_forward_bytes(8, 1, 131_072, 1024, 2) == 469_762_048


@pytest.mark.parametrize(
    ("options", "passes"),
    [
        ({"recompute": "full"}, 4),
        ({"recompute": "selective", "flash_attention": False}, 4),
        ({"recompute": "selective"}, 3),
    ],
)
def test_computing_attention_again_fetches_keys_again(options: Any, passes: int) -> None:
    run = setup("llama-3-8b", {"cp": 8}, 131_072, **options)
    assert sent(run, 0, "cp") == 32 * passes * 469_762_048


def test_mixtral_layer_of_4096_tokens_sends_235_megabytes_in_four_all_to_alls() -> None:
    run = setup("mixtral-8x7b", {"ep": 8}, 4096)
    assert sent(run, 0, "ep", TOKENS) == 32 * 234_881_024
    calls = sum(entry.calls for entry in stage_traffic(run, 0) if entry.purpose == TOKENS)
    assert calls == 32 * 4


def test_gpt_3_gradients_cost_10_gigabytes_with_tp_8_pp_8_dp_16() -> None:
    run = setup("gpt-3-175b", {"tp": 8, "pp": 8, "nodes": 128}, 2048)
    assert data_parallel_bytes(175e9 / 64, 2, 16) == pytest.approx(10.25e9, rel=1e-3)
    # Stages inside the pipeline hold no table, so that they send a little less than a 64th.
    assert sent(run, 3, "dp", GRADIENTS) == pytest.approx(10.25e9, rel=0.01)


def test_gpt_3_pipeline_boundary_is_50_megabytes_shared_by_the_tensor_ranks() -> None:
    run = setup("gpt-3-175b", {"tp": 8, "pp": 8, "nodes": 8}, 2048)
    assert [sent(run, stage, "pp") * 8 / 50_331_648 for stage in range(8)] == [1, *[2] * 6, 1]
    whole = setup("gpt-3-175b", {"tp": 8, "pp": 8, "nodes": 8}, 2048, sequence_parallel=False)
    assert sent(whole, 3, "pp") == 2 * 50_331_648


@pytest.mark.parametrize("stage", range(4))
def test_zero_stages_send_what_the_formulas_say(stage: int) -> None:
    run = setup("llama-3-8b", {}, 1024, zero_stage=stage)
    parameters = sum(part.count for part in stage_parameters(run, 0))
    expected = zero_bytes_sent(parameters, 2, 8, stage)
    assert sent(run, 0, "dp") == pytest.approx(expected)
    if stage == 3:
        assert expected == fsdp_layer_bytes(parameters, 2, 8)
    entries = [entry for entry in stage_traffic(run, 0) if entry.axis == "dp"]
    # Thirty-two layers, an embedding and a head; or as many buckets as wanted.
    assert {entry.calls for entry in entries} == {34}
    one = setup("llama-3-8b", {}, 1024, zero_stage=stage, buckets=1)
    assert sent(one, 0, "dp") == pytest.approx(expected)


def test_accumulating_shards_scatters_after_every_microbatch() -> None:
    run = setup("llama-3-8b", {}, 1024, zero_stage=2, microbatches=5)
    parameters = sum(part.count for part in stage_parameters(run, 0))
    step = 5 * sent(run, 0, "dp", GRADIENTS) + sent(run, 0, "dp", WEIGHTS)
    assert step == pytest.approx(zero2_accumulation_bytes(parameters, 2, 8, 5))


def test_a_call_of_an_unknown_collective_is_refused() -> None:
    with pytest.raises(InputError, match="unknown collective of a step 'all-reduse'"):
        _ = Traffic(
            axis="tp",
            purpose=LAYERS,
            collective="all-reduse",
            phase="forward",
            calls=1,
            buffer_bytes=1.0,
            size=2,
        ).sent_bytes


@pytest.mark.parametrize(
    ("model", "sizes", "options"),
    [
        ("llama-3-405b", {"tp": 8, "pp": 16, "nodes": 16}, {"schedule": "zbv"}),
        ("llama-3-70b", {"tp": 4, "pp": 4, "nodes": 4}, {"lora_rank": 16}),
        ("gemma-3-27b", {"tp": 2, "pp": 8, "cp": 2, "nodes": 8}, {"recompute": "block:2"}),
        (
            "deepseek-v3",
            {"tp": 1, "pp": 8, "ep": 8, "nodes": 8},
            {"mtp_layers": 1, "zero_stage": 1},
        ),
        ("deepseek-v3", {"tp": 1, "pp": 8, "ep": 8, "nodes": 8}, {"schedule": "dualpipe"}),
        ("mamba-2-hybrid-8b", {"tp": 2, "pp": 4, "cp": 2, "nodes": 4}, {"recompute": "block:3"}),
    ],
)
def test_stages_that_are_taken_for_alike_are(
    model: str, sizes: dict[str, int], options: dict[str, Any]
) -> None:
    run = setup(model, sizes, 4096, **{"microbatches": 16, **options})
    for stage in range(run.placement.stages):
        alone = (*microbatch_traffic(run, stage), *data_traffic(run, stage))
        assert stage_traffic(run, stage) == alone, stage
