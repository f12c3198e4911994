"""A config.json becomes a shape of the catalog, with as many parameters as its weights have."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from figgen import catalog
from figgen.__main__ import main
from figgen.errors import InputError
from figgen.models.memory.memory import memory
from figgen.models.shape.model_shape import StateSpace
from figgen.models.shape.transformer import parameter_counts
from figgen.scenarios.architectures.file_text import read_model_text
from figgen.scenarios.architectures.kinds import KINDS, SAME_AS
from figgen.scenarios.options.config_json import shape_of_config
from figgen.scenarios.options.resolve import training_step

CASES = json.loads((Path(__file__).parents[1] / "oracles" / "config_json.json").read_text("utf-8"))[
    "cases"
]
COUNTS = json.loads(
    (Path(__file__).parents[1] / "oracles" / "config_json_transformers.json").read_text("utf-8")
)["counts"]
LLAMA = CASES[0]["config"]
HYBRIDS = {case["config"]["model_type"]: case["config"] for case in CASES[-2:]}
MIXTURE = next(case["config"] for case in CASES if "DeepSeek-V3" in case["file"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_shape_has_the_parameters_of_the_weights_and_of_the_catalog(case: dict[str, Any]) -> None:
    shape = shape_of_config(case["config"])
    if case["parameters"]:
        assert parameter_counts(shape).total == case["parameters"]
    if "published" in case:
        count, half = case["published"]
        assert parameter_counts(shape).total == pytest.approx(count, abs=half)
    if case["catalog"]:
        known = catalog.model(case["catalog"]).shape
        assert replace(shape, sequence=known.sequence) == known
    assert case["parameters"] or case["catalog"] or case["published"]


def test_sizes_that_nothing_reads_are_named() -> None:
    """Kimi K3's experts are narrower than its stream, and its files name Kimi Linear inside."""
    linear = next(case["config"] for case in COUNTS if case["name"] == "defaults kimi_linear")
    narrow = {**linear, "routed_expert_hidden_size": 1024, "attn_res_block_size": 12}
    _, plain = read_model_text(json.dumps(linear))
    _, notes = read_model_text(json.dumps({"model_type": "kimi_k3", "text_config": narrow}))
    said = "fields that may be sizes are not read: "
    assert not any(note.startswith(said) for note in plain)
    assert said + "routed_expert_hidden_size 1024, attn_res_block_size 12" in notes


def test_no_file_whose_parameters_are_known_has_sizes_that_nothing_reads() -> None:
    for case in [*CASES, *COUNTS]:
        _, notes = read_model_text(json.dumps(case["config"]))
        assert not any("may be sizes" in note for note in notes), case


def test_layers_with_experts_are_those_of_a_list_in_a_text() -> None:
    """Step 3.5's names: groups of heads, a shared expert's width, and layers as a text."""
    step = {
        "model_type": "step3p5", "hidden_size": 4096, "intermediate_size": 11264,
        "num_hidden_layers": 5, "num_attention_heads": 64, "num_attention_groups": 8,
        "head_dim": 128, "moe_num_experts": 288, "moe_top_k": 8, "moe_intermediate_size": 1280,
        "share_expert_dim": 1280, "moe_layers_enum": "3,4", "vocab_size": 128896,
    }  # fmt: skip
    shape = shape_of_config(step)
    assert shape.experts is not None
    assert (shape.kv_heads, shape.experts.dense_layers, shape.experts.shared) == (8, 3, 1)


def test_kinds_of_attention_and_experts_are_among_them() -> None:
    shapes = [shape_of_config(case["config"]) for case in CASES]
    assert any(shape.latent for shape in shapes)
    assert any(shape.experts and shape.experts.shared for shape in shapes)
    assert any(shape.experts and shape.experts.dense_layers for shape in shapes)
    assert {shape.qk_norm for shape in shapes} == {"none", "per-head", "full-width"}
    assert len({case["config"].get("model_type") for case in CASES}) >= 10


