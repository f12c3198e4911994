"""Which layers attend to all tokens, to a window, or not at all, and which have experts."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError
from figgen.scenarios.architectures.fields import (
    Fields,
    has,
    switch_or,
    whole_or,
    words_of,
)
from figgen.scenarios.architectures.kinds import Kind

WINDOWED = ("sliding_attention", "chunked_attention", "local_attention", "sliding")
LINEAR = ("linear_attention", "mamba", "recurrent", "conv", "hybrid", "lightning")
FULL = ("full_attention", "attention", "global")
COMPRESSED = {"4": "compressed_sparse_attention", "128": "heavily_compressed_attention"}
LINEAR_WINDOW = 64
"""Tokens that a linear-attention layer counts as seeing: a chunk of its computing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """The window, the interval of layers that see all tokens, and the number of linear layers."""

    window: int
    full_every: int
    linear_layers: int


def layer_kinds(fields: Fields, kind: Kind, layers: int) -> list[str]:
    """Return what each layer does, from the file's list or the rule of its kind."""
    given = words_of(fields, "layer_types", "layers_block_type")
    if given:
        return given
    if kind.special == "deepseek_v4":
        ratios = words_of(fields, "compress_ratios")[:layers]
        return [COMPRESSED.get(ratio, "full_attention") for ratio in ratios]
    if kind.linear == "gated-delta":
        every = whole_or(fields, 4, "full_attention_interval")
        return [_every(at, every, "linear_attention") for at in range(layers)]
    if kind.linear == "kda-groups":
        every = whole_or(fields, 6, "layer_group_size")
        return [_every(at, every, "linear_attention") for at in range(layers)]
    if kind.linear == "lightning":
        listed = words_of(fields, "attn_type_list")
        if listed:
            return ["full_attention" if one == "1" else "linear_attention" for one in listed]
        return ["linear_attention" if at % 2 else "full_attention" for at in range(layers)]
    if kind.linear == "kda":
        return _kda(fields, layers)
    if kind.linear == "conv":
        full = words_of(fields, "full_attn_idxs")
        return ["full_attention" if str(at) in full else "conv" for at in range(layers)]
    return []


def windows_of(fields: Fields, kind: Kind, kinds: list[str], layers: int) -> Windows:
    """Return the windows of a model; linear attention counts as a window of one chunk."""
    linear = [one for one in kinds if one in LINEAR]
    if kind.linear and linear:
        return Windows(
            window=LINEAR_WINDOW,
            full_every=_full_every(fields, kinds, layers),
            linear_layers=len(linear),
        )
    window = whole_or(fields, 0, "sliding_window", "attention_chunk_size", "sliding_window_size")
    listed = any(one in WINDOWED for one in kinds)
    if not window or (kind.full_every < 0 and not listed):
        return Windows(window=0, full_every=0, linear_layers=0)
    if not switch_or(fields, not _is_qwen(fields), "use_sliding_window"):
        return Windows(window=0, full_every=0, linear_layers=0)
    if kinds:
        if not listed:
            return Windows(window=0, full_every=0, linear_layers=0)
        every = _full_every(fields, kinds, layers)
        return Windows(window=window, full_every=every, linear_layers=0)
    before = whole_or(fields, 0, "max_window_layers")
    if before >= layers or (kind.full_every == 0 and _is_qwen(fields) and before):
        # Qwen's windows begin after that layer; the layers before see all tokens.
        return _behind(fields, window, before, layers)
    pattern = whole_or(fields, kind.full_every, *PATTERNS)
    return Windows(window=window, full_every=pattern, linear_layers=0)


PATTERNS = ("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers")
"""Names of the interval of layers that see all tokens."""


