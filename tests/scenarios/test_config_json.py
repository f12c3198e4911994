"""A config.json becomes the shape of the catalog, with the parameters that its weights have."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from figgen import catalog
from figgen.__main__ import main
from figgen.errors import InputError
from figgen.models.transformer import parameter_counts
from figgen.scenarios.config_json import MODEL_TYPES, shape_of_config

CASES = json.loads((Path(__file__).parents[1] / "oracles" / "config_json.json").read_text("utf-8"))[
    "cases"
]
LLAMA = CASES[0]["config"]
MIXTURE = next(case["config"] for case in CASES if "DeepSeek-V3" in case["file"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_shape_has_the_parameters_of_the_weights_and_of_the_catalog(case: dict[str, Any]) -> None:
    shape = shape_of_config(case["config"])
    if case["parameters"]:
        assert parameter_counts(shape).total == case["parameters"]
    if case["catalog"]:
        known = catalog.model(case["catalog"]).shape
        assert replace(shape, sequence=known.sequence) == known
    assert case["parameters"] or case["catalog"]


def test_kinds_of_attention_and_experts_are_among_them() -> None:
    shapes = [shape_of_config(case["config"]) for case in CASES]
    assert any(shape.latent for shape in shapes)
    assert any(shape.experts and shape.experts.shared for shape in shapes)
    assert any(shape.experts and shape.experts.dense_layers for shape in shapes)
    assert {shape.qk_norm for shape in shapes} == {"none", "per-head", "full-width"}
    assert len({case["config"]["model_type"] for case in CASES}) >= 10


def test_variants_of_a_file_are_read_alike() -> None:
    nested = {"model_type": "x", "text_config": LLAMA}
    assert shape_of_config(nested) == shape_of_config(LLAMA)
    biased = shape_of_config(LLAMA | {"attention_bias": True})
    rows = (32 + 2 * 8) * 128 + 4096
    assert biased.extra == 32 * rows
    plain = LLAMA | {"head_dim": None, "num_local_experts": None, "tie_word_embeddings": True}
    assert shape_of_config(plain).tied_embeddings
    gemma = shape_of_config(LLAMA | {"model_type": "gemma2", "tie_word_embeddings": None})
    assert (gemma.ffn, gemma.norms_per_layer, gemma.tied_embeddings) == ("geglu", 4, True)


@pytest.mark.parametrize(
    ("change", "window", "full_every"),
    [
        ({"model_type": "llama", "sliding_window": 4096}, 0, 0),
        ({"model_type": "mistral", "sliding_window": 4096}, 4096, 0),
        ({"model_type": "mistral", "sliding_window": None}, 0, 0),
        ({"model_type": "gemma2", "sliding_window": 4096}, 4096, 2),
        ({"model_type": "gemma3_text", "sliding_window": 1024}, 1024, 6),
        ({"model_type": "gemma3", "sliding_window": 512, "sliding_window_pattern": 4}, 512, 4),
        ({"model_type": "qwen2", "sliding_window": 131072}, 0, 0),
    ],
)
def test_windows_are_those_that_transformers_uses(
    change: dict[str, Any], window: int, full_every: int
) -> None:
    shape = shape_of_config(LLAMA | change)
    assert (shape.window, shape.full_every) == (window, full_every)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "lama"}, "did you mean llama"),
        ({"model_type": None}, "unknown model_type 'None'"),
        ({"hidden_size": None}, "hidden_size or n_embd: expected a whole number"),
        ({"num_hidden_layers": "32"}, "num_hidden_layers or n_layer"),
        ({"num_key_value_heads": 5}, "kv_heads of a model"),
        ({"vocab_size": -1}, "vocab_size: expected a whole number, got -1"),
    ],
)
def test_what_no_shape_follows_from_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        shape_of_config(LLAMA | change)


@pytest.mark.parametrize(
    "change",
    [{"moe_layer_freq": 2}, {"mlp_only_layers": [1, 3]}, {"shared_expert_intermediate_size": 3000}],
)
def test_experts_that_do_not_follow_each_other_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="expert"):
        shape_of_config(MIXTURE | change)


def test_command_line_takes_a_file_for_a_model(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA), encoding="utf-8")
    sizes = ("--nodes", "2", "--gpus-per-node", "8", "--tp", "2", "--json")
    assert main(["step", "--model", str(file), *sizes]) == 0
    mine = json.loads(capsys.readouterr().out)
    assert main(["step", "--model", "llama-3-8b", *sizes]) == 0
    theirs = json.loads(capsys.readouterr().out)
    assert mine | {"model": "llama-3-8b"} == theirs
    assert main(["memory", "--model", str(tmp_path / "no.json"), *sizes]) == 2
    assert "expected a config.json" in capsys.readouterr().err
    file.write_text("{", encoding="utf-8")
    assert main(["memory", "--model", str(file), *sizes]) == 2
    assert len(MODEL_TYPES) > 15
