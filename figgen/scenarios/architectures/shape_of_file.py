"""The shape of a model from the fields of its `config.json`, with notes on what is not counted."""

from __future__ import annotations

from dataclasses import replace

from figgen.errors import InputError, unknown
from figgen.models.shape.model_shape import ExpertShape, LatentAttention, ModelShape
from figgen.models.shape.transformer import (
    attention_weights,
    ffn_weights,
    mixer_parameters,
    norm_parameters,
    parameter_counts,
)
from figgen.scenarios.architectures.extras import ExtraSizes, extra_of, left_out
from figgen.scenarios.architectures.fields import (
    Fields,
    has,
    note_unread,
    switch_or,
    whole,
    whole_or,
    words_of,
)
from figgen.scenarios.architectures.hybrids import (
    Hybrid,
    beside_parameters,
    hybrid_of,
    mamba_1_parameters,
    mixers_of,
    shared_block_parameters,
)
from figgen.scenarios.architectures.kinds import KINDS, SAME_AS, Kind
from figgen.scenarios.architectures.refused import refuse_others
from figgen.scenarios.architectures.stack import layer_kinds, sparse_layers, windows_of

RENAMED = {"n_embed": "hidden_size", "padded_vocab_size": "vocab_size", "dim": "hidden_size"}
"""Names in BLOOM's, ChatGLM's and Falcon Perception's files for common fields."""

LONGEST = 8192
"""Most tokens of a sequence: a file gives the longest context, not the length in training."""


def shape_of_fields(fields: Fields) -> ModelShape:
    """Return the shape that a file describes; the fields' notes say what is not counted.

    Raises InputError for missing fields, naming all of them, and for fields that do not determine a
    shape.
    """
    kind = _kind_of(fields)
    for name, value in kind.usual.items():
        if not has(fields, name):
            fields.values[name] = value
    for old, name in RENAMED.items():
        if has(fields, old) and not has(fields, name):
            fields.values[name] = fields.values[old]
    if kind.special == "minicpm3" and not has(fields, "v_head_dim"):
        heads = max(1, whole(fields, "num_attention_heads"))
        fields.values["v_head_dim"] = str(whole(fields, "hidden_size") // heads)
    shape = _shape(fields, kind)
    fields.notes.extend(left_out(fields))
    note_unread(fields)
    return shape


def _kind_of(fields: Fields) -> Kind:
    """Return the kind of a file; an unknown kind is read as Llama, with a note."""
    inner = fields.values.get("text_config.model_type", "")
    if fields.values.get("model_type", "") == "minicpmv":
        # Its language model is Qwen2 or MiniCPM; only Qwen's files have this switch.
        fields.values["model_type"] = "qwen2" if has(fields, "use_sliding_window") else "minicpm"
    if fields.values.get("audio_config.model_type", "") == "qwen2_audio_encoder":
        return KINDS["qwen2_audio"]  # omits sizes of its language model
    for name in (inner, fields.values.get("model_type", "")):
        found = SAME_AS.get(name, name)
        if found in KINDS:
            fields.values["model_type"] = found
            return KINDS[found]
        if found.removesuffix("_text") in KINDS:
            return KINDS[found.removesuffix("_text")]
    named = _of_architecture(fields)
    if named and not inner and not has(fields, "model_type"):
        fields.values["model_type"] = named
        return KINDS[named]
    name = inner or fields.values.get("model_type", "None")
    refuse_others(fields, name)
    error = unknown("model_type", name, KINDS)
    meant = f" (did you mean {' or '.join(error.nearest)}?)" if error.nearest else ""
    fields.notes.append(
        f"unknown model_type {name!r}{meant}: its common fields are read as Llama's"
    )
    return KINDS["llama"]


def _of_architecture(fields: Fields) -> str:
    """Return the kind that a file without `model_type` names as its class, or ""."""
    words = words_of(fields, "architectures")
    plain = words[0].lower().removesuffix("forcausallm") if words else ""
    for name in KINDS:
        if plain and name.replace("_", "") == plain:
            return name
    return ""


def _shape(fields: Fields, kind: Kind) -> ModelShape:
    hidden = whole(fields, "hidden_size", "n_embd", "d_model")
    layers = _layers(fields, kind)
    heads = whole(fields, "num_attention_heads", "n_head", "n_heads")
    kv_heads = _kv_heads(fields, kind, heads)
    vocab = whole(fields, "vocab_size")
    sequence = whole_or(fields, LONGEST, *SEQUENCES)
    _raise_missing(fields)
    latent = _latent(fields)
    head_dim = (
        latent.nope_head_dim
        if latent
        else whole_or(
            fields, hidden // max(heads, 1), "head_dim", "attention_head_dim", "kv_channels"
        )
    )
    ffn = _dense_width(fields, kind, hidden)
    kinds = layer_kinds(fields, kind, layers)
    hybrid = hybrid_of(fields, kind, layers) if kind.mixers and kind.mixers != "zamba2" else None
    mixers = mixers_of(fields, kind, hidden, hybrid) if hybrid else None
    windows = windows_of(fields, kind, kinds, layers)
    experts = _experts(fields, kind, layers, ffn, hybrid)
    plain = ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        ffn_hidden=_spread(hybrid, ffn, layers),
        vocab=vocab,
        sequence=min(sequence, LONGEST),
        ffn=_ffn(fields, kind),
        norm="rmsnorm" if kind.norm == "none" else kind.norm,
        norms_per_layer=_norms(fields, kind),
        final_norm=kind.norm != "none",
        qk_norm=_qk_norm(fields, kind),
        bias=_bias(fields, kind),
        tied_embeddings=switch_or(fields, kind.tied, "tie_word_embeddings", "weight_tying"),
        learned_positions=kind.learned_positions,
        experts=experts,
        latent=latent,
        window=windows.window,
        full_every=windows.full_every,
        state_space=mixers,
    )
    if kind.mixers == "zamba2":
        return _zamba(fields, plain, ffn)
    extra = extra_of(fields, kind, _sizes(fields, plain, windows.linear_layers, ffn), kinds)
    extra += _rest(fields, kind, plain, hybrid, ffn)
    return replace(plain, extra=extra)


