"""The modeler's form for a model that is in no catalog."""

from __future__ import annotations

from typing import Any

from figgen.models.shape.model_shape import FFN_MATRICES

_FFN = {
    "swiglu": "SwiGLU", "geglu": "GEGLU", "gelu": "GELU", "relu": "ReLU",
    "squared-relu": "squared ReLU",
}  # fmt: skip

_FIELDS: tuple[tuple[str, str, dict[str, tuple[str, ...]]], ...] = (
    ("model", "whole", {
        "layers": ("Layers",), "hidden": ("Hidden width",), "heads": ("Attention heads",),
        "kv_heads": ("KV heads",), "ffn_hidden": ("FFN width",), "vocab": ("Vocabulary",),
        "head_dim": ("Head width", "hidden ÷ heads"),
    }),
    ("model", "select", {"ffn": ("FFN",)}),
    ("model", "check", {"tied": ("Tied embeddings: output layer and embedding share weights",)}),
    ("model", "whole", {"experts": ("Experts", "none")}),
    ("experts", "whole", {
        "top_k": ("Experts per token",), "expert_ffn": ("Expert FFN width",),
        "shared": ("Shared experts",), "dense_layers": ("Leading dense layers",),
    }),
    ("kv_rank", "whole", {
        "kv_rank": ("Rank of keys and values (MLA)", "none"),
        "query_rank": ("Rank of queries (MLA)", "none"),
        "nope_head_dim": ("Head width without position", "none"),
        "rope_head_dim": ("Head width with position", "none"),
        "value_head_dim": ("Value head width", "none"),
    }),
    ("model", "whole", {"mixer_heads": ("Mamba-2 heads", "none")}),
    ("mixer_heads", "whole", {
        "mixer_head_dim": ("Mamba-2 head width",), "mixer_state": ("Mamba-2 state size",),
        "mixer_groups": ("Mamba-2 groups",), "mixer_chunk": ("Mamba-2 chunk, tokens",),
        "attention_every": ("Attention every … layers",),
        "attention_first": ("First attention layer, from 0",),
    }),
)  # fmt: skip
"""Fields by key: the part of the form, the kind, the label, and the text of an empty field."""


def own_shape() -> list[dict[str, Any]]:
    """Return the form's fields; `of` names the model, its experts, latent attention or mixers."""
    found: list[dict[str, Any]] = []
    for of, kind, names in _FIELDS:
        wide = {"wide": True} if kind != "whole" else {}
        for key, (label, *empty) in names.items():
            hint = {"empty": empty[0]} if empty else {}
            found.append({"of": of, "key": key, "label": label, "kind": kind, **hint, **wide})
    counts = {2: "two", 3: "three"}
    next(one for one in found if one["key"] == "ffn")["options"] = [
        [name, f"{words}, {counts[FFN_MATRICES[name]]} matrices"] for name, words in _FFN.items()
    ]
    return found