def test_hybrids_have_attention_where_their_file_says_so() -> None:
    granite, bamba = (shape_of_config(HYBRIDS[name]) for name in ("granitemoehybrid", "bamba"))
    assert [at for at in range(40) if not granite.mixer_layers(at, 1)] == [5, 15, 25, 35]
    assert [at for at in range(32) if not bamba.mixer_layers(at, 1)] == [9, 18, 27]
    # A count by hand: the projections, convolution and vectors of 29 mixers; what is attention.
    mixer = 4096 * (2 * 8192 + 2 * 128 + 128) + 8448 * 5 + 3 * 128 + 8192 + 8192 * 4096
    attention, block = 2 * 4096 * (4096 + 1024), 3 * 4096 * 14336
    whole = 29 * mixer + 3 * attention + 32 * (block + 2 * 4096) + 4096 + 2 * 128256 * 4096
    assert parameter_counts(bamba).total == whole
    one = HYBRIDS["bamba"] | {"attn_layer_indices": [20]}
    assert [at for at in range(32) if not shape_of_config(one).mixer_layers(at, 1)] == [20]
    none = shape_of_config(HYBRIDS["bamba"] | {"attn_layer_indices": None})
    assert none.mixer_layers(0, 32) == 32
    # Granite 4.0 H Micro has no routed experts: its shared block is all that there is.
    micro = {"num_local_experts": 0, "num_experts_per_tok": 0, "shared_intermediate_size": 8192}
    dense = shape_of_config(HYBRIDS["granitemoehybrid"] | micro)
    assert (dense.experts, dense.ffn_hidden) == (None, 8192)
    # What transformers' GraniteMoeHybridConfig has where a file is silent.
    silent = {
        name: each for name, each in HYBRIDS["granitemoehybrid"].items() if "mamba" not in name
    }
    assert shape_of_config(silent).state_space == StateSpace(
        mixer_heads=128,
        mixer_head_dim=64,
        state=256,
        groups=1,
        convolution=4,
        chunk=256,
        attention_every=10,
        attention_first=5,
    )
    plain = shape_of_config(HYBRIDS["granitemoehybrid"] | {"layer_types": ["attention"] * 40})
    assert plain.state_space is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attn_layer_indices": [9, 18, 28]}, "layers with attention: expected evenly spaced"),
        ({"attn_layer_indices": [9, 18]}, "layers with attention: expected evenly spaced"),
        ({"attn_layer_indices": [18, 9]}, "layers with attention: expected evenly spaced"),
        ({"attn_layer_indices": "x"}, "layers with attention: expected a list of numbers"),
        ({"mamba_proj_bias": True}, "mamba_proj_bias: expected false"),
        (
            {"attn_layer_indices": None, "layer_types": 5},
            "layer_types: expected a list of layers, got '5'",
        ),
        ({"mamba_n_heads": 100}, "mamba_n_heads: expected a divisor of 8192"),
        ({"mamba_n_groups": 3}, "groups of a mixer: expected a divisor of 128 heads"),
    ],
)
def test_hybrids_that_are_not_known_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        shape_of_config(HYBRIDS["bamba"] | change)


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
        ({"hidden_size": None}, "hidden_size or n_embd or d_model: expected a whole number"),
        ({"num_hidden_layers": "many"}, "num_hidden_layers or n_layer"),
        ({"num_key_value_heads": 5}, "kv_heads of a model"),
        ({"vocab_size": -1}, "vocab_size: expected a whole number, got '-1'"),
        ({"num_attention_heads": 0}, "heads of a model: expected >= 1, got 0"),
        ({"model_type": "rwkv6"}, "'rwkv6': expected a transformer, because recurrences"),
        ({"model_type": "recurrent_gemma"}, "expected a transformer, because recurrences"),
        ({"model_type": "new", "lru_width": 2560}, "with lru_width: expected a transformer"),
        ({"model_type": "t5"}, "expected a decoder alone"),
        ({"model_type": "clip"}, "expected a language model"),
    ],
)
def test_what_no_shape_follows_from_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        shape_of_config(LLAMA | change)


