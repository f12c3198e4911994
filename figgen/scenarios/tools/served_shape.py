"""The shape of a model that a page receives or a reader typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from figgen.json_text import record_of
from figgen.models.shape.model_shape import ExpertShape, LatentAttention, ModelShape, StateSpace


def served_shape(entry: Mapping[str, Any]) -> ModelShape:
    """Return the shape of an entry, filling in defaults. Raises InputError for an invalid shape."""
    experts, latent, mixers = entry.get("experts"), entry.get("latent"), entry.get("state_space")
    heads = entry["heads"]
    values = {
        **entry,
        "kv_heads": entry.get("kv_heads", heads),
        "head_dim": entry.get("head_dim", entry["hidden"] / heads),
        "experts": record_of(ExpertShape, experts) if experts is not None else None,
        "latent": record_of(LatentAttention, latent) if latent is not None else None,
        "state_space": record_of(StateSpace, mixers) if mixers is not None else None,
    }
    return record_of(ModelShape, values)
