"""The numbers of a model that its time depends on, counted from the sizes of published models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from figgen import catalog
from figgen.models.operations.tuned_layer import projected_width
from figgen.models.step.job import shape_numbers
from figgen.scenarios.options.config_json import shape_of_config

CONFIGS: dict[str, dict[str, Any]] = {
    case["file"].partition("/")[2]: case["config"]
    for case in json.loads(
        (Path(__file__).parents[1] / "oracles" / "config_json.json").read_text("utf-8")
    )["cases"]
}


def of(name: str, mtp_layers: int = 0) -> dict[str, Any]:
    return shape_numbers(shape_of_config(CONFIGS[name]), mtp_layers)


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "Qwen2.5-7B", "OLMo-2-0325-32B"])
def test_grouped_heads_project_queries_keys_and_values(name: str) -> None:
    config, found = CONFIGS[name], of(name)
    hidden, queries = config["hidden_size"], config["num_attention_heads"]
    head = hidden // queries
    projected = (queries + 2 * config["num_key_value_heads"]) * head
    assert found["attention_weights"] == hidden * (projected + queries * head)
    assert projected_width(shape_of_config(config)) == projected
    assert found["key_value_width"] == config["num_key_value_heads"] * head
    assert found["dense_weights"] == 3 * hidden * config["intermediate_size"]
    # Nothing that such a model has not.
    names = (
        "experts", "expert_layers", "expert_weights", "top_k", "shared", "window",
        "windowed_share", "mixer_share", "mixer_work", "mtp_layers", "routed_parameters",
    )  # fmt: skip
    assert [found[name] for name in names] == [1, *[0] * 10]


def test_deepseek_v3_s_numbers_are_those_of_its_report() -> None:
    """arXiv:2412.19437, section 4.2; 671B, plus 14B of one module that predicts one more token."""
    found = of("DeepSeek-V3")
    layers = {"layers": 61, "expert_layers": 58, "experts": 256, "top_k": 8, "shared": 1}
    assert {name: found[name] for name in layers} == layers
    assert found["expert_weights"] == 3 * 7168 * 2048
    # Queries and keys of 128 + 64 for each of 128 heads, values of 128.
    shape = shape_of_config(CONFIGS["DeepSeek-V3"])
    assert projected_width(shape) == 128 * (192 + 192 + 128)
    assert found["key_value_width"] == 128 * (192 + 128) / 2
    assert found["attention_width"] == 128 * (192 + 128) / 2
    assert found["dense_parameters"] + found["routed_parameters"] == pytest.approx(671e9, rel=1e-3)
    routed = 256 * 3 * 7168 * 2048
    assert found["routed_parameters"] == 58 * routed
    more = of("DeepSeek-V3", mtp_layers=1)
    assert more["routed_parameters"] == 59 * routed
    # Outputs and embeddings are shared with the model; a projection of two states to one.
    dense = more["dense_parameters"] - found["dense_parameters"]
    attention, shared, router = found["attention_weights"], 3 * 7168 * 2048, 256 * 7168
    assert dense == pytest.approx(attention + shared + router + 2 * 7168**2, rel=1e-3)


def test_means_of_mixers_and_attention_are_over_all_layers() -> None:
    """Bamba has 29 mixers with 128 heads of 64 channels, and three layers of attention."""
    found = of("Bamba-9B-v1")
    inner = 128 * 64
    projected = 2 * inner + 2 * 128 + 128
    assert found["mixer_share"] == 29 / 32
    mixer, attention = 4096 * (projected + inner), 4096 * (4096 + 2 * 1024 + 4096)
    assert found["attention_weights"] == pytest.approx((29 * mixer + 3 * attention) / 32)
    width = (29 * (projected + 2 * inner) + 3 * (4096 + 2 * 1024)) / 32
    # Beside norms, residual sums and a gate, each reads and writes 16 bits.
    moved = found["dense_work"].forward.pass_bytes - 20 * 4096 - 6 * 14336
    assert moved == pytest.approx(4 * width)
    assert found["key_value_width"] == pytest.approx(3 * 1024 / 32)
    assert found["mixer_work"] > 0


@pytest.mark.parametrize(
    ("name", "window", "share"),
    # Every second layer: OpenAI, gpt-oss model card, section 2.1. All: Mistral 7B, version 0.1.
    [("gpt-oss-120b", 128, 1 / 2), ("mistral-7b", 4096, 1)],
)
def test_windowed_layers_see_as_many_tokens(name: str, window: int, share: float) -> None:
    found = shape_numbers(catalog.model(name).shape, 0)
    assert (found["window"], found["windowed_share"]) == (window, share)
