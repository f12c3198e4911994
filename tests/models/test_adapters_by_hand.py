"""LoRA on a rank by hand: what it holds and trains, what a token uses, what is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from figgen import catalog
from figgen.models.machine.layout import layout
from figgen.models.memory.layer_tensors import layer_tensors, unread_tensors
from figgen.models.memory.rank_parameters import rank_parameters
from figgen.models.memory.trained_state import (
    adapter_weights,
    adapters_met,
    first_inputs,
    kept_by_rank,
    kept_by_stage,
    trained_parameters,
)
from figgen.models.setup.layer_matrices import held_matrices
from figgen.models.setup.stage_layers import shares_of_rank
from figgen.models.setup.training_setup import TrainingSetup
from tests.models.jobs import job


@pytest.mark.parametrize("matrices", ["attention", "all-linear"])
@pytest.mark.parametrize("model", ["llama-3-8b", "mixtral-8x7b", "deepseek-v3", "gpt-2-xl"])
def test_what_is_frozen_is_the_model_and_the_quantized_part_its_matrices(
    model: str, matrices: str
) -> None:
    """Every parameter that a rank holds takes two bytes.

    In 8 bits, each weight of a layer's matrices except routers takes one, and each of their outputs
    has a scale of four bytes.
    """
    shape = catalog.model(model).shape
    sizes = {"tp": 2 - shape.heads % 2, "pp": 2} | ({"ep": 2, "etp": 2} if shape.experts else {})
    parallel = layout(nodes=1, gpus_per_node=8, **sizes)
    run = TrainingSetup(
        shape=shape,
        parallel=parallel,
        microbatches=4,
        sequence=1024,
        lora_rank=3,
        lora_matrices=matrices,
    )
    for rank in range(2):
        held = sum(part.count for part in rank_parameters(run, rank))
        kept = kept_by_rank(run, rank)
        assert kept.frozen_bytes + kept.frozen_routed_bytes == 2 * held
        assert kept.quantized == 0
        assert kept_by_stage(run, rank) == kept
        layers = [0, 0]
        for share in shares_of_rank(run, rank):
            layers = [layers[0] + share.dense_layers, layers[1] + share.expert_layers]
        inside = [
            (count, one)
            for count, experts in zip(layers, (False, True), strict=True)
            for one in (held_matrices(run, experts=experts) if count else ())
            if one.part != "router"
        ]
        weights = sum(count * one.weights for count, one in inside)
        scales = sum(count * one.copies * one.outputs for count, one in inside)
        narrow = kept_by_rank(replace(run, frozen_weights="int8"), rank)
        assert narrow.quantized == weights
        assert narrow.frozen_bytes + narrow.frozen_routed_bytes == 2 * held - weights + 4 * scales


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_a_rank_has_the_thin_side_of_an_adapter_whole_and_divides_the_other(tp: int) -> None:
    """Mixtral 8×7B by hand: column-parallel matrices divide their outputs, row-parallel ones their
    inputs; a rank of four holds two of eight experts, each whole."""
    h, kv, f, layers, rank = 4096, 1024, 14336, 32, 5
    run = job("mixtral-8x7b", tp=tp, ep=4, etp=1, microbatches=4, sequence=4096, lora_rank=rank)
    attention = [(h, h // tp), (h, kv // tp), (h, kv // tp), (h // tp, h)]
    expert = [(h, f), (h, f), (f, h)]
    mine = rank * sum(map(sum, attention))
    one = rank * sum(map(sum, expert))
    kept = kept_by_rank(run, 0)
    assert (kept.trained, kept.trained_routed) == (layers * mine, layers * 2 * one)
    # A token meets two experts, and all ranks' parts of attention.
    whole = rank * (2 * h + 2 * (h + kv) + 2 * h)
    assert trained_parameters(run) == layers * (whole + 8 * one)
    assert adapters_met(run) == layers * (whole + 2 * one)
    met = {name: count for name, count in adapter_weights(run).items() if count}
    assert met == {"attention": tp * mine, "routed": 2 * one}
    halves = replace(run, parallel=layout(nodes=1, gpus_per_node=8, tp=tp, etp=2))
    both = 2 * rank * (2 * (h + f // 2) + f // 2 + h)
    assert adapter_weights(halves)["routed"] == 2 * both
    only = replace(run, lora_matrices="query-value")
    assert kept_by_rank(only, 0).trained == layers * rank * (h + h // tp + h + kv // tp)
    assert kept_by_rank(only, 0).trained_routed == 0
    # Queries, keys and values read the layer's input, whose gradient nobody needs.
    assert first_inputs(run, tp) == h * (h + 2 * kv) + tp * rank * 3 * h
    # With latents both down-projections do, each to its rank, keys with their rotary part of 64.
    latent = replace(run, shape=catalog.model("deepseek-v3").shape)
    assert first_inputs(latent, tp) == 7168 * (1536 + 512 + 64) + tp * rank * 2 * 7168
    assert (
        first_inputs(replace(run, lora_rank=None))
        == adapters_met(replace(run, lora_rank=None))
        == 0
    )


def test_adapters_of_latent_attention_and_of_a_few_dense_layers_are_counted_once() -> None:
    """DeepSeek-V3 by hand: down-projections are whole on every rank, and three layers are dense."""
    run = job(
        "deepseek-v3", gpus_per_node=2, tp=2, etp=1, microbatches=4, sequence=4096, lora_rank=3
    )
    h, q, kv, heads = 7168, 1536, 512, 128
    down = [(h, q), (h, kv + 64)]
    up = [(q, heads * 192 // 2), (kv, heads * 256 // 2)]
    attention = 3 * sum(map(sum, [*down, *up, (heads * 128 // 2, h)]))
    dense = 3 * (2 * (h + 18432 // 2) + 18432 // 2 + h)
    shared = 3 * (2 * (h + 2048 // 2) + 2048 // 2 + h)
    expert = 3 * 3 * (h + 2048)
    assert adapter_weights(run) == {
        "attention": 2 * attention,
        "up_projections": 2 * 3 * sum(map(sum, up)),
        "dense": 2 * dense,
        "routed": 8 * expert,
        "shared": 2 * shared,
    }
    kept = kept_by_rank(run, 0)
    assert kept.trained == 61 * attention + 3 * dense + 58 * shared
    assert kept.trained_routed == 58 * 256 * expert


def test_adapters_of_experts_keep_a_thin_vector_for_each_visit() -> None:
    """Mixtral: two visits per token of this rank and of the other rank that shares its experts."""
    run = job("mixtral-8x7b", tp=2, etp=2, microbatches=4, sequence=4096, lora_rank=5)
    found = {
        one.name: one.bytes for one in layer_tensors(run, experts=True) if "adapter" in one.name
    }
    thin = 4096 * 5 * 2
    attention = {
        f"adapter of attention {name}": thin for name in ("query", "key", "value", "output")
    }
    routed = {f"adapter of routed {name}": thin / 2 * 2 * 2 for name in ("gate", "up", "down")}
    assert found == attention | routed


def test_an_input_that_only_frozen_matrices_read_is_not_kept() -> None:
    """The router is frozen without an adapter, but a shared expert reads the same input."""
    dense, routed = (
        {"ffn input", "ffn products"},
        {"router input", "routed inputs", "routed products"},
    )
    for model, matrices, gone in (
        ("llama-3-8b", "all-linear", set()),
        ("llama-3-8b", "attention", dense),
        ("llama-3-8b", "query-value", dense),
        ("mixtral-8x7b", "all-linear", {"router input"}),
        ("mixtral-8x7b", "attention", routed),
        ("deepseek-v3", "all-linear", set()),
        ("deepseek-v3", "attention", {*dense, *routed, "shared products"}),
    ):
        run = job(
            model,
            gpus_per_node=1,
            microbatches=1,
            sequence=2048,
            lora_rank=8,
            lora_matrices=matrices,
        )
        kinds = [
            layers
            for layers in (False, True)
            if (run.shape.dense_layers, run.shape.expert_layers)[layers]
        ]
        kept = {one.name for experts in kinds for one in layer_tensors(run, experts=experts)}
        assert unread_tensors(run) & kept == gone, (model, matrices)
        # Stored scores are multiplied with values; only the frozen way out reads what comes of it.
        stored = unread_tensors(replace(run, flash_attention=False)) & kept
        assert stored - gone == ({"attention output"} if matrices == "query-value" else set())
        assert not unread_tensors(replace(run, frozen_weights="int8"))