@pytest.mark.parametrize(
    ("change", "plain", "note"),
    [
        ({"moe_layer_freq": 2}, 32, "dense layers between expert layers"),
        ({"mlp_only_layers": [1, 5]}, 4, "dense layers between expert layers"),
        ({"n_shared_experts": None, "shared_expert_intermediate_size": 3000}, 3, "the remainder"),
    ],
)
def test_experts_that_do_not_follow_each_other_are_counted_and_named(
    change: dict[str, Any], plain: int, note: str
) -> None:
    shape, notes = read_model_text(json.dumps(MIXTURE | change))
    assert shape.dense_layers == plain
    assert any(note in one for one in notes)
    with pytest.raises(InputError, match=r"expert|mlp_only_layers"):
        shape_of_config(MIXTURE | {"mlp_only_layers": ["x"]})
    with pytest.raises(InputError, match="expert"):
        shape_of_config(MIXTURE | {"moe_intermediate_size": 0})


@pytest.mark.parametrize("row", COUNTS, ids=lambda row: row["name"])
def test_parameters_are_those_that_transformers_builds(row: dict[str, Any]) -> None:
    shape, _ = read_model_text(json.dumps(row["config"]))
    assert parameter_counts(shape).total == row["parameters"]


def test_every_kind_of_the_oracle_is_known_and_every_other_name_leads_to_a_kind() -> None:
    assert set(SAME_AS.values()) <= KINDS.keys() | {"stablelm"}
    met = {row["config"].get("text_config", row["config"])["model_type"] for row in COUNTS}
    known = {SAME_AS.get(name, name).removesuffix("_text") for name in met}
    assert known <= KINDS.keys()
    assert len(known) > 50


def test_a_kind_that_is_not_known_is_read_by_its_plain_fields_and_named() -> None:
    shape, notes = read_model_text(json.dumps(LLAMA | {"model_type": "lama"}))
    assert shape == shape_of_config(LLAMA)
    assert any("unknown model_type 'lama' (did you mean llama" in note for note in notes)
    with pytest.raises(InputError, match=r"hidden_size or n_embd or d_model, num_hidden"):
        read_model_text('{"model_type": "new", "vocab_size": 1000}')


def test_towers_and_layers_of_prediction_are_named() -> None:
    tower = {"model_type": "pixtral", "hidden_size": 1024, "num_hidden_layers": 24}
    seeing = {"model_type": "mistral3", "text_config": LLAMA, "vision_config": tower}
    _, notes = read_model_text(json.dumps(seeing))
    assert notes == ["the vision tower (24 layers of 1024) is not counted: vision_config"]
    _, notes = read_model_text(json.dumps(LLAMA | {"num_nextn_predict_layers": 1}))
    assert any("--mtp-layers 1" in note for note in notes)


def test_numbers_that_only_python_writes_are_read() -> None:
    text = json.dumps(LLAMA | {"time_step_limit": [0.0, float("inf")], "x": float("nan")})
    assert "Infinity" in text
    assert read_model_text(text)[0] == shape_of_config(LLAMA)


def test_linear_attention_is_a_window_of_a_chunk_and_chunks_are_windows() -> None:
    rows = {row["name"]: row["config"] for row in COUNTS}
    delta = shape_of_config(rows["defaults qwen3_next"])
    assert (delta.window, delta.full_every) == (64, 4)
    chunked = shape_of_config(rows["defaults llama4"])
    assert (chunked.window, chunked.full_every) == (8192, 4)
    gpt = shape_of_config(rows["defaults gpt_oss"])
    assert (gpt.window, gpt.full_every) == (128, 2)


def test_queries_without_a_rank_are_projected_at_once() -> None:
    lite = next(row["config"] for row in COUNTS if row["name"] == "deepseek v2 lite")
    shape = shape_of_config(lite)
    assert shape.latent is not None
    assert shape.latent.query_rank == 0
    # The same sum over a rank's parts, and over the matrices that adapters stand beside.
    job = training_step(model="deepseek-v2", nodes=1, gpus_per_node=8).setup
    setup = replace(job, shape=shape)
    ranks = memory(setup).ranks
    assert ranks[0].parameters == parameter_counts(shape).total


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
    assert "expected a config.json" in capsys.readouterr().err
