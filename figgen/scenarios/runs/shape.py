"""The shape of a run's model: the sizes of its record, over the catalog's model it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from figgen.catalog import load
from figgen.errors import InputError, unknown
from figgen.models.shape.model_shape import ExpertShape, LatentAttention, ModelShape
from figgen.scenarios.runs.fields import whole_of
from figgen.scenarios.runs.names import model_of


def shape_of(record: Mapping[str, Any], sequence: int) -> ModelShape:
    """Return the shape that a record gives, or that of the catalog's model that it names.

    If a record has both, the given sizes override those of the catalog's model. Raises InputError
    for a record with neither.
    """
    named = record.get("model_shape_ref") or record.get("model") or ""
    known = model_of(str(named)) or model_of(str(record.get("model") or ""))
    given = record.get("shape")
    if isinstance(given, Mapping):
        return _given_shape(given, sequence, known.shape if known else None)
    if known is None:
        raise unknown("model_shape_ref (or give a shape)", str(named), load.models.names())
    return replace(known.shape, sequence=sequence)


SPELLINGS = {
    "layers": ("num_layers", "layers"),
    "hidden": ("hidden_size", "hidden"),
    "heads": ("num_attention_heads", "heads"),
    "vocab": ("vocab_size", "vocab"),
    "ffn_hidden": ("ffn_hidden_size", "ffn", "ffn_hidden"),
    "kv_heads": ("num_kv_heads", "kv_heads", "num_query_groups"),
    "experts": ("num_experts", "experts"),
    "top_k": ("experts_per_token", "top_k", "moe_top_k"),
    "expert_ffn": ("moe_ffn_hidden_size", "expert_ffn_hidden", "expert_ffn"),
    "shared": ("shared_experts", "num_shared_experts"),
    "dense_layers": ("dense_layers", "first_k_dense"),
    "head_dim": ("head_dim", "kv_channels"),
}


def _given_shape(given: Mapping[str, Any], sequence: int, known: ModelShape | None) -> ModelShape:
    sizes = {
        key: whole_of(given, name)
        for key, names in SPELLINGS.items()
        for name in reversed(names)
        if given.get(name)
    }
    for key in ("layers", "hidden", "heads", "vocab", "ffn_hidden"):
        if key not in sizes:
            if known is None:
                names = " or ".join(SPELLINGS[key])
                raise InputError("shape", expected=f"a field {names}", got="none")
            sizes[key] = int(getattr(known, key))
    gated = given.get("gated_mlp")
    if gated is None:
        # Sources omit it for early models, whose blocks are two h × 4h matrices.
        early = sizes["ffn_hidden"] == 4 * sizes["hidden"]
        gated = known.ffn in ("swiglu", "geglu") if known else not early
    tied = given.get("tied_embeddings")
    usual_kv = known.kv_heads if known and known.heads == sizes["heads"] else sizes["heads"]
    return ModelShape(
        layers=sizes["layers"],
        hidden=sizes["hidden"],
        heads=sizes["heads"],
        kv_heads=sizes.get("kv_heads", usual_kv),
        head_dim=sizes.get("head_dim", max(1, sizes["hidden"] // sizes["heads"])),
        ffn_hidden=sizes["ffn_hidden"],
        vocab=sizes["vocab"],
        sequence=sequence,
        ffn="swiglu" if gated else "gelu",
        norm="rmsnorm" if gated else "layernorm",
        tied_embeddings=bool(tied if tied is not None else known and known.tied_embeddings),
        experts=_given_experts(sizes, known),
        latent=_given_latent(given, known),
    )


LATENT_SIZES = {
    "kv_rank": "kv_lora_rank",
    "nope_head_dim": "qk_head_dim",
    "rope_head_dim": "qk_pos_emb_head_dim",
    "value_head_dim": "v_head_dim",
}
"""Sizes of latent attention by Megatron-Core's names; without `q_lora_rank` queries are plain."""


def _given_latent(given: Mapping[str, Any], known: ModelShape | None) -> LatentAttention | None:
    if not given.get("kv_lora_rank"):
        return known.latent if known else None
    sizes = {key: whole_of(given, name) for key, name in LATENT_SIZES.items()}
    return LatentAttention(query_rank=whole_of(given, "q_lora_rank", 0, least=0), **sizes)


def _given_experts(sizes: Mapping[str, int], known: ModelShape | None) -> ExpertShape | None:
    usual = known.experts if known else None
    if "experts" not in sizes:
        return usual
    return ExpertShape(
        count=sizes["experts"],
        top_k=sizes.get("top_k", usual.top_k if usual else 2),
        ffn_hidden=sizes.get("expert_ffn", usual.ffn_hidden if usual else sizes["ffn_hidden"]),
        shared=sizes.get("shared", usual.shared if usual else 0),
        dense_layers=sizes.get("dense_layers", usual.dense_layers if usual else 0),
        groups=usual.groups if usual else 1,
        reached=usual.reached if usual else 1,
    )
