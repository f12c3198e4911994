"""The config.json of a model, as transformers builds it.

Fields: huggingface/transformers 5.24, LlamaConfig, Qwen3Config, MixtralConfig and Qwen3MoeConfig.
"""

from __future__ import annotations

from figgen.models.shape.model_shape import ModelShape


def model_kind(shape: ModelShape) -> str:
    """Return the `model_type` whose layers a shape has, or "" if no writer knows such layers."""
    plain = shape.ffn == "swiglu" and shape.norm == "rmsnorm" and not shape.bias
    usual = shape.norms_per_layer == 2 and shape.final_norm and not shape.extra
    special = shape.window or shape.latent is not None or shape.state_space is not None
    if not plain or not usual or special or shape.learned_positions:
        return ""
    if shape.qk_norm == "full-width":
        return ""
    if shape.experts is None:
        return "llama" if shape.qk_norm == "none" else "qwen3"
    if shape.experts.shared or shape.experts.dense_layers:
        return ""
    return "mixtral" if shape.qk_norm == "none" else "qwen3_moe"


CLASSES = {
    "llama": "LlamaForCausalLM", "qwen3": "Qwen3ForCausalLM", "mixtral": "MixtralForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
}  # fmt: skip
"""Classes of transformers by `model_type`."""

LAYERS = {
    "llama": "LlamaDecoderLayer", "qwen3": "Qwen3DecoderLayer", "mixtral": "MixtralDecoderLayer",
    "qwen3_moe": "Qwen3MoeDecoderLayer",
}  # fmt: skip
"""Classes of layers, which sharding wraps one by one."""


def model_fields(shape: ModelShape, sequence: int) -> list[tuple[str, str]]:
    """Return the fields of a model's file with their values for JSON."""
    kind = model_kind(shape)
    found = [
        ("architectures", f'["{CLASSES[kind]}"]'),
        ("model_type", f'"{kind}"'),
        ("num_hidden_layers", str(shape.layers)),
        ("hidden_size", str(shape.hidden)),
        ("num_attention_heads", str(shape.heads)),
        ("num_key_value_heads", str(shape.kv_heads)),
        ("head_dim", str(shape.head_dim)),
        ("intermediate_size", str(_width(shape, kind))),
        ("hidden_act", '"silu"'),
        ("vocab_size", str(shape.vocab)),
        ("max_position_embeddings", str(max(sequence, shape.sequence))),
        ("tie_word_embeddings", "true" if shape.tied_embeddings else "false"),
    ]
    experts = shape.experts
    if experts is not None:
        name = "num_local_experts" if kind == "mixtral" else "num_experts"
        found.append((name, str(experts.count)))
        found.append(("num_experts_per_tok", str(experts.top_k)))
        if kind == "qwen3_moe":
            found.append(("moe_intermediate_size", str(experts.ffn_hidden)))
    return found


def _width(shape: ModelShape, kind: str) -> int:
    if kind == "mixtral" and shape.experts is not None:
        return shape.experts.ffn_hidden
    return shape.ffn_hidden


def model_file(shape: ModelShape, sequence: int) -> list[str]:
    """Return the lines that write the file into a folder `model`."""
    fields = model_fields(shape, sequence)
    lines = [f'  "{name}": {value}' for name, value in fields]
    body = ",\n".join(lines).split("\n")
    return ["mkdir -p model", "cat > model/config.json <<'JSON'", "{", *body, "}", "JSON"]
