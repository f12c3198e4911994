"""Readers of quantities in command line options."""

from __future__ import annotations

from figgen.errors import InputError
from figgen.scenarios.options.typed import typed_measure


def rate_per_rank(text: str, ranks_per_node: int, option: str) -> float:
    """Return a rank's bandwidth in B/s from a rate such as `50 GB/s` or `400 GB/s per node`.

    Raises InputError as `typed_measure` does.
    """
    rate, per, whose = text.partition(" per ")
    if per and whose.strip().lower() not in ("node", "gpu", "rank"):
        raise InputError(option, expected="a rate per GPU or per node", got=text)
    shared = ranks_per_node if whose.strip().lower() == "node" else 1
    return typed_measure(option, rate, "B/s") / shared
