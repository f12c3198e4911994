"""Bytes sent by each form of context parallelism, for all kinds of attention heads.

Sources: Jacobs et al. 2023 (DeepSpeed Ulysses), arXiv:2309.14509, section 3.2, with key and
value heads counted apart; DeepSeek-V2, arXiv:2405.04434, section 2.1, for latent attention.
"""

from __future__ import annotations

from figgen.errors import InputError, unknown
from figgen.models.shape.model_shape import ModelShape

KV_FORMS = ("expanded", "latent")


def kv_elements_per_token(shape: ModelShape, form: str = "expanded") -> int:
    """Return the elements of keys and values of one token in one layer.

    `latent` is what latent attention would send if receivers expand it themselves: the
    compressed vector and the shared rotary key. Raises InputError for a shape without it.
    """
    if form not in KV_FORMS:
        raise unknown("form of keys and values", form, KV_FORMS)
    mla = shape.latent
    if form == "latent":
        if mla is None:
            raise InputError("form of keys and values", expected="latent attention", got=form)
        return mla.kv_rank + mla.rope_head_dim
    if mla is None:
        return 2 * shape.kv_heads * shape.head_dim
    return shape.heads * (mla.nope_head_dim + mla.rope_head_dim + mla.value_head_dim)


def ulysses_bytes(shape: ModelShape, *, cp: int, tokens: int, kv_heads: int | None = None) -> float:
    """Return the bytes in 16 bits that a rank sends in a layer's forward to trade tokens for heads.

    `tokens` are those of the rank. Queries, keys and values go out by head, the output comes
    back by token; where ranks outnumber the key and value heads, each gets a copy of one.
    Raises InputError where `cp` does not divide the heads.
    """
    if cp < 1 or shape.heads % cp:
        raise InputError("cp", expected=f"a divisor of {shape.heads} heads", got=cp)
    mla = shape.latent
    if mla is None:
        copied = max(shape.kv_heads if kv_heads is None else kv_heads, cp)
        elements = 2 * (shape.heads + copied) * shape.head_dim
    else:
        key = mla.nope_head_dim + mla.rope_head_dim
        elements = shape.heads * (2 * key + 2 * mla.value_head_dim)
    return 2 * elements * tokens * (cp - 1) / cp
