"""Parameter counts and FLOPs per token, compared with checkpoints, papers and a model built up."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest

from figgen.errors import InputError
from figgen.models.shape.model_shape import ExpertShape, LatentAttention, ModelShape
from figgen.models.shape.transformer import (
    flops_per_token,
    matmul_parameters,
    mixer_core_flops,
    mixer_parameters,
    parameter_counts,
    part_weights,
)
from tests.models.jobs import sized

TABLES = json.loads((Path(__file__).parents[1] / "oracles/published_tables.json").read_text())

LLAMA_8B = sized(32, 4096, 32, 8, 128, 14336, 128256, 8192)
LLAMA_70B = sized(80, 8192, 64, 8, 128, 28672, 128256, 8192)
LLAMA_405B = sized(126, 16384, 128, 8, 128, 53248, 128256, 8192)
OLMO_7B = sized(32, 4096, 32, 32, 128, 11008, 100352, 4096, qk_norm="full-width")
OLMO_13B = sized(40, 5120, 40, 40, 128, 13824, 100352, 4096, qk_norm="full-width")
MIXTRAL = sized(
    32,
    4096,
    32,
    8,
    128,
    14336,
    32000,
    32768,
    experts=ExpertShape(count=8, top_k=2, ffn_hidden=14336),
)
DEEPSEEK_V3 = sized(
    61,
    7168,
    128,
    128,
    128,
    18432,
    129280,
    4096,
    experts=ExpertShape(count=256, top_k=8, ffn_hidden=2048, shared=1, dense_layers=3),
    latent=LatentAttention(
        query_rank=1536, kv_rank=512, nope_head_dim=128, rope_head_dim=64, value_head_dim=128
    ),
)


def gpt(layers: int, hidden: int, heads: int, vocab: int, sequence: int) -> ModelShape:
    return ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        ffn_hidden=4 * hidden,
        vocab=vocab,
        sequence=sequence,
        ffn="gelu",
        norm="layernorm",
        bias=True,
        tied_embeddings=True,
        learned_positions=True,
    )


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("llama-3-8b", LLAMA_8B),
        ("llama-3-70b", LLAMA_70B),
        ("llama-3-405b", LLAMA_405B),
        ("olmo-2-7b", OLMO_7B),
        ("olmo-2-13b", OLMO_13B),
    ],
)
def test_counts_equal_the_released_checkpoint_to_the_last_parameter(
    name: str, shape: ModelShape
) -> None:
    assert parameter_counts(shape).total == TABLES["checkpoints"]["totals"][name]


@pytest.mark.parametrize("row", TABLES["megatron_2104.04473_table1"]["rows"])
def test_gpt_counts_equal_the_closed_form_of_narayanan(row: list[float]) -> None:
    _, heads, hidden, layers = (int(cell) for cell in row[:4])
    vocab, sequence = 51200, 2048
    closed_form = 12 * layers * hidden**2 + 13 * layers * hidden + (vocab + sequence) * hidden
    final_norm = 2 * hidden
    shape = gpt(layers, hidden, heads, vocab, sequence)
    assert parameter_counts(shape).total == closed_form + final_norm


@pytest.mark.parametrize("row", TABLES["megatron_2104.04473_table1"]["rows"][3:])
def test_gpt_counts_round_to_the_published_billions(row: list[float]) -> None:
    published, heads, hidden, layers = row[:4]
    total = parameter_counts(gpt(int(layers), int(hidden), int(heads), 51200, 2048)).total
    assert total / 1e9 == pytest.approx(published, abs=0.06)


def test_mixtral_has_46_7_billion_parameters_and_12_9_active() -> None:
    counts = parameter_counts(MIXTRAL)
    assert round(counts.total / 1e9, 1) == 46.7
    assert round(counts.active / 1e9, 1) == 12.9


def test_mixtral_experts_have_45_097_156_608_weights() -> None:
    assert parameter_counts(MIXTRAL).routed_experts == 45_097_156_608


def test_deepseek_v3_has_671_billion_and_37_active_without_its_embedding_table() -> None:
    counts = parameter_counts(DEEPSEEK_V3)
    assert round(counts.total / 1e9) == 671
    assert round((counts.active - counts.embedding) / 1e9) == 37


def matrices(shape: ModelShape) -> list[tuple[int, ...]]:
    """Return every weight array of a small model, written out one by one."""
    found: list[tuple[int, ...]] = [(shape.vocab, shape.hidden)]
    if not shape.tied_embeddings:
        found.append((shape.hidden, shape.vocab))
    if shape.learned_positions:
        found.append((shape.sequence, shape.hidden))
    norm = [(shape.hidden,)] * {"layernorm": 2, "layernorm-no-bias": 1, "rmsnorm": 1}[shape.norm]
    gated = shape.ffn in ("swiglu", "geglu")

    def linear(into: int, out: int) -> list[tuple[int, ...]]:
        return [(into, out), (out,)] if shape.bias else [(into, out)]

    def feed_forward(width: int) -> list[tuple[int, ...]]:
        up = linear(shape.hidden, width) * (2 if gated else 1)
        return up + linear(width, shape.hidden)

    for layer in range(shape.layers):
        found += norm * shape.norms_per_layer
        query, key = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        found += linear(shape.hidden, query) + linear(shape.hidden, key) * 2
        found += linear(query, shape.hidden)
        if shape.qk_norm == "per-head":
            found += [(shape.head_dim,)] * 2
        elif shape.qk_norm == "full-width":
            found += [(query,), (key,)]
        experts = shape.experts
        if experts is None or layer < experts.dense_layers:
            found += feed_forward(shape.ffn_hidden)
            continue
        found += linear(shape.hidden, experts.count)
        for _ in range(experts.count + experts.shared):
            found += feed_forward(experts.ffn_hidden)
    return found + (norm if shape.final_norm else [])


SMALL = ModelShape(
    layers=3, hidden=8, heads=4, kv_heads=2, head_dim=2, ffn_hidden=12, vocab=11, sequence=5
)
EXPERTS = (
    None,
    ExpertShape(count=4, top_k=2, ffn_hidden=6),
    ExpertShape(count=4, top_k=1, ffn_hidden=6, shared=2, dense_layers=1),
)


@pytest.mark.parametrize("ffn", ["gelu", "swiglu"])
@pytest.mark.parametrize("norm", ["layernorm", "layernorm-no-bias", "rmsnorm"])
@pytest.mark.parametrize("experts", EXPERTS)
def test_counts_equal_a_model_written_out_matrix_by_matrix(
    ffn: str, norm: str, experts: ExpertShape | None
) -> None:
    for bias, tied, learned, final, qk_norm in itertools.product(
        (False, True),
        (False, True),
        (False, True),
        (False, True),
        ("none", "per-head", "full-width"),
    ):
        shape = replace(
            SMALL,
            ffn=ffn,
            norm=norm,
            experts=experts,
            bias=bias,
            tied_embeddings=tied,
            learned_positions=learned,
            final_norm=final,
            qk_norm=qk_norm,
            norms_per_layer=2,
        )
        assert parameter_counts(shape).total == sum(prod(array) for array in matrices(shape))


def test_a_dense_model_has_neither_experts_nor_latents_nor_mixers() -> None:
    parts = part_weights(LLAMA_8B)
    assert parts["routed"] == parts["shared"] == parts["up_projections"] == parts["mixers"] == 0
    assert mixer_parameters(LLAMA_8B) == mixer_core_flops(LLAMA_8B) == 0
    assert (parts["attention"] + parts["dense"]) * 32 == 6_979_321_856  # of 8,030,261,248


def test_a_dense_model_is_wholly_active() -> None:
    counts = parameter_counts(LLAMA_8B)
    assert counts.active == counts.total
    assert counts.routed_experts == counts.router == 0


def test_visiting_every_expert_makes_the_whole_model_active() -> None:
    shape = replace(MIXTRAL, experts=ExpertShape(count=8, top_k=8, ffn_hidden=14336))
    assert parameter_counts(shape).active == parameter_counts(shape).total


def test_tied_embeddings_save_one_table_but_no_multiplication() -> None:
    tied = replace(LLAMA_8B, tied_embeddings=True)
    saved = parameter_counts(LLAMA_8B).total - parameter_counts(tied).total
    assert saved == LLAMA_8B.vocab * LLAMA_8B.hidden
    assert matmul_parameters(tied) == matmul_parameters(LLAMA_8B)


def test_latent_attention_of_deepseek_v3_has_187_million_weights_a_layer() -> None:
    # 7168·1536 + 1536·128·192 + 7168·(512 + 64) + 512·128·256 + 128·128·7168, by hand
    assert parameter_counts(DEEPSEEK_V3).attention == 61 * 187_105_280


def test_palm_flops_per_token_give_its_printed_mfu() -> None:
    palm = TABLES["palm_2204.02311"]
    shape = sized(118, 18432, 48, 1, 256, 73728, 256000, 2048, tied_embeddings=True)
    peak = palm["peak_TF"] * 1e12 * palm["chips"]
    assert flops_per_token(shape) * palm["tok_s"] / peak == pytest.approx(0.462, abs=0.0005)
    without_attention = 6 * matmul_parameters(shape) * palm["tok_s"] / peak
    assert without_attention == pytest.approx(palm["mfu_pct_no_attention"] / 100, abs=0.0005)


def test_causal_attention_halves_what_grows_with_the_sequence() -> None:
    flat = 6 * matmul_parameters(LLAMA_8B)
    for sequence in (1024, 8192, 131072):
        full = flops_per_token(LLAMA_8B, sequence=sequence) - flat
        causal = flops_per_token(LLAMA_8B, sequence=sequence, causal=True) - flat
        assert full == 2 * causal == 12 * 32 * sequence * 4096


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": 0}, "layers"),
        ({"kv_heads": 3}, "kv_heads"),
        ({"ffn": "glu"}, "ffn"),
        ({"norm": "batchnorm"}, "norm"),
        ({"qk_norm": "yes"}, "qk_norm"),
        (
            {"experts": ExpertShape(count=8, top_k=9, ffn_hidden=16)},
            "top_k of a model: expected 1 to 8, got 9",
        ),
        (
            {"experts": ExpertShape(count=8, top_k=0, ffn_hidden=16)},
            "top_k of a model: expected 1 to 8, got 0",
        ),
        (
            {"experts": ExpertShape(count=8, top_k=2, ffn_hidden=16, dense_layers=32)},
            "expected 0 to 31, got 32",
        ),
    ],
)
def test_a_shape_that_is_no_transformer_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(LLAMA_8B, **change)  # type: ignore[arg-type]
