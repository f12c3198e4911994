"""Names in figures for values, communicators and groups of ranks."""

from __future__ import annotations

from figgen.quantity_shown import NBSP


def identifier(name: str) -> str:
    """Return a name as part of the names of values: `llama_3_8b` for `llama-3-8b`.

    An identifier cannot begin with a digit, so `1f1b` is spelled out.
    """
    return "one_f_one_b" if name == "1f1b" else name.replace("-", "_").replace(".", "_")


def label_of(name: str) -> str:
    """Return the label of a communicator, such as "TP" or "DP×CP"."""
    parts = {"cp-within": "CP in a node", "cp-between": "CP between nodes"}
    return parts.get(name, name.upper().replace("-", "×"))


def hue(name: str) -> str:
    """Return the axis whose color a communicator has: its first one, on the dense grid."""
    first = name.partition("-")[0]
    return {"etp": "tp", "edp": "dp"}.get(first, first)


def ranks_words(ranks: tuple[int, ...]) -> str:
    """Return a group as "[0, 8]" with nonbreaking spaces; a long group is shortened."""
    shown = [str(rank) for rank in ranks]
    if len(shown) > 4:
        shown = [*shown[:2], "…", shown[-1]]
    return f"[{f',{NBSP}'.join(shown)}]"
