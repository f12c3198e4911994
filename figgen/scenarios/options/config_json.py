"""A model's shape from the `config.json` that Hugging Face's transformers keeps beside its weights.

What a kind of model (`model_type`) does otherwise than Llama is in `MODEL_TYPES`, which the tools
share; a kind that is not there is refused, since its layers may be counted otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from figgen import catalog
from figgen.errors import InputError, unknown
from figgen.json_text import read_json
from figgen.models.shape.model_shape import ExpertShape, LatentAttention, ModelShape, StateSpace
from figgen.scenarios.options.own_model import OwnModel, is_sizes, model_of_sizes

_GPT: dict[str, Any] = {"ffn": "gelu", "norm": "layernorm", "bias": True, "tied": True}
_GEMMA: dict[str, Any] = {"ffn": "geglu", "tied": True}
_GEMMA_3: dict[str, Any] = _GEMMA | {
    "norms_per_layer": 4, "qk_norm": "per-head", "full_every": 6,
    "usual": {
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262_208,
        "max_position_embeddings": 131_072, "sliding_window": 4096,
    },
}  # fmt: skip

MODEL_TYPES: Mapping[str, Mapping[str, Any]] = MappingProxyType({
    "llama": {}, "mistral": {"full_every": 0}, "mixtral": {"full_every": 0}, "granite": {},
    "phi3": {"full_every": 0},
    "qwen2": {"qkv_bias": True}, "qwen2_moe": {"qkv_bias": True, "shared_gate": True},
    "qwen3": {"qk_norm": "per-head"}, "qwen3_moe": {"qk_norm": "per-head"},
    "olmo2": {"qk_norm": "full-width"}, "olmoe": {"qk_norm": "full-width"},
    "gemma": _GEMMA, "gemma2": _GEMMA | {"norms_per_layer": 4, "full_every": 2},
    "gemma3": _GEMMA_3, "gemma3_text": _GEMMA_3,
    "deepseek_v2": {}, "deepseek_v3": {"router_offsets": True},
    "kimi_k2": {"router_offsets": True},
    "nemotron": {"ffn": "squared-relu", "norm": "layernorm"},
    "gpt2": _GPT | {"learned_positions": True},
    "granitemoehybrid": {"mixers": True}, "bamba": {"mixers": True},
})  # fmt: skip
"""Kinds of models, and what each does otherwise than Llama; as in transformers' modeling files.

