"""What recomputation of modules or layers drops and costs, compared with published tables and by
hand."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from figgen import catalog
from figgen.errors import InputError
from figgen.models.machine.layout import layout
from figgen.models.memory.activations import (
    layer_bytes,
    layer_input_bytes,
    peak_activation_bytes,
    recomputed_bytes,
    stage_bytes,
)
from figgen.models.memory.layer_tensors import layer_tensors
from figgen.models.setup.stage_layers import StageShare, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.activation_formats import activation_format
from figgen.models.shape.model_shape import ExpertShape, LatentAttention, ModelShape
from figgen.models.shape.recipes import recipe
from figgen.models.shape.recomputation import MODULES, SECOND, recomputation
from figgen.models.step.stage_work import layer_core_flops, stage_work
from tests.models.held_lines import state_bytes
from tests.models.jobs import job, sized

PUBLISHED = json.loads(
    (Path(__file__).parents[1] / "oracles/deepseek_v3_memory.json").read_text(encoding="utf-8")
)
GIB = 2**30
RANK = PUBLISHED["pipeline_rank"]


def megatron(**options: Any) -> TrainingSetup:
    """Return the published run; the third rank has four chunks of four MoE layers, as all have
    here."""
    shape = catalog.model("deepseek-v3").shape
    assert shape.experts is not None
    return job(
        replace(shape, layers=64, experts=replace(shape.experts, dense_layers=0)),
        nodes=64,
        gpus_per_node=4,
        pp=4,
        ep=64,
        etp=1,
        microbatches=32,
        sequence=4096,
        schedule="interleaved-1f1b",
        chunks=4,
        framework="megatron-2024",
        **options,
    )


def activations_gib(**options: Any) -> float:
    return peak_activation_bytes(megatron(**options))[RANK] / GIB


def test_deepseek_v3_needs_what_megatron_core_prints() -> None:
    weights, gradients, optimizer = (part / GIB for part in state_bytes(megatron(), RANK))
    # Megatron keeps no scratch of its own in these; our sums are those of the tensors alone.
    assert weights + gradients == pytest.approx(PUBLISHED["weights_and_gradients"], rel=0.006)
    assert optimizer == pytest.approx(PUBLISHED["optimizer"], rel=0.003)
    assert activations_gib() == pytest.approx(PUBLISHED["activations"], rel=0.004)
    moments = optimizer - state_bytes(megatron(recipe=recipe("mcore14")), RANK)[2] / GIB
    low, high = PUBLISHED["saved_by_bf16_moments"]
    assert low < moments < high


@pytest.mark.parametrize(
    ("module", "format_", "tolerance"),
    [
        ("moe_gate", "16-bit", 0.002),  # one tensor, printed to three digits
        ("mla_up_proj", "16-bit", 0.015),  # the checkpoint drops a little more than its outputs
        ("moe_act", "fp8", 0.035),  # 3.8 has two digits, and our 8 bits have scales
        ("layernorm", "fp8", 0.035),
    ],
)
def test_modules_save_what_megatron_core_prints(
    module: str, format_: str, tolerance: float
) -> None:
    before = activations_gib(activations=format_)
    saved = before - activations_gib(activations=format_, recompute=module)
    assert saved == pytest.approx(PUBLISHED["saved"][module], rel=tolerance)


def test_eight_bits_save_about_16_gib() -> None:
    saved = activations_gib() - activations_gib(activations="fp8")
    assert saved == pytest.approx(PUBLISHED["saved_by_fp8"], abs=0.6)


MIXTURE = sized(
    9,
    64,
    4,
    4,
    16,
    96,
    512,
    32,
    experts=ExpertShape(count=8, top_k=2, ffn_hidden=32, shared=1, dense_layers=4),
    latent=LatentAttention(
        query_rank=24, kv_rank=16, nope_head_dim=16, rope_head_dim=8, value_head_dim=16
    ),
)
DENSE = sized(6, 64, 4, 2, 16, 96, 512, 32, ffn="gelu", tied_embeddings=True)


def small(shape: ModelShape, **options: Any) -> TrainingSetup:
    sizes: dict[str, Any] = {"tp": 2, "pp": 2}
    if shape.experts:
        sizes |= {"ep": 2, "etp": 1}
    parallel = layout(nodes=1, gpus_per_node=8, **sizes)
    usual: dict[str, Any] = {"dropout": True, "framework": "megatron-2024"}
    return TrainingSetup(
        shape=shape, parallel=parallel, microbatches=4, sequence=32, **usual | options
    )


def subsets() -> Iterator[str]:
    names = [name for name in MODULES if name != SECOND]
    for count in range(1, len(names) + 1):
        yield from map(",".join, itertools.combinations(names, count))
    yield from (SECOND, *(f"{SECOND},{name}" for name in names))


@pytest.mark.parametrize("shape", [DENSE, MIXTURE], ids=["dense", "mixture"])
@pytest.mark.parametrize("flash", [True, False])
def test_any_modules_leave_what_they_do_not_drop(shape: ModelShape, flash: bool) -> None:
    everything = small(shape, flash_attention=flash)
    share = virtual_stage_shares(everything)[0]
    assert share.expert_layers or not shape.experts
    for modules in subsets():
        run = small(shape, flash_attention=flash, recompute=modules)
        made_anew = []
        for experts in (False, True) if shape.experts else (False,):
            kept = [t for t in layer_tensors(run, experts=experts) if not (flash and t.core)]
            gone = [t for t in kept if set(t.modules) & set(modules.split(","))]
            left = layer_bytes(everything, experts=experts) - sum(t.bytes for t in gone)
            assert layer_bytes(run, experts=experts) == left
            # Nothing reads what experts return once gates multiply before it.
            read = [t for t in gone if not ("moe_gate" in t.modules and "moe_gate" in modules)]
            made_anew.append(sum(t.bytes for t in read))
        assert recomputed_bytes(run, share) == max(made_anew)


def layer_by_layer(run: TrainingSetup, share: StageShare, kept_every: int, first: int) -> float:
    """Return a stage's bytes if its first `first` layers keep one input per `kept_every` layers."""
    found = 0.0
    for layer in range(share.layers):
        if layer >= first:
            plain = replace(run, recompute="none")
            found += layer_bytes(plain, experts=layer >= share.dense_layers)
        elif layer % kept_every == 0:
            found += layer_input_bytes(run)
    return found


