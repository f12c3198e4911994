"""Parameters of a GPU: nothing is lost or counted twice, in every small layout."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from figgen import catalog
from figgen.errors import InputError
from figgen.models.machine.layout import ParallelLayout, layout
from figgen.models.memory.rank_parameters import rank_parameters
from figgen.models.setup.stage_layers import layers_of_stages, stage_shares, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.model_shape import ExpertShape, LatentAttention, ModelShape
from figgen.models.shape.transformer import parameter_counts
from tests.models.held_lines import state_bytes
from tests.models.jobs import small

ORACLE = json.loads(
    (Path(__file__).parents[1] / "oracles/megatron_memory_and_flops.json").read_text()
)

GPT = small(
    ffn_hidden=64,
    ffn="gelu",
    norm="layernorm",
    bias=True,
    tied_embeddings=True,
    learned_positions=True,
    extra=5,
)
LLAMA = small(layers=7, heads=8, kv_heads=2, qk_norm="per-head")
MIXTURE = small(
    experts=ExpertShape(count=4, top_k=2, ffn_hidden=8, shared=1, dense_layers=2),
    latent=LatentAttention(
        query_rank=6, kv_rank=4, nope_head_dim=4, rope_head_dim=2, value_head_dim=4
    ),
)
MIXTURE_WITH_BIAS = small(
    layers=4, kv_heads=2, bias=True, experts=ExpertShape(count=4, top_k=1, ffn_hidden=8)
)
BERT = replace(GPT, final_norm=False, layers=4)
SHAPES = {
    "bert": BERT,
    "gpt": GPT,
    "llama": LLAMA,
    "mixture": MIXTURE,
    "mixture-bias": MIXTURE_WITH_BIAS,
}


def small_layouts(shape: ModelShape) -> list[ParallelLayout]:
    """Return every layout of 16 GPUs with axes of 1, 2 and 4."""
    found = []
    for tp, cp, pp, ep, etp in itertools.product((1, 2, 4), (1, 2), (1, 2, 4), (1, 2, 4), (1, 2)):
        if shape.experts is None and (ep > 1 or etp > 1):
            continue
        sizes = {"tp": tp, "cp": cp, "pp": pp, "ep": ep, "etp": etp}
        try:
            found.append(layout(nodes=2, gpus_per_node=8, **sizes))
        except InputError:
            continue
    return found


def setup(shape: ModelShape, parallel: ParallelLayout, **options: Any) -> TrainingSetup:
    given = {"microbatches": 8, "sequence": 8} | options
    return TrainingSetup(shape=shape, parallel=parallel, **given)


def arrays_of_layer(shape: ModelShape, layer: int) -> list[tuple[str, int, str]]:
    """Return name, size and splitting axis ("" for none) of every array of a layer, one by one."""
    h, heads, d = shape.hidden, shape.heads, shape.head_dim
    vectors = 2 if shape.norm == "layernorm" else 1
    found = [(f"norm{i}", h * vectors, "") for i in range(shape.norms_per_layer)]
    if shape.qk_norm == "per-head":
        found.append(("qk norm", 2 * d, ""))
    mla = shape.latent
    if mla is not None:
        found += [
            ("q down", h * mla.query_rank, ""),
            ("q norm", mla.query_rank, ""),
            ("q up", mla.query_rank * heads * (mla.nope_head_dim + mla.rope_head_dim), "tp"),
            ("kv down", h * (mla.kv_rank + mla.rope_head_dim), ""),
            ("kv norm", mla.kv_rank, ""),
            ("kv up", mla.kv_rank * heads * (mla.nope_head_dim + mla.value_head_dim), "tp"),
            ("out", heads * mla.value_head_dim * h, "tp"),
        ]
    else:
        found += [("q", h * heads * d, "tp"), ("out", heads * d * h, "tp")]
        found += [(name, h * shape.kv_heads * d, "kv") for name in ("k", "v")]
        if shape.bias:
            found += [("q bias", heads * d, "tp"), ("out bias", h, "")]
            found += [(f"{name} bias", shape.kv_heads * d, "kv") for name in ("k", "v")]
    experts = shape.experts
    if experts is None or layer < experts.dense_layers:
        return found + arrays_of_ffn(shape, "ffn", shape.ffn_hidden, "tp")
    found.append(("router", h * experts.count + (experts.count if shape.bias else 0), ""))
    for index in range(experts.shared):
        found += arrays_of_ffn(shape, f"shared{index}", experts.ffn_hidden, "tp")
    for index in range(experts.count):
        found += arrays_of_ffn(shape, f"expert{index}", experts.ffn_hidden, f"etp of {index}")
    return found


def arrays_of_ffn(
    shape: ModelShape, name: str, width: int, split: str
) -> list[tuple[str, int, str]]:
    ups = 2 if shape.ffn in ("swiglu", "geglu") else 1
    found = [(f"{name} up{i}", shape.hidden * width, split) for i in range(ups)]
    found.append((f"{name} down", shape.hidden * width, split))
    if shape.bias:
        found += [(f"{name} up{i} bias", width, split) for i in range(ups)]
        whole = split.replace("etp", "whole") if "etp" in split else ""
        found.append((f"{name} down bias", shape.hidden, whole))
    return found


def pieces(run: TrainingSetup, stage_layers: list[int], first: bool, last: bool, place: dict):
    """Return (array, index of the piece, size of the piece) for everything on one GPU."""
    shape, parallel = run.shape, run.parallel
    arrays = [
        ((layer, name), size, split)
        for layer in stage_layers
        for name, size, split in arrays_of_layer(shape, layer)
    ]
    if first:
        arrays.append((("", "embedding"), shape.vocab * shape.hidden, "tp"))
        arrays.append((("", "extra"), shape.extra, ""))
        if shape.learned_positions:
            arrays.append((("", "positions"), shape.sequence * shape.hidden, ""))
    if last:
        if shape.final_norm:
            arrays.append(
                (("", "final norm"), shape.hidden * (1 + (shape.norm == "layernorm")), "")
            )
        if not (shape.tied_embeddings and first):
            arrays.append((("", "head"), shape.vocab * shape.hidden, "tp"))
    for name, size, split in arrays:
        if split == "tp":
            yield name, place["tp"], size // parallel.tp
        elif split == "kv":
            ways = min(parallel.tp, shape.kv_heads)
            yield name, place["tp"] * ways // parallel.tp, size // ways
        elif split:
            kind, _, index = split.partition(" of ")
            per_rank = shape.experts.count // parallel.ep
            if int(index) // per_rank != place["ep"]:
                continue
            ways = parallel.etp if kind == "etp" else 1
            yield name, place["etp"] if ways > 1 else 0, size // ways
        else:
            yield name, 0, size


@pytest.mark.parametrize("name", SHAPES)
def test_ranks_together_hold_every_parameter_once_in_every_small_layout(name: str) -> None:
    shape = SHAPES[name]
    checked = 0
    for parallel in small_layouts(shape):
        run = setup(shape, parallel)
        shares = stage_shares(shape, parallel.pp)
        seen: dict[Any, int] = {}
        for pp, tp, ep, etp in itertools.product(
            *(range(size) for size in (parallel.pp, parallel.tp, parallel.ep, parallel.etp))
        ):
            share = shares[pp]
            layers = list(range(share.first_layer, share.first_layer + share.layers))
            place = {"tp": tp, "ep": ep, "etp": etp}
            mine = list(pieces(run, layers, pp == 0, pp == parallel.pp - 1, place))
            counts = [part.count for part in rank_parameters(run, pp)]
            assert {type(count) for count in counts} == {int}, "nobody holds half a parameter"
            held = sum(counts)
            assert held == sum(size for _, _, size in mine)
            seen |= {(array, index): size for array, index, size in mine}
        copies = shape.vocab * shape.hidden if shape.tied_embeddings and parallel.pp > 1 else 0
        assert sum(seen.values()) == parameter_counts(shape).total + copies
        checked += 1
    assert checked >= 17


@pytest.mark.parametrize("stages", range(1, 13))
def test_stages_hold_all_layers_in_order_and_ends_hold_no_more_than_others(stages: int) -> None:
    for layers in range(stages, 40):
        found = layers_of_stages(layers, stages)
        assert sum(found) == layers
        assert max(found) - min(found) <= 1
        assert max(found[0], found[-1]) <= min(found[1:-1], default=max(found))
        shares = stage_shares(replace(GPT, layers=layers), stages)
        covered = [n for s in shares for n in range(s.first_layer, s.first_layer + s.layers)]
        assert covered == list(range(layers))


def test_llama_3_405b_and_bloom_lose_a_layer_at_both_ends() -> None:
    # Llama 3, arXiv:2407.21783, section 3.3.2; BLOOM's log, "Rebalancing layers".
    assert layers_of_stages(126, 16) == (7, *[8] * 14, 7)
    assert layers_of_stages(70, 12) == (5, *[6] * 10, 5)


@pytest.mark.parametrize("given", [(4, 1, 2, 0), (0, 7, 0, 0), (1, 2, 2, 2)])
def test_stages_hold_the_layers_that_they_are_given(given: tuple[int, ...]) -> None:
    run = setup(LLAMA, layout(nodes=1, gpus_per_node=8, pp=4), layers_per_stage=given)
    shares = virtual_stage_shares(run)
    assert tuple(share.layers for share in shares) == given
    covered = [n for s in shares for n in range(s.first_layer, s.first_layer + s.layers)]
    assert covered == list(range(LLAMA.layers))
    held = [sum(part.count for part in rank_parameters(run, rank)) for rank in range(4)]
    assert sum(held) == parameter_counts(LLAMA).total
    empty = [rank for rank in (1, 2) if not given[rank]]
    assert [held[rank] for rank in empty] == [0] * len(empty)


def test_mixture_layers_come_after_the_dense_ones() -> None:
    shares = stage_shares(replace(MIXTURE, layers=8), 4)
    assert [share.dense_layers for share in shares] == [2, 0, 0, 0]
    assert [share.expert_layers for share in shares] == [0, 2, 2, 2]


@pytest.mark.parametrize(
    ("schedule", "chunks", "copies"),
    [("1f1b", None, 1), ("interleaved-1f1b", 3, 1), ("zbv", None, 1), ("dualpipe", None, 2)],
)
def test_every_schedule_holds_the_model_once_and_dualpipe_twice(
    schedule: str, chunks: int | None, copies: int
) -> None:
    parallel = layout(nodes=2, gpus_per_node=8, pp=2)
    run = setup(LLAMA, parallel, schedule=schedule, chunks=chunks)
    held = sum(part.count for rank in range(2) for part in rank_parameters(run, rank))
    assert held == copies * parameter_counts(LLAMA).total
    layers = Counter(
        layer
        for share in virtual_stage_shares(run)
        for layer in range(share.first_layer, share.first_layer + share.layers)
    )
    assert layers == dict.fromkeys(range(LLAMA.layers), copies)


def test_a_v_shaped_pipeline_shares_a_tied_table_where_both_its_ends_meet() -> None:
    parallel = layout(nodes=2, gpus_per_node=8, pp=2)
    totals = []
    for schedule in ("zbv", "1f1b"):
        run = setup(GPT, parallel, schedule=schedule)
        totals.append(sum(part.count for rank in range(2) for part in rank_parameters(run, rank)))
    assert totals[0] == parameter_counts(GPT).total
    assert totals[1] == totals[0] + GPT.vocab * GPT.hidden


def without_biases(name: str) -> ModelShape:
    """Return sizes without biases, learned positions and norms in attention, as Megatron's
    estimate."""
    shape = catalog.model(name).shape
    return replace(shape, bias=False, learned_positions=False, extra=0, qk_norm="none")


@pytest.mark.parametrize("case", ORACLE["memory"], ids=lambda c: f"{c['model']}-{c['nodes']}")
def test_state_of_the_first_stage_is_megatrons_own_estimate(case: dict[str, Any]) -> None:
    parallel = layout(
        nodes=case["nodes"],
        gpus_per_node=8,
        tp=case["tp"],
        pp=case["pp"],
        ep=case.get("ep", 1),
        etp=case.get("etp"),
    )
    shape = without_biases(case["model"])
    run = setup(shape, parallel, sequence=shape.sequence, zero_stage=case["zero"])
    # Megatron divides the final norm over the stages and does not pad the table in this estimate.
    assert sum(state_bytes(run, 0)) == pytest.approx(case["state_bytes"], rel=1e-5)
    if case["pp"] == case["tp"] == 1:
        assert sum(state_bytes(run, 0)) == case["state_bytes"]


def test_tables_are_padded_and_few_key_value_heads_are_shared() -> None:
    eight = layout(nodes=1, gpus_per_node=8, tp=8)
    odd = replace(LLAMA, vocab=25)
    parts = {part.part: part.count for part in rank_parameters(setup(odd, eight), 0)}
    assert parts["embedding"] == parts["head"] == 4 * odd.hidden
    # Each of eight ranks has one query head and one of the two key-value heads, four times over.
    assert parts["attention"] == odd.layers * (2 * 16 * 4 + 2 * 16 * 4)