def sparse_layers(fields: Fields, kind: Kind, layers: int) -> list[bool]:
    """Return which layers have experts."""
    listed = words_of(fields, "mlp_layer_types")
    if len(listed) == layers:
        return [one in ("sparse", "moe", "hash_moe") for one in listed]
    listed = words_of(fields, "moe_layer_freq")
    if len(listed) == layers and layers > 1:
        return [one == "1" for one in listed]
    if has(fields, "moe_layers_enum"):
        named = fields.values["moe_layers_enum"].replace(",", " ").split()
        return [str(at) in named for at in range(layers)]
    if kind.special == "llama4":
        named = words_of(fields, "moe_layers")
        if named:
            return [str(at) in named for at in range(layers)]
        step = max(1, whole_or(fields, 1, "interleave_moe_layer_step"))
        return [(at + 1) % step == 0 for at in range(layers)]
    if kind.special == "ernie":
        return _ernie(fields, layers)
    if kind.mixers == "mamba-1":
        period = whole_or(fields, 2, "expert_layer_period")
        offset = whole_or(fields, 1, "expert_layer_offset")
        return [at % max(period, 1) == offset for at in range(layers)]
    return _usual_sparse(fields, layers)


def _usual_sparse(fields: Fields, layers: int) -> list[bool]:
    first = whole_or(
        fields,
        _default_dense(fields),
        "first_k_dense_replace",
        "moe_first_k_dense",
        "num_dense_layers",
    )
    step = max(1, whole_or(fields, 1, *STEPS))
    plain = words_of(fields, "mlp_only_layers")
    for one in plain:
        if not one.isdigit():
            raise InputError("mlp_only_layers", expected="a list of numbers", got=one)
    by_step = has(fields, "decoder_sparse_step") or has(fields, "moe_layer_interval")
    found: list[bool] = []
    for at in range(layers):
        hit = (at + 1) % step == 0 if by_step else at % step == 0
        found.append(at >= first and hit and str(at) not in plain)
    return found


STEPS = ("decoder_sparse_step", "moe_layer_freq", "moe_layer_interval")
"""Names of the interval of layers with experts."""


def _default_dense(fields: Fields) -> int:
    """Return the default number of leading dense layers: three for GLM-5's kind."""
    kind = fields.values.get("model_type", "")
    if kind in ("glm_moe_dsa", "deepseek_v32"):
        return 3
    return 1 if kind in ("glm4_moe_lite", "kimi_linear", "mimo_v2_flash", "hy_v3") else 0


def _every(at: int, every: int, other: str) -> str:
    return other if (at + 1) % max(every, 1) else "full_attention"


def _kda(fields: Fields, layers: int) -> list[str]:
    """Return the kinds of Kimi Linear's layers, which it numbers from 1."""
    full = words_of(fields, "linear_attn_config.full_attn_layers")
    return ["full_attention" if str(at + 1) in full else "linear_attention" for at in range(layers)]


def _ernie(fields: Fields, layers: int) -> list[bool]:
    start = whole_or(fields, 1, "moe_layer_start_index")
    end = whole_or(fields, layers - 1, "moe_layer_end_index")
    step = max(1, whole_or(fields, 1, "moe_layer_interval"))
    return [(at + 1) % step == 0 and start <= at <= end for at in range(layers)]


def _is_qwen(fields: Fields) -> bool:
    return fields.values.get("model_type", "").startswith(("qwen", "smollm"))


def _behind(fields: Fields, window: int, before: int, layers: int) -> Windows:
    """Return windows in the layers after the first `before`."""
    if before >= layers:
        return Windows(window=0, full_every=0, linear_layers=0)
    every = max(1, round(layers / before))
    fields.notes.append(
        f"the first {before} layers see all tokens: counted as one layer in {every}"
    )
    return Windows(window=window, full_every=every, linear_layers=0)


def _full_every(fields: Fields, kinds: list[str], layers: int) -> int:
    """Return the interval of layers that see all tokens, or 0 if none do."""
    full = [at for at in range(len(kinds)) if kinds[at] in FULL]
    if not full:
        return 0
    every = full[0] + 1
    if full == [at for at in range(layers) if (at + 1) % every == 0]:
        return every
    near = max(1, round(layers / len(full)))
    fields.notes.append(
        f"{len(full)} of {layers} layers see all tokens, unevenly spaced: "
        f"counted as one layer in {near}"
    )
    return near
