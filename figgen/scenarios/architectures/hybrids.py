"""Models with state-space layers: which layers have attention, and parameters beyond a shape."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError
from figgen.models.shape.model_shape import StateSpace
from figgen.scenarios.architectures.fields import Fields, has, switch_or, whole_or, words_of
from figgen.scenarios.architectures.kinds import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Hybrid:
    """The token-mixing layers of a hybrid, and the numbers of separate feed-forward layers.

    `blocks` counts dense feed-forward layers, `sparse` those with experts.
    """

    attention: list[int]
    layers: int
    blocks: int
    sparse: int


def hybrid_of(fields: Fields, kind: Kind, layers: int) -> Hybrid:
    """Return which layers of a model have attention."""
    if kind.mixers == "nemotron":
        return _nemotron(fields)
    if kind.mixers == "mamba-1":
        period = max(1, whole_or(fields, 8, "attn_layer_period"))
        offset = whole_or(fields, 4, "attn_layer_offset")
        attention = [at for at in range(layers) if at % period == offset]
        return Hybrid(attention=attention, layers=layers, blocks=layers, sparse=0)
    if has(fields, "attn_layer_indices"):
        listed = words_of(fields, "attn_layer_indices")
        if not all(one.isdigit() for one in listed):
            raise InputError("layers with attention", expected="a list of numbers")
        attention = [int(one) for one in listed]
    else:
        kinds = words_of(fields, "layer_types", "layers_block_type")
        if kinds and not all(one in LAYER_NAMES for one in kinds):
            raise InputError("layer_types", expected="a list of layers", got=" ".join(kinds)[:40])
        attention = [at for at in range(len(kinds)) if kinds[at] in ("attention", "full_attention")]
    return Hybrid(attention=attention, layers=layers, blocks=layers, sparse=0)


LAYER_NAMES = ("attention", "full_attention", "mamba", "linear_attention")


def _nemotron(fields: Fields) -> Hybrid:
    """Return the layers of a model whose layers are each a mixer, attention, a block or experts."""
    words = words_of(fields, "layers_block_type", "layer_types")
    if not words:
        words = list(fields.values.get("hybrid_override_pattern", ""))
    mixing = [one for one in words if one in ("M", "*", "mamba", "attention", *LAYER_NAMES)]
    attention = [
        at for at in range(len(mixing)) if mixing[at] in ("*", "attention", "full_attention")
    ]
    blocks = len([one for one in words if one in ("-", "mlp")])
    sparse = len([one for one in words if one in ("E", "moe")])
    if not mixing:
        fields.missing.append("hybrid_override_pattern or layers_block_type")
    return Hybrid(attention=attention, layers=max(1, len(mixing)), blocks=blocks, sparse=sparse)


def mixers_of(fields: Fields, kind: Kind, hidden: int, found: Hybrid) -> StateSpace | None:
    """Return the mixers of a hybrid, with transformers' defaults, or None without mixers."""
    if kind.mixers == "beside" or (len(found.attention) == found.layers and found.layers):
        return None
    every, first = _distance(fields, kind, found)
    if switch_or(fields, False, "mamba_proj_bias"):
        raise InputError("mamba_proj_bias", expected="false", got=True)
    heads = whole_or(fields, 128, "mamba_n_heads", "mamba_num_heads", "n_mamba_heads")
    inner = whole_or(fields, 2, "mamba_expand", "expand") * hidden
    if has(fields, "mamba_head_dim") and kind.mixers == "nemotron":
        inner = heads * whole_or(fields, 64, "mamba_head_dim")
    if kind.mixers == "mamba-1":
        heads = max(1, inner // 64)
    if not heads or inner % heads:
        raise InputError("mamba_n_heads", expected=f"a divisor of {inner}", got=heads)
    return StateSpace(
        mixer_heads=heads,
        mixer_head_dim=inner // heads,
        state=whole_or(fields, 256, "mamba_d_state", "ssm_state_size"),
        groups=whole_or(fields, 1, "mamba_n_groups", "n_groups", "mamba_ngroups"),
        convolution=whole_or(fields, 4, "mamba_d_conv", "conv_kernel"),
        chunk=whole_or(fields, 256, "mamba_chunk_size", "chunk_size"),
        attention_every=every,
        attention_first=first,
    )


def _distance(fields: Fields, kind: Kind, found: Hybrid) -> tuple[int, int]:
    """Return the interval between layers with attention, and the first of them."""
    attention, layers = found.attention, found.layers
    if not attention:
        return 0, 0
    first = attention[0]
    second = attention[1] if len(attention) > 1 else layers
    every = second - first
    if every >= 1 and attention == list(range(first, layers, every)):
        return every, first
    if kind.mixers == "mamba-2":
        raise InputError("layers with attention", expected="evenly spaced numbers")
    even = layers // len(attention)
    fields.notes.append(
        f"{len(attention)} of {layers} layers have attention, unevenly spaced: "
        f"counted as one layer in {even}"
    )
    return even, layers - even * len(attention)


def mamba_1_parameters(fields: Fields, hidden: int) -> int:
    """Return the parameters of a Mamba-1 mixer as in Jamba, with norms of its inner vectors."""
    inner = whole_or(fields, 2, "mamba_expand") * hidden
    state = whole_or(fields, 16, "mamba_d_state")
    rank = whole_or(fields, -(-hidden // 16), "mamba_dt_rank")
    kernel = whole_or(fields, 4, "mamba_d_conv")
    found = 3 * hidden * inner + inner * (kernel + 1) + inner * (rank + 2 * state)
    return found + inner * rank + inner + inner * state + inner + rank + 2 * state


def beside_parameters(fields: Fields, hidden: int) -> int:
    """Return the parameters of a mixer next to attention in every layer, as in Falcon-H1."""
    inner = whole_or(fields, 2 * hidden, "mamba_d_ssm")
    heads = whole_or(fields, 128, "mamba_n_heads")
    maps = 2 * whole_or(fields, 1, "mamba_n_groups") * whole_or(fields, 256, "mamba_d_state")
    kernel = whole_or(fields, 4, "mamba_d_conv")
    bias = 1 if switch_or(fields, True, "mamba_conv_bias") else 0
    norm = inner if switch_or(fields, False, "mamba_rms_norm") else 0
    convolved = inner + maps
    return (
        hidden * (2 * inner + maps + heads)
        + convolved * (kernel + bias)
        + 3 * heads
        + norm
        + inner * hidden
    )


def shared_block_parameters(fields: Fields, hidden: int, ffn: int) -> int:
    """Return the parameters of Zamba2's shared attention blocks, with adapters and inputs."""
    kinds = words_of(fields, "layers_block_type", "layer_types")
    hybrid = len([one for one in kinds if one == "hybrid"])
    if not kinds:
        hybrid = len(words_of(fields, "hybrid_layer_ids"))
    blocks = whole_or(fields, 1, "num_mem_blocks")
    wide = whole_or(fields, 2 * hidden, "attention_hidden_size")
    rank = whole_or(fields, 128, "adapter_rank")
    block = 3 * wide * wide + wide * hidden + 3 * hidden * ffn + wide + hidden
    each = hidden * hidden + hidden * rank + rank * 2 * ffn
    if switch_or(fields, False, "use_shared_attention_adapter"):
        each += 3 * (wide * rank + rank * wide)
    return blocks * block + hybrid * each
