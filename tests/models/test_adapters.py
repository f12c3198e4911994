"""LoRA and QLoRA: counts that PEFT and papers print, what autograd keeps, what is sent."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from figgen import catalog
from figgen.errors import InputError
from figgen.models.machine.cluster import Cluster
from figgen.models.machine.layout import layout
from figgen.models.memory.layer_tensors import layer_tensors, unread_tensors
from figgen.models.memory.memory import memory
from figgen.models.memory.rank_parameters import attention_held
from figgen.models.memory.trained_state import (
    adapted as adapts,
)
from figgen.models.memory.trained_state import (
    kept_by_rank,
    trained_parameters,
)
from figgen.models.setup.layer_matrices import held_matrices, layer_matrices
from figgen.models.setup.stage_layers import virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.adapters import ADAPTED, FROZEN
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.recipes import recipe
from figgen.models.shape.transformer import part_weights
from figgen.models.step.data_traffic import GRADIENTS, WEIGHTS, data_traffic
from figgen.models.step.layer_time import dense_layer
from figgen.models.step.stage_work import stage_work
from figgen.models.step.step import step
from figgen.models.step.timed_step import (
    frozen_bytes,
    frozen_routed_bytes,
    trained,
    trained_routed,
)
from figgen.scenarios.options.resolve import training_step
from figgen.scenarios.runs.step_job import step_job

ORACLES = Path(__file__).parents[1] / "oracles"
AUTOGRAD = json.loads((ORACLES / "lora_autograd.json").read_text())
WORK = json.loads((ORACLES / "lora_work.json").read_text())
GIB = 2**30


def one_gpu(model: str, **chosen: Any) -> TrainingSetup:
    shape = catalog.model(model).shape
    usual: dict[str, Any] = {"microbatches": 1, "sequence": 2048, "zero_stage": 0}
    return TrainingSetup(shape=shape, parallel=layout(nodes=1, gpus_per_node=1), **usual | chosen)


@pytest.mark.parametrize("name", catalog.MODELS)
def test_matrices_of_a_layer_are_the_weights_that_it_has(name: str) -> None:
    shape, weights = catalog.model(name).shape, part_weights(catalog.model(name).shape)
    for layers, experts in ((shape.dense_layers, False), (shape.expert_layers, True)):
        if not layers:
            continue
        found = layer_matrices(shape, experts=experts)
        of = {part: sum(one.weights for one in found if one.part == part) for part in weights}
        assert of["attention"] == weights["attention"]
        assert sum(one.weights for one in found if one.up) == weights["up_projections"]
        if shape.experts is None or not experts:
            assert of["dense"] == weights["dense"]
            continue
        router = next(one.weights for one in found if one.part == "router")
        visited = of["routed"] * shape.experts.top_k // shape.experts.count
        assert (visited + router, of["shared"]) == (weights["routed"], weights["shared"])


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_held_matrices_are_the_parameters_that_a_rank_holds(tp: int) -> None:
    for name in ("llama-3-8b", "deepseek-v3", "qwen-3-8b"):
        shape = replace(catalog.model(name).shape, bias=False)
        run = TrainingSetup(
            shape=shape,
            parallel=layout(nodes=1, gpus_per_node=8, tp=tp),
            microbatches=4,
            sequence=4096,
        )
        held = held_matrices(run, experts=False)
        assert sum(one.weights for one in held if one.part == "attention") == attention_held(run)


# Hu et al. 2021, arXiv:2106.09685, tables 4 and 5: 4.7M and 37.7M parameters, and 18M with four.
# The others are what PEFT's print_trainable_parameters says of these models.
@pytest.mark.parametrize(
    ("model", "rank", "matrices", "count"),
    [
        ("gpt-3-175b", 1, "query-value", 4_718_592),
        ("gpt-3-175b", 8, "query-value", 37_748_736),
        ("gpt-3-175b", 4, "query-value", 18_874_368),
        ("gpt-3-175b", 2, "attention", 18_874_368),
        ("llama-2-7b", 8, "query-value", 4_194_304),
        ("llama-3-8b", 16, "all-linear", 41_943_040),
        ("llama-2-7b", 16, "all-linear", 39_976_960),
    ],
)
def test_trained_parameters_are_those_that_papers_and_peft_print(
    model: str, rank: int, matrices: str, count: int
) -> None:
    run = one_gpu(model, lora_rank=rank, lora_matrices=matrices)
    assert trained_parameters(run) == count
    kept = kept_by_rank(run, 0)
    assert kept.trained + kept.trained_routed == count


@pytest.mark.parametrize("tp", [2, 4, 8])
@pytest.mark.parametrize("model", ["llama-3-8b", "mixtral-8x7b", "deepseek-v3"])
def test_ranks_together_hold_every_adapter_and_whole_sides_once_each(model: str, tp: int) -> None:
    shape = catalog.model(model).shape
    ep = 2 if shape.experts else 1
    more = {"ep": ep, "etp": 1} if shape.experts else {}
    run = TrainingSetup(
        shape=shape,
        parallel=layout(nodes=1, gpus_per_node=8, tp=tp, **more),
        microbatches=4,
        sequence=4096,
        lora_rank=4,
    )
    whole, held = trained_parameters(run), kept_by_rank(run, 0)
    together = tp * held.trained + ep * held.trained_routed
    assert together >= whole
    assert held.trained < whole


def test_a_quantized_llama_3_8b_is_as_large_as_its_download() -> None:
    # unsloth/llama-3-8b-bnb-4bit: 5.70 GB; the head and the table stay in 16 bits.
    kept = kept_by_rank(one_gpu("llama-3-8b", lora_rank=16, frozen_weights="nf4"), 0)
    assert kept.frozen_bytes == pytest.approx(5.70e9, rel=0.002)


def test_double_quantization_saves_what_qlora_prints() -> None:
    # Dettmers et al. 2023, section 3: 0.373 bits a parameter, 3 GB for 65B.
    once = 4 + 32 / 64
    saved = once - 8 * FROZEN["nf4"].weight_bytes
    assert saved == pytest.approx(0.373, abs=0.0005)
    assert saved * 65e9 / 8 == pytest.approx(3e9, rel=0.02)


def test_a_65b_model_is_tuned_on_48_gb_as_qlora_says() -> None:
    """780 GB with Adam, below 48 with QLoRA: rank 64 at all matrices, batch 1, 512 tokens."""
    run = one_gpu(
        "llama-1-65b",
        sequence=512,
        lora_rank=64,
        frozen_weights="nf4",
        recompute="full",
        recipe=recipe("fp32_16"),
        framework="fsdp",
    )
    found = memory(run, capacity_bytes=48 * GIB)
    assert found.fits
    state = found.ranks[0]
    # LLaMA 65B in four bits with its constants: Guanaco 65B is printed as 41 GB, adapters included.
    weights = state.bytes_of("weights")
    assert 35e9 < weights < 41e9
    full = memory(replace(run, lora_rank=None, frozen_weights="16-bit", recipe=recipe("zero16")))
    parts = full.ranks[0]
    # More than 780 GB are said of 16-bit weights and gradients with Adam in 32 bits, 12 B each.
    twelve = parts.bytes_of("weights") + parts.bytes_of("gradients") + 8 * parts.parameters
    assert twelve == pytest.approx(780e9, rel=0.01)


@pytest.mark.parametrize("row", AUTOGRAD["rows"], ids=lambda row: row["matrices"])
def test_what_a_layer_keeps_is_what_autograd_saves(row: dict[str, Any]) -> None:
    """This is any layer except the first, whose input needs no gradient; eager code keeps its
    gates."""
    sizes, tokens = AUTOGRAD["shape"], AUTOGRAD["tokens"]
    shape = ModelShape(vocab=100, sequence=tokens, **sizes)
    run = TrainingSetup(
        shape=shape,
        parallel=layout(nodes=1, gpus_per_node=1),
        microbatches=1,
        sequence=tokens,
        framework="nanotron",
        lora_rank=row["rank"],
        lora_matrices=row["matrices"],
    )
    unread = unread_tensors(run)
    kept = [t for t in layer_tensors(run) if t.name not in unread and not t.core]
    first, *others = row["elements_per_token"]
    assert sum(t.bytes for t in kept) / 2 / tokens == sum(others[0])
    assert others[0] == others[1]
    assert sum(others[0]) - sum(first) == shape.hidden


def test_frozen_weights_cost_four_flops_and_adapters_six() -> None:
    run = one_gpu("llama-3-8b", lora_rank=16)
    [share] = virtual_stage_shares(run)
    work, plain = stage_work(run, share), stage_work(replace(run, lora_rank=None), share)
    total = work.forward + work.backward_input + work.backward_weight - 3 * work.core
    tokens, adapters = run.tokens, trained_parameters(run)
    assert work.adapters == 2 * tokens * adapters
    assert total + work.spared == pytest.approx(2 * plain.weights + 6 * tokens * adapters)
    # The first layer's queries, keys and values: 0.3 % of all.
    hidden, kv = run.shape.hidden, run.shape.kv_heads * run.shape.head_dim
    thin = 3 * 16 * hidden
    assert work.spared == 2 * tokens * (hidden * hidden + 2 * hidden * kv + thin)


def test_peaks_of_torchtunes_single_gpu_recipes_are_met() -> None:
    """Llama 3.1 8B, two packed sequences of 2,048, torchtune's README: 16.2 and 7.4 GiB.

    Adapters of rank 8 in BF16; every layer is recomputed. Its loss works in chunks, which this
    model does not support, so the loss is excluded on both sides.
    """
    for frozen, printed in (("16-bit", 16.2), ("nf4", 7.4)):
        run = one_gpu(
            "llama-3-8b",
            microbatch_size=2,
            lora_rank=8,
            frozen_weights=frozen,
            recompute="full",
            recipe=recipe("bf16_8"),
            framework="fsdp",
        )
        lines = memory(run, reserve_bytes=0).ranks[0]
        logits = 2 * run.tokens * run.shape.vocab
        held = lines.bytes_of("weights") + lines.bytes_of("gradients") + lines.bytes_of("optimizer")
        held += lines.bytes_of("activations") - logits
        assert held / GIB < printed
        assert held / GIB == pytest.approx(printed, rel=0.14)


def test_unpacking_slows_a_4090_by_as_much_as_torchtune_measured() -> None:
    job: dict[str, Any] = {
        "model": "llama-3-8b",
        "accelerator": "rtx-4090",
        "sequence": 2048,
        **TORCHTUNE,
    }
    lora = training_step(**job)
    qlora = training_step(frozen_weights="nf4", **job)
    tokens = lora.setup.tokens_per_step
    measured = tokens / 2413 - tokens / 3083
    added = qlora.estimate.step_time_s - lora.estimate.step_time_s
    assert added == pytest.approx(measured, rel=0.03)
    assert qlora.estimate.compute_s - lora.estimate.compute_s < added


TORCHTUNE: dict[str, Any] = {
    "nodes": 1, "gpus_per_node": 1, "microbatches": 1, "microbatch_size": 2, "zero_stage": 0,
    "recompute": "full", "recipe": "bf16_8", "software": "torchtune", "lora_rank": 8,
}  # fmt: skip

# pytorch/torchtune@bd2a0fc7c314, README.md, "Optimization flags": one A100, two packed sequences of
# 4,096, all in BF16. Every row has what the one before has; LoRA is the eighth.
LLAMA_3B = {
    "all trained, compiled": ({"lora_rank": None, "recompute": "none"}, 8998),
    "all trained, recomputed": ({"lora_rank": None}, 7210),
    "LoRA": ({}, 8210),
    "QLoRA": ({"frozen_weights": "nf4"}, 8035),
}

# meta-llama/Llama-3.2-3B, config.json.
LLAMA_3B_CONFIG = {
    "model_type": "llama", "num_hidden_layers": 28, "hidden_size": 3072, "num_attention_heads": 24,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192, "vocab_size": 128256,
    "tie_word_embeddings": True, "max_position_embeddings": 131072, "hidden_act": "silu",
}  # fmt: skip


@pytest.mark.parametrize(("chosen", "rate"), LLAMA_3B.values(), ids=LLAMA_3B)
def test_torchtunes_steps_of_a_3b_model_take_as_long(
    tmp_path: Path, chosen: dict[str, Any], rate: float
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(LLAMA_3B_CONFIG))
    job = {**TORCHTUNE, "accelerator": "a100-sxm-80gb", "sequence": 4096, **chosen}
    found = training_step(model=str(config), **job)
    # No step of torchtune has a part in the fit; flex attention is not modeled.
    assert found.estimate.tokens_per_s_per_gpu == pytest.approx(rate, rel=0.1)


# NVIDIA-NeMo/Megatron-Bridge@067f987df03b, examples/model_verification_cards: LoRA on H100s, 2,048
# tokens packed. Adapters of experts' layers are launched one by one.
CARDS = {
    "qwen-3-30b-a3b": ({"gpus_per_node": 4, "tp": 4, "ep": 4, "microbatches": 32, "lora_rank": 8,
                        "lora_matrices": "attention", "dispatcher": "deepep",
                        "cuda_graphs": "none"}, 22.348),
    "gpt-oss-120b": ({"gpus_per_node": 8, "ep": 8, "microbatches": 16, "lora_rank": 32,
                      "dispatcher": "all-to-all", "cuda_graphs": "none"}, 11.509),
}  # fmt: skip


@pytest.mark.parametrize(("model", "chosen", "measured_s"), [(m, *v) for m, v in CARDS.items()])
def test_adapters_beside_experts_take_as_long_as_nvidias_cards_say(
    model: str, chosen: dict[str, Any], measured_s: float
) -> None:
    found = training_step(
        model=model, nodes=1, etp=1, sequence=2048, zero_stage=1, **chosen
    ).estimate
    assert found.step_time_s == pytest.approx(measured_s, rel=0.26)


@pytest.mark.parametrize("row", WORK["rows"], ids=lambda row: row["matrices"])
def test_a_layer_multiplies_and_moves_what_pytorch_does(row: dict[str, Any]) -> None:
    """PyTorch's eager code scales an output in a separate pass, forward and backward: 8 bytes."""
    shape = ModelShape(vocab=100, sequence=WORK["tokens"], **WORK["shape"])
    which, adapted = row["matrices"], row["matrices"] in ADAPTED
    run = TrainingSetup(
        shape=shape,
        parallel=layout(nodes=1, gpus_per_node=1),
        microbatches=1,
        sequence=WORK["tokens"],
        lora_rank=WORK["rank"] if adapted else None,
        lora_matrices=which if adapted else "all-linear",
    )
    rates = replace(
        training_step(model="llama-3-8b", nodes=1, gpus_per_node=8).predicted.attained,
        matmul_flops_per_s=1.0,
        memory_bytes_per_s=1.0,
        elementwise=1.0,
        accumulate_bytes=0.0,
    )
    job = step_job(run, quantized=0, per_tensor=0)
    if which == "frozen":
        job = replace(job, lora_rank=1)
    found = dense_layer(job, rates)
    plain = dense_layer(replace(job, lora_rank=0, tuned_dense=0), rates)
    assert found.matmuls_s == row["flops"]
    scaled = 0
    if adapted:
        beside = [one for one in held_matrices(run, experts=False) if adapts(run, one)]
        scaled = 8 * WORK["tokens"] * sum(one.outputs for one in beside)
    moved = float(found.memory_s - plain.memory_s) + scaled
    assert moved == pytest.approx(row["moved"], rel=0.01)


