"""The shape of a model from sizes that were written or read from a script."""

from __future__ import annotations

from dataclasses import replace

from figgen.errors import InputError
from figgen.models.shape.model_shape import ExpertShape, LatentAttention, ModelShape

Sizes = dict[str, int | str | bool]
"""Sizes by name: whole numbers, names of kinds and switches."""

NEEDED = ("layers", "hidden", "heads", "vocab")
"""Sizes that a shape requires."""

USUAL_SEQUENCE = 4096
"""Default tokens of a sequence."""


def missing_sizes(sizes: Sizes) -> list[str]:
    """Return the missing ones of the sizes that a shape requires."""
    return [name for name in NEEDED if name not in sizes]


def shape_of_sizes(sizes: Sizes, base: ModelShape | None) -> ModelShape:
    """Return the shape that sizes describe; missing ones come from `base` or have defaults.

    Raises InputError for missing sizes, naming all of them, and for sizes without others that they
    require.
    """
    missing = missing_sizes(sizes)
    if base is None and missing:
        flags = ", ".join([f"--{name.replace('_', '-')}" for name in missing])
        raise InputError("the model's sizes", expected=flags)
    plain = _usual(sizes) if base is None else base
    shape = replace(
        plain, layers=_count(sizes, "layers", plain.layers),
        hidden=_count(sizes, "hidden", plain.hidden), heads=_count(sizes, "heads", plain.heads),
        kv_heads=_count(sizes, "kv_heads", plain.kv_heads),
        head_dim=_count(sizes, "head_dim", plain.head_dim),
        ffn_hidden=_count(sizes, "ffn", plain.ffn_hidden),
        vocab=_count(sizes, "vocab", plain.vocab),
        window=_count(sizes, "window", plain.window),
        full_every=_count(sizes, "full_every", plain.full_every),
        ffn=_name(sizes, "activation", plain.ffn), norm=_name(sizes, "norm", plain.norm),
        qk_norm=_name(sizes, "qk_norm", plain.qk_norm),
        tied_embeddings=_switch(sizes, "tied", plain.tied_embeddings),
        bias=_switch(sizes, "bias", plain.bias),
        learned_positions=_switch(sizes, "learned_positions", plain.learned_positions),
        experts=_experts(sizes, plain),
    )  # fmt: skip
    if any(name in sizes for name in LATENT):
        latent = _latent(sizes, shape.latent)
        shape = replace(shape, latent=latent, head_dim=latent.nope_head_dim)
    if _switch(sizes, "qkv_bias", False) and not shape.bias:
        rows = (shape.heads + 2 * shape.kv_heads) * shape.head_dim
        shape = replace(shape, extra=shape.extra + shape.layers * rows)
    return shape


EXPERTS = ("experts", "top_k", "expert_ffn", "shared_experts", "dense_layers")
LATENT = ("query_rank", "kv_rank", "nope_head_dim", "rope_head_dim", "value_head_dim")


def _usual(sizes: Sizes) -> ModelShape:
    hidden = _count(sizes, "hidden", 1)
    heads = _count(sizes, "heads", 1)
    return ModelShape(
        layers=_count(sizes, "layers", 1), hidden=hidden, heads=heads,
        kv_heads=_count(sizes, "kv_heads", heads),
        head_dim=_count(sizes, "head_dim", hidden // max(heads, 1)),
        ffn_hidden=_count(sizes, "ffn", 4 * hidden), vocab=_count(sizes, "vocab", 1),
        sequence=USUAL_SEQUENCE,
    )  # fmt: skip


def _experts(sizes: Sizes, plain: ModelShape) -> ExpertShape | None:
    known = plain.experts
    if not any(name in sizes for name in EXPERTS):
        return known
    if known is None and "experts" not in sizes:
        raise InputError("experts", expected="--experts, the number of routed experts")
    dense = _count(sizes, "ffn", plain.ffn_hidden)
    return ExpertShape(
        count=_count(sizes, "experts", known.count if known else 0),
        top_k=_count(sizes, "top_k", known.top_k if known else 1),
        ffn_hidden=_count(sizes, "expert_ffn", known.ffn_hidden if known else dense),
        shared=_count(sizes, "shared_experts", known.shared if known else 0),
        dense_layers=_count(sizes, "dense_layers", known.dense_layers if known else 0),
        groups=known.groups if known else 1,
        reached=known.reached if known else 1,
    )


def _latent(sizes: Sizes, known: LatentAttention | None) -> LatentAttention:
    missing = [name for name in LATENT if name not in sizes and name != "query_rank"]
    if known is None and missing:
        flags = ", ".join([f"--{name.replace('_', '-')}" for name in missing])
        raise InputError("latent attention", expected=flags)
    return LatentAttention(
        query_rank=_count(sizes, "query_rank", known.query_rank if known else 0),
        kv_rank=_count(sizes, "kv_rank", known.kv_rank if known else 0),
        nope_head_dim=_count(sizes, "nope_head_dim", known.nope_head_dim if known else 0),
        rope_head_dim=_count(sizes, "rope_head_dim", known.rope_head_dim if known else 0),
        value_head_dim=_count(sizes, "value_head_dim", known.value_head_dim if known else 0),
    )


def _count(sizes: Sizes, name: str, usual: int) -> int:
    value = sizes.get(name, usual)
    return value if isinstance(value, int) else usual


def _name(sizes: Sizes, name: str, usual: str) -> str:
    value = sizes.get(name, usual)
    return value if isinstance(value, str) else usual


def _switch(sizes: Sizes, name: str, usual: bool) -> bool:
    value = sizes.get(name, usual)
    return value if isinstance(value, bool) else usual
