"""Quantities in options of the command line."""

from __future__ import annotations

from figgen.errors import InputError
from figgen.units import parse_quantity

MOST = 1e30
"""Beyond it no quantity of this field is meant, and arithmetic may overflow."""


def quantity(text: str, unit: str, option: str) -> float:
    """A quantity in SI such as `1 GB`; for bytes a bare number will do.

    Raises InputError, naming the `option`, for anything else and for what is negative or absurd.
    """
    try:
        found = parse_quantity(text)
        if found.unit == "1" and unit == "B" and text.strip()[-1:].isdigit():
            found = parse_quantity(f"{text} B")
    except InputError as error:
        raise InputError(f"{option}: {error}") from None
    if found.unit != unit:
        raise InputError(option, expected=f"a quantity in {unit}", got=text)
    if not 0 <= found.value <= MOST:
        raise InputError(option, expected=f"0 to {MOST:g} {unit}", got=text)
    return found.value


def rate_per_rank(text: str, ranks_per_node: int, option: str) -> float:
    """The bandwidth of a rank in B/s, of a rate such as `50 GB/s` or `400 GB/s per node`.

    Raises InputError as `quantity` does.
    """
    rate, per, whose = text.partition(" per ")
    if per and whose.strip().lower() not in ("node", "gpu", "rank"):
        raise InputError(option, expected="a rate per GPU or per node", got=text)
    shared = ranks_per_node if whose.strip().lower() == "node" else 1
    return quantity(rate, "B/s", option) / shared