@pytest.mark.parametrize("stage", range(4))
@pytest.mark.parametrize("frozen", ["16-bit", "nf4"])
def test_time_sends_and_updates_what_memory_holds(stage: int, frozen: str) -> None:
    run = TrainingSetup(
        shape=catalog.model("mixtral-8x7b").shape,
        parallel=layout(nodes=2, gpus_per_node=8, tp=2, ep=4, etp=1),
        microbatches=4,
        sequence=4096,
        zero_stage=stage,
        lora_rank=16,
        frozen_weights=frozen,
    )
    job, kept = step_job(run, quantized=0, per_tensor=0), kept_by_rank(run, 0)
    assert trained(job) == kept.trained
    assert trained_routed(job) == kept.trained_routed
    # Every rank has all of a router and of norms, which the model of time divides.
    assert frozen_bytes(job) == pytest.approx(kept.frozen_bytes, rel=3e-3)
    assert frozen_routed_bytes(job) == pytest.approx(kept.frozen_routed_bytes, rel=1e-9)


def test_only_adapters_are_reduced_and_only_zero_3_moves_what_is_frozen() -> None:
    shape = catalog.model("llama-3-8b").shape
    run = TrainingSetup(
        shape=shape,
        parallel=layout(nodes=1, gpus_per_node=8),
        microbatches=4,
        sequence=4096,
        lora_rank=16,
        frozen_weights="nf4",
    )
    frozen = kept_by_rank(run, 0).frozen_bytes
    count = trained_parameters(run)
    for stage in range(4):
        found = data_traffic(replace(run, zero_stage=stage), 0)
        sums = {
            purpose: sum(e.calls * e.buffer_bytes for e in found if e.purpose == purpose)
            for purpose in (GRADIENTS, WEIGHTS)
        }
        assert sums[GRADIENTS] == pytest.approx(4 * count)
        expected = {0: 0, 1: 2 * count, 2: 2 * count, 3: 2 * (2 * count + frozen)}[stage]
        assert sums[WEIGHTS] == pytest.approx(expected)


