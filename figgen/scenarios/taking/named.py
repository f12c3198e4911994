"""Finds the model of the catalog that has the sizes in a script."""

from __future__ import annotations

MOST_PADDING = 1024
"""Most rows that frameworks add to an embedding table so that it divides evenly."""

Sizes = dict[str, int]
"""Sizes of a catalog model under the options' names, 0 for experts that it lacks."""


def name_of_sizes(known: dict[str, int | str | bool], models: dict[str, Sizes]) -> str:
    """Return the catalog's model with all the sizes in `known`, or "".

    If several have them, the first with equally long sequences counts, else the last.
    """
    if any(name not in known for name in ("layers", "hidden", "heads", "ffn")):
        return ""
    found = [name for name, sizes in models.items() if _has_sizes(sizes, known)]
    long = [name for name in found if models[name]["sequence"] == known.get("sequence", 0)]
    if long:
        return long[0]
    return found[-1] if found else ""


def _has_sizes(sizes: Sizes, known: dict[str, int | str | bool]) -> bool:
    experts = sizes["experts"] > 0
    for name in ("layers", "hidden", "heads"):
        if _given(known, name, 0) != sizes[name]:
            return False
    rebuilt = sizes["kv_rank"] > 0 and "kv_heads" not in known  # from a cached latent vector
    heads = _given(known, "kv_heads", _given(known, "heads", 0))
    if heads != sizes["kv_heads"] and not rebuilt:
        return False
    padding = _given(known, "vocab", sizes["vocab"]) - sizes["vocab"]
    if not 0 <= padding < MOST_PADDING:
        return False
    if _given(known, "experts", 0) != sizes["experts"]:
        return False
    if _given(known, "top_k", sizes["top_k"]) != sizes["top_k"]:
        return False
    if _given(known, "kv_rank", 0) != sizes["kv_rank"]:
        return False
    width = _given(known, "ffn", 0)
    if experts and _given(known, "expert_ffn", width) != sizes["expert_ffn"]:
        return False
    alike = experts and "expert_ffn" not in known and sizes["ffn"] == sizes["expert_ffn"]
    return alike or width == sizes["ffn"]


def _given(known: dict[str, int | str | bool], name: str, usual: int) -> int:
    value = known.get(name, usual)
    return value if isinstance(value, int) else usual
