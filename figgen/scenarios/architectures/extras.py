"""Parameters outside a regular shape: biases, gates, sinks, indexers, linear layers.

Each function returns how many parameters a model has beyond its shape; the count is negative if it
has fewer.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.scenarios.architectures.fields import Fields, has, switch_or, whole_or, words_of
from figgen.scenarios.architectures.kinds import Kind
from figgen.scenarios.architectures.stack import WINDOWED


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraSizes:
    """Sizes of a model while its shape is built; `attention` counts a plain layer's weights."""

    layers: int
    attending: int
    linear: int
    dense: int
    sparse: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    experts: int
    expert_ffn: int
    attention: int
    attention_norms: int


def extra_of(fields: Fields, kind: Kind, sizes: ExtraSizes, kinds: list[str]) -> int:
    """Return all parameters beyond the shape."""
    return (
        _biases(fields, kind, sizes)
        + _routing(fields, kind, sizes)
        + _linear(fields, kind, sizes)
        + _indexer(fields, kind, sizes)
        + _special(fields, kind, sizes, kinds)
    )


def _biases(fields: Fields, kind: Kind, sizes: ExtraSizes) -> int:
    rows = (sizes.heads + 2 * sizes.kv_heads) * sizes.head_dim
    full = sizes.attending - sizes.linear
    found = 0
    if kind.qkv_bias:
        found += full * rows
    elif kind.bias_field and not kind.bias:
        if switch_or(fields, kind.bias_usual, kind.bias_field):
            output = sizes.hidden if kind.bias_of_output else 0
            found += full * (rows + output)
        if switch_or(fields, False, "attention_out_bias"):
            found += full * sizes.hidden
    if switch_or(fields, False, "mlp_bias") and not kind.bias:
        matrices = 2 if kind.ffn in ("gelu", "relu", "squared-relu") else 3
        found += sizes.dense * ((matrices - 1) * sizes.ffn + sizes.hidden)
    if kind.head_bias or switch_or(fields, False, "lm_head_bias"):
        found += sizes.vocab
    return found


def _routing(fields: Fields, kind: Kind, sizes: ExtraSizes) -> int:
    """Return the parameters of routers' vectors and experts' biases."""
    each = 0
    if kind.shared_gate:
        each += sizes.hidden
    if kind.router_offsets or switch_or(fields, False, "moe_router_enable_expert_bias"):
        each += sizes.experts
    if kind.biased_experts:
        each += sizes.experts * (1 + 2 * sizes.expert_ffn + sizes.hidden)
    found = sizes.sparse * each
    if kind.sinks:
        found += sizes.layers * sizes.heads
    if kind.linear == "kda-groups":
        found += (sizes.attending - sizes.linear) * sizes.hidden * sizes.heads  # gates of heads
    if kind.output_gate:
        full = sizes.attending - sizes.linear
        found += full * sizes.hidden * sizes.heads * sizes.head_dim
    return found


def _linear(fields: Fields, kind: Kind, sizes: ExtraSizes) -> int:
    """Return the parameters of linear attention less those of the attention in the shape."""
    if not kind.linear or not sizes.linear:
        return 0
    hidden = sizes.hidden
    if kind.linear == "gated-delta":
        values = whole_or(fields, 32, "linear_num_value_heads")
        key = whole_or(fields, 16, "linear_num_key_heads") * whole_or(
            fields, 128, "linear_key_head_dim"
        )
        width = whole_or(fields, 128, "linear_value_head_dim")
        value = values * width
        kernel = whole_or(fields, 4, "linear_conv_kernel_dim")
        each = hidden * (2 * key + 2 * value + 2 * values) + (2 * key + value) * kernel
        each += 2 * values + width + value * hidden
    elif kind.linear == "conv":
        each = 4 * hidden * hidden + whole_or(fields, 3, "conv_L_cache") * hidden
    elif kind.linear == "kda-groups":
        heads = whole_or(fields, sizes.heads, "linear_num_heads")
        width = whole_or(fields, 128, "linear_head_dim")
        kernel = whole_or(fields, 4, "short_conv_kernel_size", "linear_conv_kernel_dim")
        inner = heads * width
        each = 6 * hidden * inner + 3 * inner * kernel + heads + inner + hidden * heads + width
    elif kind.linear == "lightning":
        width = sizes.heads * sizes.head_dim
        each = 5 * hidden * width + width
    else:
        heads = whole_or(fields, sizes.heads, "linear_attn_config.num_heads")
        width = whole_or(fields, 128, "linear_attn_config.head_dim")
        kernel = whole_or(fields, 4, "linear_attn_config.short_conv_kernel_size")
        inner = heads * width
        each = 4 * hidden * inner + 3 * inner * kernel + inner + heads
        each += 2 * (hidden * width + width * inner) + hidden * heads + width
    return sizes.linear * (each - sizes.attention - sizes.attention_norms)