Kinds with `full_every` have windows: every so many-th layer sees all tokens, 0: none does. Those
with `mixers` have Mamba-2 in the place of attention where their list of layers says so. `usual` is
what transformers' configuration says where a published file leaves it out.
"""

FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "layers": ("num_hidden_layers", "n_layer"),
    "hidden": ("hidden_size", "n_embd"),
    "heads": ("num_attention_heads", "n_head"),
    "kv_heads": ("num_key_value_heads",),
    "head_dim": ("head_dim",),
    "ffn_hidden": ("intermediate_size", "n_inner"),
    "vocab": ("vocab_size",),
    "sequence": ("max_position_embeddings", "n_positions"),
    "count": ("n_routed_experts", "num_local_experts", "num_experts"),
    "top_k": ("num_experts_per_tok",),
    "expert_hidden": ("moe_intermediate_size",),
    "shared": ("n_shared_experts",),
    "shared_hidden": ("shared_expert_intermediate_size", "shared_intermediate_size"),
    "dense_layers": ("first_k_dense_replace",),
    "sparse_step": ("decoder_sparse_step", "moe_layer_freq"),
    "query_rank": ("q_lora_rank",),
    "kv_rank": ("kv_lora_rank",),
    "nope_head_dim": ("qk_nope_head_dim",),
    "rope_head_dim": ("qk_rope_head_dim",),
    "value_head_dim": ("v_head_dim",),
    "window": ("sliding_window",),
    "full_every": ("sliding_window_pattern", "_sliding_window_pattern"),
    "mixer_heads": ("mamba_n_heads",),
    "state": ("mamba_d_state",),
    "groups": ("mamba_n_groups",),
    "convolution": ("mamba_d_conv",),
    "chunk": ("mamba_chunk_size",),
    "expand": ("mamba_expand",),
})  # fmt: skip
"""Counts of a shape, and what a file may call them."""

LONGEST = 8192
"""Tokens of a sequence at most: a file says how long a model may run, not how it was trained."""


def named_model(name: str) -> catalog.Model | OwnModel:
    """The model of the catalog, that of a file whose name ends in `.json`, or one of sizes.

    Raises InputError for an unknown name with the nearest, for a file that is no config.json, and
    for sizes from which no shape follows.
    """
    if is_sizes(name):
        return model_of_sizes(name)
    return model_from_file(name) if name.endswith(".json") else catalog.model(name)


def model_from_file(path: str) -> OwnModel:
    """The model of a `config.json`.  Raises InputError for what is none."""
    try:
        config = read_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"model {path!r}", expected="a config.json", got=str(error)) from None
    if not isinstance(config, dict):
        raise InputError(f"model {path!r}", expected="a config.json")
    return OwnModel(path, path, shape_of_config(config))


def shape_of_config(config: Mapping[str, Any]) -> ModelShape:
    """The shape that a configuration describes.

    Raises InputError for a kind of model that is not known, for a count that is missing, for layers
    of experts that do not follow each other, and for attention at no even distance.
    """
    if isinstance(config.get("text_config"), Mapping):
        config = {**config, **config["text_config"]}
    kind = str(config.get("model_type"))
    if kind not in MODEL_TYPES:
        raise unknown("model_type", kind, MODEL_TYPES)
    about = MODEL_TYPES[kind]
    config = {**about.get("usual", {}), **config}
    hidden, heads = _count(config, "hidden"), _count(config, "heads")
    layers, latent = _count(config, "layers"), _latent(config)
    kv_heads = _count(config, "kv_heads", heads)
    each = hidden // max(heads, 1)
    head_dim = latent.nope_head_dim if latent else _count(config, "head_dim", each)
    experts = _experts(config, layers)
    mixers = _mixers(config, layers, hidden) if about.get("mixers") else None
    # Beside routed experts a shared one is always there, and alone without them.
    alone = about.get("mixers") and config.get("num_local_experts") == 0
    ffn = "shared_hidden" if alone else "ffn_hidden"
    # Biases of the projections of attention where the rest of a layer has none.
    rows, extra = (heads + 2 * kv_heads) * head_dim, 0
    attending = layers if mixers is None else mixers.attention_before(layers)
    if about.get("qkv_bias"):
        extra = layers * rows
    elif config.get("attention_bias") and not about.get("bias"):
        extra = attending * (rows + hidden)
    if experts is not None:
        inner = layers - experts.dense_layers
        extra += inner * (hidden if about.get("shared_gate") else 0)
        extra += inner * (experts.count if about.get("router_offsets") else 0)
    window, full_every = _windows(config, about.get("full_every"))
    tied = config.get("tie_word_embeddings")
    return ModelShape(
        layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=head_dim,
        ffn_hidden=_count(config, ffn, 4 * hidden), vocab=_count(config, "vocab"),
        sequence=min(_count(config, "sequence"), LONGEST), ffn=about.get("ffn", "swiglu"),
        norm=about.get("norm", "rmsnorm"), norms_per_layer=about.get("norms_per_layer", 2),
        qk_norm=about.get("qk_norm", "none"), bias=about.get("bias", False),
        tied_embeddings=about.get("tied", False) if tied is None else bool(tied),
        learned_positions=about.get("learned_positions", False), extra=extra, experts=experts,
        latent=latent, window=window, full_every=full_every, state_space=mixers,
    )  # fmt: skip


def _mixers(config: Mapping[str, Any], layers: int, hidden: int) -> StateSpace | None:
    """The mixers of a hybrid, None where every layer has attention; transformers' defaults."""
    attending = config.get("attn_layer_indices")
    if attending is None:
        kinds = _listed(config, "layer_types")
        attending = [at for at, kind in enumerate(kinds) if kind == "attention"]
    if not isinstance(attending, list) or any(type(at) is not int for at in attending):
        raise InputError("layers with attention", expected="a list of numbers")
    if len(attending) == layers:
        return None
    first, every = 0, 0
    if attending:
        first, second = [*attending, layers][:2]
        every = second - first
        if every < 1 or attending != list(range(first, layers, every)):
            raise InputError("layers with attention", expected="numbers at even distances")
    if config.get("mamba_proj_bias"):
        raise InputError("mamba_proj_bias", expected="false", got=True)
    heads = _count(config, "mixer_heads", 128)
    inner = _count(config, "expand", 2) * hidden
    if not heads or inner % heads:
        raise InputError("mamba_n_heads", expected=f"a divisor of {inner}", got=heads)
    return StateSpace(
        heads, inner // heads, _count(config, "state", 256), _count(config, "groups", 1),
        _count(config, "convolution", 4), _count(config, "chunk", 256), every, first,
    )  # fmt: skip


def _windows(config: Mapping[str, Any], full_every: int | None) -> tuple[int, int]:
    """The window of a kind that has one, and which layers see all tokens."""
    if full_every is None:
        return 0, 0
    return _count(config, "window", 0), _count(config, "full_every", full_every)


def _count(config: Mapping[str, Any], name: str, usual: int | None = None) -> int:
    """A whole number under any of its names; `usual` where the file has none."""
    names = FIELDS[name]
    given = next((config[one] for one in names if config.get(one) is not None), usual)
    if type(given) is not int or not 0 <= given <= 2**40:
        raise InputError(" or ".join(names), expected="a whole number", got=given)
    return given


def _listed(config: Mapping[str, Any], name: str) -> list[Any]:
    """What a file lists by layer, nothing where it has no such list."""
    given = config.get(name) or []
    if not isinstance(given, list):
        raise InputError(name, expected="a list", got=given)
    return given


def _latent(config: Mapping[str, Any]) -> LatentAttention | None:
    if config.get("kv_lora_rank") is None:
        return None
    names = ("query_rank", "kv_rank", "nope_head_dim", "rope_head_dim", "value_head_dim")
    return LatentAttention(*(_count(config, name) for name in names))


def _experts(config: Mapping[str, Any], layers: int) -> ExpertShape | None:
    count = _count(config, "count", 0)
    if not count:
        return None
    first = _count(config, "dense_layers", 0)
    plain = _listed(config, "mlp_only_layers")
    if plain != list(range(len(plain))) or _count(config, "sparse_step", 1) != 1:
        raise InputError("layers of experts", expected="one after the other, dense ones first")
    width = _count(config, "expert_hidden", _count(config, "ffn_hidden"))
    shared, rest = divmod(_count(config, "shared_hidden", 0), max(width, 1))
    if rest:
        raise InputError("a shared expert", expected=f"a multiple of {width} wide")
    return ExpertShape(
        count, _count(config, "top_k"), width, _count(config, "shared", shared),
        min(layers - 1, max(first, len(plain))),
    )  # fmt: skip
