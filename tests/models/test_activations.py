"""Activations on a GPU, compared with Korthikanti's figures, Megatron's estimate and a
simulation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from figgen import catalog
from figgen.errors import InputError
from figgen.formulas.activation_memory import (
    full_recompute_layer_activation_bytes,
    gated_layer_activation_bytes,
    layer_activation_bytes,
    selective_recompute_layer_activation_bytes,
    sequence_parallel_layer_activation_bytes,
    tensor_parallel_layer_activation_bytes,
)
from figgen.models.machine.layout import layout
from figgen.models.memory.activations import (
    layer_bytes,
    layer_gradient_bytes,
    logit_bytes,
    peak_activation_bytes,
    recomputed_bytes,
    stage_bytes,
)
from figgen.models.memory.layer_tensors import layer_tensors
from figgen.models.pipeline.simulate import Durations, simulate
from figgen.models.setup.stage_layers import virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.model_shape import (
    ExpertShape,
    LatentAttention,
    ModelShape,
    check_gpt_layer,
)
from tests.models.jobs import job

ORACLES = Path(__file__).parents[1] / "oracles"
KORTHIKANTI = json.loads((ORACLES / "published_tables.json").read_text())["korthikanti_2205.05198"]
MEGATRON = json.loads((ORACLES / "megatron_memory_and_flops.json").read_text())["memory"]
GIB = 2**30


def gpt(layers: int, hidden: int, heads: int, vocab: int = 51200) -> ModelShape:
    return ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        ffn_hidden=4 * hidden,
        vocab=vocab,
        sequence=2048,
        ffn="gelu",
        norm="layernorm",
        tied_embeddings=True,
    )


def korthikanti(model: str, **options: Any) -> TrainingSetup:
    c = KORTHIKANTI["configs"][model]
    given = {"dropout": True, "flash_attention": False, "sequence_parallel": False} | options
    if c["interleave_m"] > 1:
        given |= {"schedule": "interleaved-1f1b", "chunks": c["interleave_m"]}
    return job(
        gpt(c["L"], c["h"], c["a"], KORTHIKANTI["vocab"]),
        nodes=c["gpus"] // 8,
        tp=c["t"],
        pp=c["p"],
        microbatches=c["B"] // c["b"],
        microbatch_size=c["b"],
        sequence=KORTHIKANTI["seq"],
        **given,
    )


def layers_gib(run: TrainingSetup) -> float:
    """Return the paper's first stage: layers only, without tables, loss or recomputation."""
    layers = run.shape.layers / run.parallel.pp
    return run.in_flight[0] * layers * layer_bytes(run) / GIB


@pytest.mark.parametrize("model", KORTHIKANTI["configs"])
def test_first_stage_holds_what_korthikantis_figure_1_shows(model: str) -> None:
    published = KORTHIKANTI["fig1_GiB"]
    none = korthikanti(model)
    both = korthikanti(model, sequence_parallel=True, recompute="selective")
    assert layers_gib(none) == pytest.approx(published["act_none"][model])
    assert layers_gib(both) == pytest.approx(published["act_sp_selective"][model])
    for run in (none, both):
        # Embedding, loss and their masks add little, and never take away.
        assert 1 <= peak_activation_bytes(run)[0] / GIB / layers_gib(run) < 1.06


