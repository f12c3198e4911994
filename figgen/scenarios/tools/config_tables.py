"""What the modeler's page knows of kinds of models, beside what the command line reads."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

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
