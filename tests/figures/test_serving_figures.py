"""Caches, decode, adapters, optimizers and layers, compared with released models and printed
numbers."""

from __future__ import annotations

import numpy as np
import pytest

from figgen.catalog import accelerator, model
from figgen.charts import Bars, Curves, Table
from figgen.errors import InputError
from figgen.figures.serving.decode import served
from figgen.figures.serving.fine_tuning import STATE
from figgen.formulas.fine_tuning import newton_schulz_flops
from figgen.formulas.modern_layers import (
    gated_width,
    latent_attention_parameters,
    normalization_parameters,
    windowed_pairs,
)
from figgen.formulas.serving import windowed_cache_bytes
from figgen.models.memory.layer_tensors import layer_tensors
from figgen.registry import build
from figgen.scenarios.evidence.decoding import token_cache_bytes
from figgen.scenarios.options.resolve import training_step


@pytest.mark.parametrize(
    ("name", "kilobytes"), [("deepseek-v3", 70.272), ("llama-3-405b", 516.096)]
)
def test_a_token_leaves_what_is_printed(name: str, kilobytes: float) -> None:
    """Source: Zhao et al. 2025, arXiv:2505.09343, Table 1."""
    assert token_cache_bytes(model(name)) == pytest.approx(1e3 * kilobytes, rel=1e-12)


def test_full_heads_keep_two_vectors_of_the_width_in_every_layer() -> None:
    """Brown et al. 2020, table 2.1: 96 layers of 12,288; every head has keys and values."""
    values = build("cache-by-model", {}).values
    assert values["gpt_3_175b_token"].value == values["gpt_3_175b_full"].value
    assert values["gpt_3_175b_token"].value == 2 * 96 * 12288 * 2
    assert values["llama_3_70b_full"].value == 8 * values["llama_3_70b_token"].value


@pytest.mark.parametrize("name", ["llama-1-7b", "llama-1-13b", "llama-1-33b", "llama-1-65b"])
def test_gated_widths_are_those_of_the_released_models(name: str) -> None:
    assert gated_width(model(name).hidden, 256) == model(name).ffn_hidden


@pytest.mark.parametrize(
    ("software", "value"), [("megatron-bridge 26.04", "more_kept"), ("nanotron", "more_kept_apart")]
)
def test_a_gated_block_keeps_what_the_memory_of_its_framework_counts(
    software: str, value: str
) -> None:
    """It keeps its input and two tensors four times as wide, next to 18 bytes per channel for
    GPT's."""
    found = training_step(
        model="llama-1-65b",
        nodes=1,
        gpus_per_node=1,
        microbatches=1,
        sequence=2048,
        software=software,
    )
    kept = [t.bytes for t in layer_tensors(found.setup) if t.name.startswith("ffn ")]
    more = sum(kept) / (18 * 2048 * 8192) - 1
    assert float(build("llama-changes", {}).values[value].value) == pytest.approx(more)


@pytest.mark.parametrize(("name", "vectors"), [("llama-1-65b", 1), ("gpt-3-175b", 2)])
def test_norms_are_those_of_the_released_models(name: str, vectors: int) -> None:
    found = model(name)
    counted = normalization_parameters(found.layers, found.hidden, vectors)
    assert counted == found.counts.norms


@pytest.mark.parametrize("name", ["deepseek-v2", "deepseek-v3", "kimi-k2"])
def test_latent_attention_has_the_parameters_of_the_released_models(name: str) -> None:
    shape = model(name).shape
    latent = shape.latent
    assert latent is not None
    each = latent_attention_parameters(
        shape.hidden,
        shape.heads,
        latent.query_rank,
        latent.kv_rank,
        latent.nope_head_dim,
        latent.rope_head_dim,
        latent.value_head_dim,
    )
    norms = latent.query_rank + latent.kv_rank
    counted = model(name).counts.attention
    assert counted in (shape.layers * each, shape.layers * (each - norms))


@pytest.mark.parametrize(("context", "window"), [(1, 1), (9, 4), (64, 64), (64, 63)])
def test_pairs_of_a_window_are_those_of_its_mask(context: int, window: int) -> None:
    query, key = np.indices((context, context))
    seen = (key <= query) & (query - key < window)
    assert windowed_pairs(context, window) == seen.sum()
    kept = [1 if query - key < window else 0 for query in [context - 1] for key in range(context)]
    assert windowed_cache_bytes(3, 2, window, context, 8, 2) == 2 * 8 * 2 * (
        context + 2 * sum(kept)
    )


def test_gemma_3_caches_a_sixth_as_its_report_aims_at() -> None:
    """Five layers of six have a window of 1,024, so a long context caches little more than 10 of
    62."""
    values = build("windowed-models", {}).values
    share = values["gemma_3_27b_cache"].value / values["gemma_3_27b_whole"].value
    assert share == pytest.approx(10 / 62 + 52 / 62 / 128)


def test_newton_schulz_counts_its_products() -> None:
    def multiplied(*sides: tuple[int, int, int]) -> int:
        return sum(2 * n * m * k for n, m, k in sides)

    # X X^T, its square, and their sum times X: five times, with X as wide as it is short.
    once = multiplied((3, 3, 7), (3, 3, 3), (3, 3, 7))
    assert newton_schulz_flops(7, 3, 5) == 5 * once