def _kv_heads(fields: Fields, kind: Kind, heads: int) -> int:
    """Return the heads of keys and values, 1 for multi-query attention."""
    new = kind.special == "falcon" and switch_or(fields, False, "new_decoder_architecture")
    names = ["num_key_value_heads", "attn_config.kv_n_heads", "multi_query_group_num"]
    if kind.special == "falcon" and not new:
        names = []
    else:
        names += ["num_kv_heads", "n_head_kv", "n_kv_heads", "num_attention_groups"]
    shared = not new and switch_or(fields, False, "multi_query")
    return whole_or(fields, 1 if shared else heads, *names)


def _norms(fields: Fields, kind: Kind) -> int:
    """Return the norms per layer; parallel blocks of Falcon's first models share one."""
    if kind.norm == "none":
        return 0
    if kind.special != "falcon":
        return kind.norms_per_layer
    if switch_or(fields, False, "new_decoder_architecture"):
        return whole_or(fields, 2, "num_ln_in_parallel_attn")
    return 1 if switch_or(fields, True, "parallel_attn") else 2


SEQUENCES = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "model_max_length",
    "seq_length",
)


def _layers(fields: Fields, kind: Kind) -> int:
    if kind.mixers == "nemotron":
        return hybrid_of(fields, kind, 0).layers
    found = whole(fields, "num_hidden_layers", "n_layer", "n_layers", "num_layers")
    if found > MOST_LAYERS:
        raise InputError("num_hidden_layers", expected=f"at most {MOST_LAYERS:,}", got=found)
    return 2 * found if kind.special == "longcat" else found


MOST_LAYERS = 10_000
"""Most layers of a file, since each layer takes time and any number can be written."""