def _indexer(fields: Fields, kind: Kind, sizes: ExtraSizes) -> int:
    """Return the parameters of the indexer of sparse attention, which selects a token's keys."""
    if not kind.indexer:
        return 0
    heads = whole_or(fields, 64, "index_n_heads")
    width = whole_or(fields, 128, "index_head_dim")
    rank = whole_or(fields, 1536, "q_lora_rank")
    each = rank * heads * width + sizes.hidden * (width + heads) + 2 * width
    return sizes.layers * each


def _special(fields: Fields, kind: Kind, sizes: ExtraSizes, kinds: list[str]) -> int:
    if kind.special == "xielu":
        return 2 * sizes.layers
    if kind.special == "bitnet":
        return sizes.layers * (sizes.hidden + sizes.ffn)  # norms before two projections
    if kind.special == "embedding_norm":
        return 2 * sizes.hidden
    if kind.special == "opt":
        return 2 * sizes.hidden  # positions begin at 2
    if kind.special == "mimo_v2":
        return _mimo(fields, sizes, kinds)
    if kind.special == "gemma4":
        return _gemma_4(fields, sizes, kinds)
    if kind.special == "gemma3n":
        return _gemma_3n(fields, sizes)
    if kind.special == "longcat":
        # One router for two layers; some of its experts pass tokens through.
        idle = whole_or(fields, 0, "zero_expert_num")
        return sizes.hidden * sizes.layers // 2 * (idle - sizes.experts)
    if kind.special == "deepseek_v4":
        return _deepseek_4(fields, sizes, kinds)
    return 0


def _deepseek_4(fields: Fields, sizes: ExtraSizes, kinds: list[str]) -> int:
    """Count compressed queries and keys, grouped output, compressors, indexers and streams."""
    hidden, dim = sizes.hidden, sizes.head_dim
    rank = whole_or(fields, 1024, "q_lora_rank")
    inner = whole_or(fields, 8, "o_groups") * whole_or(fields, 1024, "o_lora_rank")
    streams = whole_or(fields, 4, "hc_mult")
    wide = sizes.heads * dim
    mixing = (2 * streams + streams * streams) * (streams * hidden + 1) + 3
    each = hidden * rank + rank + rank * wide + hidden * dim + dim + sizes.heads + 2 * mixing
    each += wide * inner // whole_or(fields, 8, "o_groups") + inner * hidden - sizes.attention
    found = sizes.layers * each + streams * (streams * hidden + 1) + 1
    width = whole_or(fields, 128, "index_head_dim")
    heads = whole_or(fields, 64, "index_n_heads")
    for one in kinds:
        if one == "heavily_compressed_attention":
            found += 128 * dim + 2 * hidden * dim + dim
        elif one == "compressed_sparse_attention":
            found += 4 * 2 * dim + 4 * hidden * dim + dim
            found += 4 * 2 * width + 4 * hidden * width + width
            found += rank * heads * width + hidden * heads
    return found


def _mimo(fields: Fields, sizes: ExtraSizes, kinds: list[str]) -> int:
    """Count narrower values, and in windowed layers sinks and twice the key-value heads."""
    value = whole_or(fields, sizes.head_dim, "v_head_dim")
    pattern = words_of(fields, "hybrid_layer_pattern")
    windowed = len([one for one in kinds if one in WINDOWED])
    if pattern:
        windowed = len([one for one in pattern if one == "1"])
    inner = whole_or(fields, 2 * sizes.kv_heads, "swa_num_key_value_heads")
    hidden = sizes.hidden
    output = hidden * sizes.heads * (value - sizes.head_dim)
    full = hidden * sizes.kv_heads * (value - sizes.head_dim)
    other = hidden * (inner * (sizes.head_dim + value) - 2 * sizes.kv_heads * sizes.head_dim)
    plain = sizes.layers - windowed
    return sizes.layers * output + plain * full + windowed * (other + sizes.heads)