def test_decode_is_bound_by_memory_then_by_arithmetic() -> None:
    job = served("llama-3-8b", "h100-sxm-80gb", 1, 1)
    gpu = accelerator("h100-sxm-80gb")
    # Of 8.03 billion parameters 128,256 rows of 4,096 are looked up; the head has as many again.
    met = 8_030_261_248 - 128_256 * 4_096
    assert job.step_s(1) == pytest.approx(2 * met / gpu.hbm_bandwidth_bytes_per_s, rel=1e-4)
    many = 4 * 2**10
    assert job.step_s(many) == pytest.approx(2 * met * many / gpu.peak_flops_per_s())
    assert job.held_bytes == 2 * 8_030_261_248
    chart = build("decode-by-batch", {})
    assert isinstance(chart, Curves)
    assert all(list(each.y) == sorted(each.y) for each in chart.series)


def test_a_token_reads_what_gpt_fast_counts_and_a_shared_table_as_its_head() -> None:
    """gpt-fast's generate.py: its bandwidth excludes embeddings from the model's size."""
    llama, small = model("llama-2-7b"), model("llama-3-1b")
    assert llama.read_parameters == 6_738_415_616 - 32_000 * 4_096
    assert small.read_parameters == small.parameters
    assert small.prefill_parameters == small.parameters - 128_256 * 2_048


def test_a_million_tokens_cost_what_their_gpu_seconds_cost() -> None:
    table = build("price-of-tokens", {"price_per_gpu_hour": 3.6})
    assert isinstance(table, Table)
    for _, _, rate, price, energy in table.rows:
        assert price == pytest.approx(1e6 / float(rate) * 0.001)
        assert energy == pytest.approx(1250 / float(rate))


def test_where_arithmetic_is_the_limit_a_written_token_costs_the_heads_products_more() -> None:
    """2 FLOPs per parameter at the peak of eight GPUs, which cost 1e-3 USD a second each."""
    chart = build("price-by-batch", {"price_per_gpu_hour": 3.6})
    assert isinstance(chart, Curves)
    peak = accelerator("h100-sxm-80gb").peak_flops_per_s()
    met = 70_553_706_496 - 128_256 * 8_192
    written, read = (1e6 * 2 * each / peak * 1e-3 for each in (met, met - 128_256 * 8_192))
    assert chart.rules[0].at == pytest.approx(read)
    for line in chart.series:
        assert list(line.y) == sorted(line.y, reverse=True)
        assert min(line.y) >= written * (1 - 1e-12) > read
    assert chart.series[0].y[-1] == pytest.approx(written)
    # One sequence reads all weights and its cache for its token, at the memory's rate.
    cache = 1024 * token_cache_bytes(model("llama-3-70b"))
    held = 2 * met + cache
    assert chart.series[0].y[0] == pytest.approx(1e6 * held / 3.35e12 * 1e-3)


def test_a_model_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="sequences that fit"):
        build("decode-by-batch", {"gpus": 1})
    bars = build("fine-tuning-memory", {})
    assert isinstance(bars, Bars)
    state = [part.lengths[0] for part in bars.segments if part.name in STATE]
    assert sum(state) == 16.0 * 8_030_261_248


def test_adapters_of_the_figure_are_those_that_peft_counts() -> None:
    bars = build("fine-tuning-memory", {})
    assert isinstance(bars, Bars)
    assert bars.values["trained"].value == 41_943_040
    assert bars.values["lora"].value == 2 * 8_030_261_248 + 16 * 41_943_040


def test_a_step_with_adapters_is_faster_by_less_than_its_work_is_less() -> None:
    """torchtune's 3B model on an A100 has 7,210 and 8,210 tokens/s, with ¾ of the work."""
    table = build("fine-tuning-step", {})
    assert isinstance(table, Table)
    less = table.values["adam_work"].value / table.values["lora_work"].value
    faster = table.values["lora_faster"].value
    assert faster == pytest.approx(8210 / 7210, rel=0.05)
    assert faster < less
    assert table.values["qlora_sent"].value < table.values["lora_sent"].value / 2


def test_muons_share_of_a_step_is_its_bound_times_the_ranks_that_repeat_it() -> None:
    """Jordan et al. 2024: T·m/B; each of eight tensor-parallel ranks does all of it."""
    table = build("muon-update", {})
    assert isinstance(table, Table)
    bound = 5 * 8192 / (1024 * 4096)
    assert 0.3 * 8 * bound < table.values["first"].value < 8 * bound


def test_no_published_step_is_faster_than_the_memory_and_its_bytes_are_those_of_llama_2() -> None:
    """Touvron et al. 2023: 7B has 32 layers of 4,096 without sharing, 70B 80 with 8
    heads of 128."""
    rows = build("decode-measured", {}).rows
    assert all(float(row[5]) < float(row[6]) for row in rows)
    for row, weights, token in zip(
        rows,
        (6.6e9, 6.6e9, 68.7e9, 68.7e9),
        (2 * 32 * 4096,) * 2 + (2 * 80 * 1024,) * 2,
        strict=True,
    ):
        caches = int(row[2]) * (int(row[3]) + 1024) * token
        assert row[4] == pytest.approx(weights + caches, rel=2e-3)