@pytest.mark.parametrize("model", KORTHIKANTI["configs"])
def test_shares_of_a_layer_are_those_of_korthikantis_figure_7(model: str) -> None:
    column = list(KORTHIKANTI["configs"]).index(model)
    published = {key: row[column] for key, row in KORTHIKANTI["fig7_pct_of_none"].items()}
    none = layer_bytes(korthikanti(model))
    for key, options in {
        "seq": {"sequence_parallel": True},
        "sel": {"recompute": "selective"},
        "seqsel": {"sequence_parallel": True, "recompute": "selective"},
        "full": {"recompute": "full"},
    }.items():
        share = 100 * layer_bytes(korthikanti(model, **options)) / none
        # Percentages read off a printed figure.
        assert share == pytest.approx(published[key], abs=0.15)


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_a_gpt_layer_keeps_what_the_closed_forms_say(tp: int) -> None:
    shape, parallel = gpt(8, 1024, 16), layout(nodes=1, gpus_per_node=8, tp=tp)

    def kept(**options: Any) -> float:
        given = {"dropout": True, "flash_attention": False} | options
        return layer_bytes(
            TrainingSetup(
                shape=shape,
                parallel=parallel,
                microbatches=4,
                sequence=512,
                microbatch_size=3,
                **given,
            )
        )

    block = (512, 3, 1024)
    assert kept() == sequence_parallel_layer_activation_bytes(*block, 16, tp)
    without = tensor_parallel_layer_activation_bytes(*block, 16, tp)
    assert kept(sequence_parallel=False) == without
    if tp == 1:
        assert kept() == layer_activation_bytes(*block, 16)
    assert kept(recompute="selective") == selective_recompute_layer_activation_bytes(*block, tp)
    assert kept(flash_attention=True) == kept(recompute="selective")
    whole = full_recompute_layer_activation_bytes(*block)
    assert kept(recompute="full", sequence_parallel=False) == whole
    assert kept(recompute="full") == whole / tp


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_what_is_kept_and_what_is_computed_anew_is_the_whole_layer(recompute: str) -> None:
    parallel = layout(nodes=1, gpus_per_node=8, tp=2)
    run = TrainingSetup(
        shape=gpt(8, 1024, 16),
        parallel=parallel,
        microbatches=4,
        sequence=512,
        recompute=recompute,
        flash_attention=False,
        dropout=True,
    )
    whole = sum(tensor.bytes for tensor in layer_tensors(run))
    assert layer_bytes(run) + recomputed_bytes(run, virtual_stage_shares(run)[0]) == whole


def test_gradients_at_once_are_those_of_the_wider_block_or_of_stored_scores() -> None:
    """Scores with dropout need 5·a·s² bytes (Korthikanti); a GELU block needs 2·4h, twice."""
    run = job(
        gpt(8, 1024, 16),
        tp=2,
        microbatches=4,
        sequence=512,
        microbatch_size=3,
        flash_attention=False,
        dropout=True,
    )
    share = virtual_stage_shares(run)[0]
    assert layer_gradient_bytes(run, share) == 5 * 16 * 512 * 512 * 3 / 2
    block = 2 * (2 * 4 * 1024) * 512 * 3 / 2
    assert layer_gradient_bytes(replace(run, flash_attention=True), share) == block
    empty = replace(share, layers=0)
    assert layer_gradient_bytes(run, empty) == recomputed_bytes(run, empty) == 0
    assert recomputed_bytes(replace(run, recompute="selective"), empty) == 0


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_gpt_3_stages_hold_their_microbatches_in_flight(schedule: str) -> None:
    run = job(
        "gpt-3-175b",
        nodes=8,
        tp=8,
        pp=8,
        microbatches=32,
        sequence=2048,
        schedule=schedule,
        recompute="selective",
        dropout=True,
    )
    peaks = peak_activation_bytes(run)
    stage = 1_283_457_024  # 12 layers of 34·s·b·h/t bytes
    held = [32] * 8 if schedule == "gpipe" else [8, 7, 6, 5, 4, 3, 2, 1]
    assert run.in_flight == tuple(held)
    assert [peak / stage for peak in peaks[1:-1]] == held[1:-1]
    mask_and_ids = 2048 * 12288 / 8 + 8 * 2048
    assert peaks[0] == held[0] * (stage + mask_and_ids)
    norm_and_head_inputs = 2 * 2048 * 12288 / 8 * 2
    logits = 4 * 2048 * 6283  # 50257 tokens padded to eight ranks
    assert logit_bytes(run) == logits
    assert peaks[-1] == held[-1] * (stage + norm_and_head_inputs + logits)


GPT_CASES = [case for case in MEGATRON if case["model"] in ("gpt-3-175b", "mt-nlg-530b")]