def _gemma_4(fields: Fields, sizes: ExtraSizes, kinds: list[str]) -> int:
    """Count wider heads in full layers, shared keys and values, and per-layer tables."""
    hidden, width = sizes.hidden, whole_or(fields, sizes.head_dim, "global_head_dim")
    shared = whole_or(fields, 0, "num_kv_shared_layers")
    same = switch_or(fields, False, "attention_k_eq_v")
    double = switch_or(fields, False, "use_double_wide_mlp")
    heads = whole_or(fields, sizes.kv_heads, "num_global_key_value_heads")
    found = 0
    for at in range(sizes.layers):
        full = at < len(kinds) and kinds[at] not in WINDOWED
        dim = width if full else sizes.head_dim
        inner = heads if full and same else sizes.kv_heads
        keys = 0 if at >= sizes.layers - shared else (1 if full and same else 2)
        has_keys = 1 if keys else 0
        found += 2 * hidden * sizes.heads * dim + keys * hidden * inner * dim
        found += (1 + has_keys) * dim - sizes.attention - sizes.attention_norms
        found += 3 * hidden * sizes.ffn if double and not keys else 0
    return found + _gemma_tables(fields, sizes) + _gemma_experts(fields, sizes)


def _gemma_3n(fields: Fields, sizes: ExtraSizes) -> int:
    """Count streams, low-rank residuals, per-layer tables, and shared keys and values."""
    hidden, streams = sizes.hidden, whole_or(fields, 4, "altup_num_inputs")
    shared = whole_or(fields, 0, "num_kv_shared_layers")
    rank = whole_or(fields, 64, "laurel_rank")
    each = streams * streams * (streams + 1) + (streams + 2) * hidden + (2 * rank + 1) * hidden
    keys = 2 * hidden * sizes.kv_heads * sizes.head_dim + sizes.head_dim
    found = sizes.layers * each + 2 * (streams - 1) * hidden * hidden - shared * keys
    return found + _gemma_tables(fields, sizes)


def _gemma_tables(fields: Fields, sizes: ExtraSizes) -> int:
    width = whole_or(fields, 0, "hidden_size_per_layer_input")
    if not width:
        return 0
    rows = whole_or(fields, sizes.vocab, "vocab_size_per_layer_input")
    each = 2 * sizes.hidden * width + sizes.hidden
    together = sizes.layers * width
    return sizes.layers * each + rows * together + sizes.hidden * together + width


def _gemma_experts(fields: Fields, sizes: ExtraSizes) -> int:
    """Count the experts next to the dense block of every layer."""
    if not switch_or(fields, False, "enable_moe_block"):
        return 0
    count = whole_or(fields, 0, "num_experts")
    width = whole_or(fields, 0, "moe_intermediate_size")
    each = count * 3 * sizes.hidden * width + sizes.hidden * (count + 4) + count
    return sizes.layers * each


def left_out(fields: Fields) -> list[str]:
    """Return the parts of a file that are not in the shape, in words for the reader."""
    found: list[str] = []
    for name, part in TOWERS.items():
        inner = [key for key in fields.values if key.startswith(name + ".")]
        if inner:
            layers = fields.values.get(name + ".num_hidden_layers", "")
            layers = layers or fields.values.get(name + ".depth", "")
            width = fields.values.get(name + ".hidden_size", "")
            said = f" ({layers} layers of {width})" if layers and width else ""
            found.append(f"the {part}{said} is not counted: {name}")
    for name in ("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers"):
        count = whole_or(fields, 0, name) if has(fields, name) else 0
        if count:
            found.append(
                f"{count} MTP layer{'s' if count > 1 else ''}: only counted with "
                f"--mtp-layers {count}: {name}"
            )
            break
    if has(fields, "index_topk"):
        found.append(
            f"attention to the best {fields.values['index_topk']} keys is timed as full "
            "attention: index_topk"
        )
    return found


TOWERS = {
    "vision_config": "vision tower", "audio_config": "audio tower",
    "thinker_config.vision_config": "vision tower", "thinker_config.audio_config": "audio tower",
    "talker_config": "talker", "vit_config": "vision tower",
}  # fmt: skip
"""Parts of a file other than its language model."""
