"""Finds the model of the catalog that has the sizes in a script."""

from __future__ import annotations

MOST_PADDING = 1024
"""Most rows that frameworks add to an embedding table so that it divides evenly."""

Sizes = dict[str, int | str | bool]
"""Sizes and kinds of layers under the options' names; of a catalog model 0 for experts that it
lacks."""

KINDS = ("activation", "norm", "bias", "tied", "learned_positions")
"""Kinds that tell a model from others of its sizes, where a text gives them."""


def name_of_sizes(known: Sizes, taken: Sizes, models: dict[str, Sizes]) -> str:
    """Return the catalog's model with all the sizes in `known` and kinds in `taken`, or "".

    If several have them, the first with equally long sequences counts, else the last.
    """
    if any(name not in known for name in ("layers", "hidden", "heads", "ffn")):
        return ""
    found = [
        name
        for name, sizes in models.items()
        if _has_kinds(sizes, taken) and _has_sizes(sizes, known)
    ]
    long = [name for name in found if models[name]["sequence"] == known.get("sequence", 0)]
    if long:
        return long[0]
    return found[-1] if found else ""


def other_sizes(taken: Sizes, models: dict[str, Sizes]) -> Sizes:
    """Return the sizes that a text leaves to the model that it names, if it gives other ones."""
    sizes = models.get(str(taken.get("model", "")), {})
    if all(taken.get(name, sizes[name]) == sizes[name] for name in OWN if name in sizes):
        return {}
    return {
        name: value
        for name, value in sizes.items()
        if name not in taken and name != "sequence" and (name in KINDS or value not in (0, "none"))
    }


OWN = ("layers", "hidden", "heads")
"""Sizes that make it a different model."""


def _has_kinds(sizes: Sizes, taken: Sizes) -> bool:
    if any(name in taken and taken[name] != sizes[name] for name in KINDS):
        return False
    return taken.get("qk_norm", "none") == sizes["qk_norm"] and not taken.get("qkv_bias", False)


def _has_sizes(sizes: Sizes, known: Sizes) -> bool:
    experts = _given(sizes, "experts", 0)
    for name in ("layers", "hidden", "heads"):
        if _given(known, name, 0) != sizes[name]:
            return False
    rebuilt = _given(sizes, "kv_rank", 0) > 0 and "kv_heads" not in known  # from a latent vector
    heads = _given(known, "kv_heads", _given(known, "heads", 0))
    if heads != sizes["kv_heads"] and not rebuilt:
        return False
    vocab = _given(sizes, "vocab", 0)
    padding = _given(known, "vocab", vocab) - vocab
    if not 0 <= padding < MOST_PADDING:
        return False
    for name in ("experts", "kv_rank"):
        if _given(known, name, 0) != sizes[name]:
            return False
    if known.get("top_k", sizes["top_k"]) != sizes["top_k"]:
        return False
    width = _given(known, "ffn", 0)
    if experts and _given(known, "expert_ffn", width) != sizes["expert_ffn"]:
        return False
    alike = experts > 0 and "expert_ffn" not in known and sizes["ffn"] == sizes["expert_ffn"]
    return alike or width == sizes["ffn"]


def _given(known: Sizes, name: str, usual: int) -> int:
    value = known.get(name, usual)
    return value if isinstance(value, int) else usual
