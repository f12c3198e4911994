"""The prefixes, units and counted things of quantities."""

from __future__ import annotations

POWERS: dict[str, int] = {
    "f": -15, "p": -12, "n": -9, "µ": -6, "m": -3,
    "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18, "Z": 21, "Y": 24,
}  # fmt: skip
BINARY: dict[str, int] = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
SHORT_SCALE: dict[str, int] = {"K": 3, "M": 6, "B": 9, "T": 12}
"""Powers of ten of the prefixes before a counted word, as in "4M tokens" and "5.6M USD"."""
PLAIN_COUNTS: dict[str, int] = {"k": 3, "K": 3, "M": 6, "T": 12}
"""Prefixes that are allowed alone after a number; a lone B means bytes."""
TIMES: dict[str, int] = {"min": 60, "h": 3600, "day": 86_400}

MEASURED: set[str] = {"B", "s", "FLOP", "W", "J", "Hz"}
THINGS: set[str] = {
    "rank", "GPU", "node", "stage", "microbatch", "chunk", "layer", "head", "expert", "sequence",
    "sample", "step", "bucket", "segment", "link", "port", "slot", "group", "replica", "message",
}  # fmt: skip
"""Things that are counted in whole numbers."""
AMOUNTS: set[str] = {"param", "token", "element"}
"""Counts that also occur as averages and in billions: "405B" parameters, "15.6T" tokens."""
OTHER: set[str] = {"1", "nat", "month", "GPU-h", "USD"}

ADDED: list[str] = []
"""The units that a site added, in order. A unit that takes prefixes is also in `MEASURED`."""

SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"


def is_counted(unit: str) -> bool:
    """Return whether a unit is a count, in whole numbers or as an amount."""
    return unit in THINGS or unit in AMOUNTS


def plural(word: str) -> str:
    """Return the plural of a counted unit, as in "microbatches" and "steps"."""
    return f"{word}es" if word.endswith("ch") else f"{word}s"