@pytest.mark.parametrize("case", GPT_CASES, ids=lambda c: f"{c['model']}-{c['nodes']}")
def test_activations_of_the_first_stage_are_megatrons_own_estimate(case: dict[str, Any]) -> None:
    # Its estimate is Korthikanti's, for 4h GELU blocks; it leaves out a gate and extra experts.
    parallel = layout(nodes=case["nodes"], gpus_per_node=8, tp=case["tp"], pp=case["pp"])
    chunked = {"schedule": "interleaved-1f1b", "chunks": case["chunks"]} if "chunks" in case else {}
    run = TrainingSetup(
        shape=catalog.model(case["model"]).shape,
        parallel=parallel,
        microbatches=case["microbatches"],
        sequence=2048,
        recompute="selective",
        dropout=True,
        **chunked,
    )
    # It divides token ids by TP; with chunks it holds the embedding as long as a mean chunk.
    tolerance = 2e-3 if chunked else 3e-5
    found = peak_activation_bytes(run)[0]
    assert found == pytest.approx(case["activation_bytes"], rel=tolerance)


def brute_force_peak(run: TrainingSetup, rank: int) -> float:
    """Return bytes held at every moment of a simulated step: forwards begun, backwards not yet
    ended."""
    held = [stage_bytes(run, share) for share in virtual_stage_shares(run)]
    lane = simulate(
        run.order, Durations(forward=1.0, backward_input=1.0, backward_weight=1.0)
    ).placed[rank]
    begun = {(p.action.stage, p.action.microbatch): p.start for p in lane if p.action.kind == "F"}
    done = {(p.action.stage, p.action.microbatch): p.end for p in lane if p.action.kind in "BW"}
    return max(
        sum(held[slot[0]] for slot, start in begun.items() if start <= now < done[slot])
        for now in begun.values()
    )


@pytest.mark.parametrize(
    ("schedule", "chunks"),
    [
        ("gpipe", None),
        ("1f1b", None),
        ("interleaved-1f1b", 2),
        ("zb1p", None),
        ("zbv", None),
        ("v-half", None),
        ("looped-bfs", 2),
    ],
)
def test_peak_is_the_most_held_at_any_moment_of_the_simulated_step(
    schedule: str, chunks: int | None
) -> None:
    # Ten layers on four stages of uneven size, a large head: every stage weighs something else.
    run = job(
        replace(gpt(10, 64, 4, 512), sequence=16),
        gpus_per_node=4,
        pp=4,
        microbatches=8,
        sequence=16,
        schedule=schedule,
        chunks=chunks,
    )
    for rank, peak in enumerate(peak_activation_bytes(run)):
        assert peak == pytest.approx(brute_force_peak(run, rank))


def test_grouped_queries_gates_and_latents_change_what_a_layer_keeps() -> None:
    one = layout(nodes=1, gpus_per_node=1)
    llama = TrainingSetup(
        shape=catalog.model("llama-3-8b").shape, parallel=one, microbatches=1, sequence=8192
    )
    sizes = {tensor.name: tensor.bytes / 8192 for tensor in layer_tensors(llama)}
    # Bytes per token: 32 query heads and 8 key-value heads of 128; gate, way up and product.
    assert (sizes["queries"], sizes["keys"], sizes["values"]) == (8192, 2048, 2048)
    names = ("ffn activation inputs", "ffn inputs of the gate", "ffn products")
    assert [sizes[name] for name in names] == [14336 * 2] * 3
    assert sizes["norm inputs"] == 2 * 4096 * 2
    assert "dropout masks" not in sizes

    deepseek = TrainingSetup(
        shape=catalog.model("deepseek-v3").shape,
        parallel=one,
        microbatches=1,
        sequence=4096,
        framework="megatron-2024",
    )
    dense = {tensor.name: tensor.bytes / 4096 for tensor in layer_tensors(deepseek)}
    mixture = {tensor.name: tensor.bytes / 4096 for tensor in layer_tensors(deepseek, experts=True)}
    assert dense["latents and rotary keys"] == 2 * (1536 + 512 + 64)
    assert dense["normed latents"] == 2 * (1536 + 512)
    assert (dense["keys"], dense["values"]) == (128 * 192 * 2, 128 * 128 * 2)
    assert mixture["routed inputs"] == mixture["routed outputs"] == 8 * 7168 * 2
    assert mixture["router logits"] == 256 * 4
    assert mixture["routed activation inputs"] == 2 * mixture["routed products"] == 8 * 8192
    assert mixture["shared activation inputs"] == 2 * mixture["shared products"] == 8192