def test_zero_3_divides_what_is_frozen() -> None:
    shape = catalog.model("llama-3-70b").shape
    whole, divided = (
        memory(
            TrainingSetup(
                shape=shape,
                parallel=layout(nodes=1, gpus_per_node=8),
                microbatches=4,
                sequence=4096,
                zero_stage=stage,
                lora_rank=16,
            )
        )
        .ranks[0]
        .bytes_of("weights")
        for stage in (2, 3)
    )
    assert whole == pytest.approx(8 * divided)


def test_utilisation_counts_what_is_needed() -> None:
    run, cluster = (
        one_gpu("llama-3-8b", lora_rank=16),
        Cluster(
            peak_flops_per_s=1e15,
            scale_up_bandwidth_bytes_per_s=1e11,
            network_bandwidth_bytes_per_s=1e11,
        ),
    )
    whole = step(replace(run, lora_rank=None), cluster, compute_efficiency=0.5)
    lora = step(run, cluster, compute_efficiency=0.5)
    assert 1.4 < whole.step_time_s / lora.step_time_s < 1.5
    # Attention counts twice what FlashAttention computes in both; the spared gradients are 0.3 %.
    assert lora.model_flops_utilisation == pytest.approx(whole.model_flops_utilisation, rel=0.02)


@pytest.mark.parametrize(
    ("model", "chosen", "message"),
    [
        ("llama-3-8b", {"frozen_weights": "nf4"}, "frozen_weights: expected 16-bit without"),
        ("llama-3-8b", {"lora_rank": 0}, "lora_rank: expected a whole number ≥ 1"),
        ("llama-3-8b", {"lora_rank": 5000}, "lora_rank: expected at most 4,096"),
        ("llama-3-8b", {"lora_rank": 8, "frozen_weights": "nf3"}, "unknown frozen_weights 'nf3'"),
        ("llama-3-8b", {"lora_rank": 8, "lora_matrices": "all"}, "unknown lora_matrices 'all'"),
        ("llama-3-8b", {"lora_rank": 8, "activations": "fp8"}, "activations: expected 16-bit with"),
        ("deepseek-v3", {"lora_rank": 8, "mtp_layers": 1}, "lora_rank: expected none with mtp_lay"),
        ("mamba-2-hybrid-8b", {"lora_rank": 8}, "lora_rank: expected none beside state-space mix"),
        ("deepseek-v3", {"lora_rank": 8, "lora_matrices": "query-value"}, "lora_matrices: expect"),
    ],
)
def test_adapters_that_nobody_makes_are_refused(
    model: str, chosen: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        one_gpu(model, **chosen)