def _raise_missing(fields: Fields) -> None:
    if fields.missing:
        names = ", ".join(fields.missing)
        number = "a whole number" if len(fields.missing) == 1 else "whole numbers"
        named = [name for name in COMMON if fields.values.get(name, "")]
        got = ", ".join([f"{name} {fields.values[name]}" for name in named])
        raise InputError(f"{names}", expected=number, got=f"only {got}" if got else None)


COMMON = ("model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
"""Fields that a message lists if others are missing."""


def _latent(fields: Fields) -> LatentAttention | None:
    if not has(fields, "kv_lora_rank"):
        return None
    sizes = LatentAttention(
        query_rank=whole_or(fields, 0, "q_lora_rank"),
        kv_rank=whole(fields, "kv_lora_rank"),
        nope_head_dim=whole(fields, "qk_nope_head_dim"),
        rope_head_dim=whole(fields, "qk_rope_head_dim"),
        value_head_dim=whole(fields, "v_head_dim"),
    )
    _raise_missing(fields)
    return sizes


def _qk_norm(fields: Fields, kind: Kind) -> str:
    if kind.special == "cohere":
        return "full-width" if switch_or(fields, False, "use_qk_norm") else "none"
    if kind.qk_norm_field:
        usual = kind.qk_norm_field == "use_qk_norm" and "hunyuan" in fields.values["model_type"]
        return kind.qk_norm if switch_or(fields, usual, kind.qk_norm_field) else "none"
    return kind.qk_norm


def _bias(fields: Fields, kind: Kind) -> bool:
    if kind.all_bias_field:
        return switch_or(fields, kind.bias, kind.all_bias_field)
    return kind.bias


def _ffn(fields: Fields, kind: Kind) -> str:
    """Return the kind of feed-forward block; for unknown models it follows the activation."""
    if kind is not KINDS["llama"] or "hidden_act" not in fields.values:
        return kind.ffn
    plain = fields.values["hidden_act"] in ("relu2", "relu", "gelu", "gelu_new")
    known = SAME_AS.get(fields.values.get("model_type", ""), fields.values.get("model_type", ""))
    if plain and known not in KINDS:
        fields.notes.append("the block is assumed to have no gate, by its activation")
        return "squared-relu" if fields.values["hidden_act"] == "relu2" else "gelu"
    return kind.ffn


def _dense_width(fields: Fields, kind: Kind, hidden: int) -> int:
    """Return the width of dense feed-forward blocks."""
    # A shared expert is always present, even without routed experts.
    alone = kind.mixers == "mamba-2" and fields.values.get("num_local_experts") == "0"
    if alone:
        return whole_or(fields, 4 * hidden, "shared_intermediate_size")
    if kind.linear == "conv":
        return _adjusted_width(fields)
    width = whole_or(
        fields,
        whole_or(fields, 4, "expansion_ratio") * hidden,
        "ffn_config.ffn_hidden_size",
        "intermediate_size_mlp",
        "dense_intermediate_size",
        "intermediate_size",
        "n_inner",
        "ffn_hidden_size",
        "ffn_dim",
        "mlp_hidden_size",
    )
    return width // 2 if kind.special == "halved" else width


def _adjusted_width(fields: Fields) -> int:
    """Return the width of LFM2's blocks: two thirds of the file's, rounded up to a multiple."""
    width = whole(fields, "block_ff_dim", "intermediate_size")
    _raise_missing(fields)
    if not switch_or(fields, True, "block_auto_adjust_ff_dim"):
        return width
    multiple = max(1, whole_or(fields, 256, "block_multiple_of"))
    return -(-(2 * width // 3) // multiple) * multiple


def _spread(hybrid: Hybrid | None, ffn: int, layers: int) -> int:
    """Return the block width spread over all mixing layers, if fewer layers have a block."""
    if hybrid is None or hybrid.blocks == layers:
        return ffn
    return ffn * hybrid.blocks // layers


def _experts(
    fields: Fields, kind: Kind, layers: int, ffn: int, hybrid: Hybrid | None
) -> ExpertShape | None:
    names = (
        "n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts",
        "ffn_config.moe_num_experts",
    )  # fmt: skip
    count = whole_or(fields, 0, *names)
    if not count or kind.special == "gemma4":
        return None
    width = whole_or(
        fields,
        whole_or(fields, ffn, "intermediate_size"),
        "moe_intermediate_size",
        "expert_ffn_hidden_size",
    )
    top_k = whole(fields, *CHOSEN)
    _raise_missing(fields)
    if kind.special == "longcat":
        return _beside_two_blocks(fields, count, top_k, width, ffn)
    shared = _shared(fields, kind, width)
    if hybrid is not None and hybrid.blocks != layers:
        return _spread_experts(fields, hybrid, layers, (count, top_k, width))
    sparse = sparse_layers(fields, kind, layers)
    plain = sparse.count(False)
    if plain == layers:
        return None
    if sparse != [False] * plain + [True] * (layers - plain):
        fields.notes.append(
            f"{plain} dense layers between expert layers are counted as the first layers"
        )
    groups = whole_or(fields, 1, "n_group")
    return ExpertShape(
        count=count,
        top_k=top_k,
        ffn_hidden=width,
        shared=shared,
        dense_layers=plain,
        groups=groups,
        reached=min(groups, whole_or(fields, groups, "topk_group")),
    )


CHOSEN = (
    "num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "moe_top_k",
    "top_k_experts", "topk", "ffn_config.moe_top_k",
)  # fmt: skip
"""Names of the number of experts per token."""


def _shared(fields: Fields, kind: Kind, width: int) -> int:
    """Return the shared experts per layer; a remainder of their width counts separately."""
    together = whole_or(fields, 0, *SHARED_WIDTHS)
    shared = whole_or(
        fields,
        together // max(width, 1) if together else _usual_shared(fields, kind),
        "n_shared_experts",
        "num_shared_experts",
        "moe_num_shared_experts",
        "num_shared_expert",
    )
    if together and together % max(width, 1) and kind.mixers != "nemotron":
        fields.notes.append(
            f"a shared expert of {together} is counted as {shared} of {width} plus the remainder"
        )
    return shared


def _spread_experts(
    fields: Fields, hybrid: Hybrid, layers: int, routed: tuple[int, int, int]
) -> ExpertShape | None:
    """Return experts (count, top k, width) of separate layers, spread over all mixing layers."""
    if not hybrid.sparse:
        return None
    count, top_k, width = routed
    each = width * hybrid.sparse // layers
    together = whole_or(fields, 0, *SHARED_WIDTHS) * hybrid.sparse // layers
    return ExpertShape(
        count=count,
        top_k=top_k,
        ffn_hidden=each,
        shared=together // max(each, 1),
        dense_layers=0,
    )


def _beside_two_blocks(fields: Fields, count: int, top_k: int, width: int, ffn: int) -> ExpertShape:
    """Return the experts of LongCat's layer: two attentions, two blocks, one set of experts.

    It counts as two layers with experts of half the width, whose dense blocks are shared experts.
    Some of a token's choices are experts that pass it through and compute nothing.
    """
    idle = whole_or(fields, 0, "zero_expert_num")
    each = max(1, width // 2)
    if idle:
        fields.notes.append(
            f"{idle} of {count + idle} experts pass tokens through, so of {top_k} per token "
            f"{top_k * count // (count + idle)} count"
        )
    return ExpertShape(
        count=count,
        top_k=max(1, top_k * count // (count + idle)),
        ffn_hidden=each,
        shared=ffn // each,
        dense_layers=0,
    )


SHARED_WIDTHS = (
    "shared_expert_intermediate_size", "shared_intermediate_size",
    "moe_shared_expert_intermediate_size", "share_expert_dim",
)  # fmt: skip
"""Names of the total width of shared experts."""


def _usual_shared(fields: Fields, kind: Kind) -> int:
    """Return the shared experts of Llama 4 and of Hunyuan's mixtures, which their files omit."""
    if kind.special == "llama4":
        return 1
    return 1 if fields.values.get("use_mixed_mlp_moe") in ("true", "True") else 0


def _sizes(fields: Fields, shape: ModelShape, linear: int, ffn: int) -> ExtraSizes:
    experts = shape.experts
    norms = norm_parameters(replace(shape, norms_per_layer=0, final_norm=False)) // shape.layers
    return ExtraSizes(
        layers=shape.layers,
        attending=shape.attention_layers,
        linear=linear,
        dense=shape.dense_layers,
        sparse=shape.expert_layers,
        hidden=shape.hidden,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        ffn=ffn,
        vocab=shape.vocab,
        experts=experts.count if experts else 0,
        expert_ffn=experts.ffn_hidden if experts else 0,
        attention=attention_weights(shape),
        attention_norms=norms,
    )


def _rest(fields: Fields, kind: Kind, shape: ModelShape, hybrid: Hybrid | None, ffn: int) -> int:
    """Return the parameters that spreading blocks, other mixers and shared experts leave out."""
    found = 0
    experts = shape.experts
    together = whole_or(fields, 0, *SHARED_WIDTHS)
    if experts and together and not has(fields, "n_shared_experts"):
        width = together - experts.shared * experts.ffn_hidden
        if hybrid is None or hybrid.blocks == shape.layers:
            found += shape.expert_layers * ffn_weights(shape, width)
    if kind.mixers == "beside":
        fields.notes.append("mixers beside attention count in parameters but not in time")
        return found + shape.layers * beside_parameters(fields, shape.hidden)
    if kind.mixers == "mamba-1":
        each = mamba_1_parameters(fields, shape.hidden) - mixer_parameters(shape)
        return found + shape.state_space_layers * each
    if kind.mixers == "nemotron" and hybrid:
        return found + _nemotron_rest(fields, shape, hybrid, ffn)
    return found


def _nemotron_rest(fields: Fields, shape: ModelShape, hybrid: Hybrid, ffn: int) -> int:
    """Return the parameters of blocks and experts, minus what the shape spreads over layers."""
    counts = parameter_counts(shape)
    hidden = shape.hidden
    norms = (hybrid.blocks + hybrid.sparse) * hidden
    whole_blocks = hybrid.blocks * ffn_weights(shape, ffn)
    if hybrid.sparse and shape.experts:
        count = shape.experts.count
        width = whole_or(fields, ffn, "moe_intermediate_size")
        inner = whole_or(fields, hidden, "moe_latent_size")
        together = whole_or(fields, 0, *SHARED_WIDTHS)
        each = count * 2 * inner * width + hidden * count + 2 * hidden * together
        each += 2 * hidden * inner if has(fields, "moe_latent_size") else 0
        whole_blocks += hybrid.sparse * each
    fields.notes.append(
        f"{hybrid.blocks + hybrid.sparse} feed-forward blocks are counted as narrower ones in each "
        f"of the {shape.layers} token-mixing layers"
    )
    spread = counts.ffn + counts.router + counts.shared_experts + counts.routed_experts
    return norms + whole_blocks - spread


def _zamba(fields: Fields, shape: ModelShape, ffn: int) -> ModelShape:
    """Return a shape of mixers only; shared blocks count in parameters but not in time."""
    mixers = mixers_of(
        fields,
        KINDS["zamba2"],
        shape.hidden,
        Hybrid(attention=[], layers=shape.layers, blocks=shape.layers, sparse=0),
    )
    fields.notes.append("blocks shared by layers count in parameters but not in time")
    extra = shared_block_parameters(fields, shape.hidden, ffn)
    return replace(shape, ffn_hidden=0, window=0, full_every=0, state_space=mixers, extra=extra)