def test_recomputed_experts_make_their_outputs_anew_unless_gates_multiply_before() -> None:
    run = job("mixtral-8x7b", microbatches=1, sequence=4096, framework="megatron-2024")
    share = virtual_stage_shares(run)[0]
    made = {t.name: t.bytes for t in layer_tensors(run, experts=True) if "moe" in t.modules}
    made_again = recomputed_bytes(replace(run, recompute="moe"), share)
    assert made_again == sum(made.values())
    early = recomputed_bytes(replace(run, recompute="moe,moe_gate"), share)
    assert made_again - early == made["routed outputs"] == 2 * 4096 * 4096 * 2


def test_blocks_of_recomputed_layers_take_the_dense_ones_first() -> None:
    """DeepSeek-V3 begins with three dense layers: of the first stage's eight, five keep tensors."""
    run = job("deepseek-v3", pp=8, microbatches=8, sequence=4096)
    share = virtual_stage_shares(run)[1]
    mixed = replace(share, first_layer=0, layers=8, expert_layers=5)
    kinds = [layer_bytes(run, experts=experts) for experts in (False, True)]
    inputs = 4096 * 7168 * 2
    for blocks, dense, experts in ((0, 3, 5), (2, 1, 5), (4, 0, 4), (9, 0, 0)):
        again = replace(run, recompute=f"block:{blocks}" if blocks else "none")
        kept = min(blocks, 8) * inputs + dense * kinds[0] + experts * kinds[1]
        assert stage_bytes(again, mixed) == pytest.approx(kept, rel=1e-12)


def test_norms_of_queries_and_keys_keep_both() -> None:
    run = job("qwen-3-8b", tp=2, microbatches=1, sequence=4096)
    sizes = {tensor.name: tensor.bytes for tensor in layer_tensors(run)}
    assert sizes["query and key norm inputs"] == 4096 * (32 + 8) * 128 / 2 * 2


def test_experts_divided_over_ranks_work_on_the_tokens_of_all_of_them() -> None:
    shape = catalog.model("mixtral-8x7b").shape

    def tensors(etp: int) -> dict[str, float]:
        parallel = layout(nodes=1, gpus_per_node=8, tp=4, etp=etp)
        run = TrainingSetup(shape=shape, parallel=parallel, microbatches=1, sequence=4096)
        return {tensor.name: tensor.bytes for tensor in layer_tensors(run, experts=True)}

    assert tensors(4)["routed inputs"] == 4 * tensors(1)["routed inputs"]
    assert tensors(4)["routed products"] == tensors(1)["routed products"]
    assert tensors(1)["routed products"] == 2 * 14336 * 2 * 4096 / 4


@pytest.mark.parametrize("name", ["llama-3-8b", "llama-3-70b", "llama-3-405b"])
@pytest.mark.parametrize("tp", [1, 8])
def test_a_gated_layer_keeps_what_its_closed_form_says(name: str, tp: int) -> None:
    """34·s·b·h/T is for GPT's layer with dropout;

    Llama 3.1 405B's keeps 533 MB for 8,192 tokens.
    """
    shape = catalog.model(name).shape
    setup = job(shape, tp=tp, microbatches=1, sequence=8192)
    kept = sum(t.bytes for t in layer_tensors(setup) if t.name != "attention probabilities")
    kv_width = shape.kv_heads * shape.head_dim
    closed = gated_layer_activation_bytes(8192, 1, shape.hidden, kv_width, shape.ffn_hidden, tp)
    assert closed == kept
    if (name, tp) == ("llama-3-405b", 8):
        assert round(closed / 1e6) == 533


@pytest.mark.parametrize(
    "other",
    [
        {"kv_heads": 4},
        {"ffn": "swiglu"},
        {"ffn_hidden": 3072},
        {"experts": ExpertShape(count=8, top_k=2, ffn_hidden=1024)},
        {
            "latent": LatentAttention(
                query_rank=64, kv_rank=128, nope_head_dim=64, rope_head_dim=32, value_head_dim=64
            )
        },
    ],
    ids=lambda other: next(iter(other)),
)
def test_34_bytes_are_refused_for_one_difference_from_gpts_layer(other: dict) -> None:
    check_gpt_layer(gpt(8, 1024, 16))
    with pytest.raises(InputError, match="layers of GPT's kind"):
        check_gpt_layer(replace(gpt(8, 1024, 16), **other))