@pytest.mark.parametrize("number", range(1, 7))
def test_uniform_and_block_keep_the_inputs_that_megatrons_loop_keeps(number: int) -> None:
    for shape in (DENSE, MIXTURE):
        for share in virtual_stage_shares(small(shape)):
            inner = replace(share, embedding=False, head=False)
            uniform = small(shape, recompute=f"uniform:{number}")
            assert stage_bytes(uniform, inner) == layer_by_layer(uniform, inner, number, 99)
            block = small(shape, recompute=f"block:{number}")
            assert stage_bytes(block, inner) == layer_by_layer(block, inner, 1, number)
            # A run of layers comes back whole in backward; one layer at a time in a block.
            plain = small(shape)
            sizes = [layer_bytes(plain, experts=n >= share.dense_layers) for n in range(9)]
            sizes = sizes[: share.layers]
            runs = [sum(sizes[n : n + number]) for n in range(0, share.layers, number)]
            back = layer_input_bytes(plain)
            assert recomputed_bytes(uniform, share) == max(runs) - back
            assert recomputed_bytes(block, share) == max(sizes[:number]) - back


def matrices(shape: ModelShape, experts: bool) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Return the weights that a token uses in one layer, by the module whose recomputation repeats
    them."""
    mla, mixture, h = shape.latent, shape.experts, shape.hidden
    if mla is None:
        half = h * (shape.heads + shape.kv_heads) * shape.head_dim
        yield from ((half, ()), (half, (SECOND,)))  # queries and values; keys and outputs
    else:
        yield h * (24 + 16 + 8) + shape.heads * 16 * h, ()
        yield 24 * 4 * (16 + 8) + 16 * 4 * (16 + 16), ("mla_up_proj",)
    if not experts or mixture is None:
        yield 2 * h * shape.ffn_hidden, ("mlp",)
        if shape.ffn == "swiglu":
            yield h * shape.ffn_hidden, ("mlp", SECOND)
        return
    yield h * mixture.count, ("moe",)
    yield mixture.top_k * 3 * h * mixture.ffn_hidden, ("moe",)
    yield mixture.shared * 3 * h * mixture.ffn_hidden, ("moe", "shared_experts")


@pytest.mark.parametrize("shape", [DENSE, MIXTURE], ids=["dense", "mixture"])
@pytest.mark.parametrize("flash", [True, False])
def test_products_again_are_those_of_the_modules_matrix_by_matrix(
    shape: ModelShape, flash: bool
) -> None:
    for text in [*subsets(), "none", "full", "uniform:2", "block:1", "block:2", "block:3"]:
        run = small(shape, recompute=text, flash_attention=flash)
        again = recomputation(text)
        for share in virtual_stage_shares(run):
            flops = 0.0
            for layer in range(share.layers):
                whole = layer < again.whole_layers(share.layers)
                for weights, modules in matrices(shape, layer >= share.dense_layers):
                    if whole or again.modules & set(modules):
                        flops += 2 * weights * run.tokens / 2
                if whole or ("core_attn" in again.modules and not flash):
                    flops += layer_core_flops(run)
            assert stage_work(run, share).recomputed == pytest.approx(flops, rel=1e-12)


LINEAR = {
    "attention input", "normed latents", "ffn input", "ffn products", "routed inputs",
    "routed products", "shared products",
}  # fmt: skip
GATED = {"routed activation inputs", "shared activation inputs"}


@pytest.mark.parametrize(
    ("name", "changed"),
    [("16-bit", set()), ("fp8", LINEAR), ("fp8-deepseek", LINEAR | GATED | {"attention output"})],
)
def test_formats_halve_only_what_the_sources_list(name: str, changed: set[str]) -> None:
    found = set()
    for experts in (False, True):
        plain = {t.name: t.bytes for t in layer_tensors(small(MIXTURE), experts=experts)}
        run = small(MIXTURE, activations=name)
        for tensor in layer_tensors(run, experts=experts):
            if tensor.name not in plain:
                # What the router reads in 16 bits, products of shared experts read in 8.
                assert tensor.name == "shared expert input"
                assert tensor.bytes == plain["router input"] * 33 / 64
                continue
            ratio = tensor.bytes / plain[tensor.name]
            if ratio != 1:
                found.add(tensor.name)
                # Both down-projections of latent attention keep a copy of their input.
                expected = {"attention output": 49 / 64, "attention input": 33 / 32}
                assert ratio == expected.get(tensor.name, 33 / 64)
    assert found == changed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("some", "unknown module to recompute 'some'"),
        ("", "unknown module to recompute ''"),
        ("layernorm,", "unknown module to recompute ''"),
        ("moe_att", "did you mean moe_act"),
        ("none,moe", "unknown module to recompute 'none'"),
        ("block:0", "recompute: expected uniform:N or block:N"),
        ("uniform:", "recompute: expected uniform:N or block:N"),
        ("layer:2", "recompute: expected uniform:N or block:N"),
        ("block:12345", "recompute: expected uniform:N or block:N"),
    ],
)
def test_what_nobody_recomputes_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recomputation(text)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InputError, match="unknown format of activations 'fp9'"):
        activation_format("fp9")
