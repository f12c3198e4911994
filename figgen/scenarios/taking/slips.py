"""Finds typos in names of options."""

from __future__ import annotations

from figgen.scenarios.taking.names import BY_NAME
from figgen.scenarios.texts.entry import normal

LONG_NAME = 9
VERY_LONG_NAME = 14
LONGEST_NAME = 60
"""Least lengths of names for which one, or two, different letters count as a typo."""

TELLING = (
    "parallel", "batch", "seq", "recompute", "checkpoint_act", "fsdp", "zero", "offload", "shard",
    "expert", "moe", "layers", "hidden", "heads", "lora", "precision", "fp8", "overlap",
    "attention", "vocab", "mapping", "maping", "capacity", "nodes", "nproc", "gpus", "pack",
    "quant", "micro", "remat",
)  # fmt: skip
"""Parts of names that suggest an effect on memory or time."""


def meant(name: str) -> str:
    """Return the option of which a name is a typo, or ""; at most two letters differ."""
    plain = normal(name)
    if not LONG_NAME <= len(plain) <= LONGEST_NAME or plain in BY_NAME:
        return ""
    for known in BY_NAME:
        if len(known) < LONG_NAME or abs(len(known) - len(plain)) > 2 or known[0] != plain[0]:
            continue
        most = 2 if len(plain) >= VERY_LONG_NAME else 1
        if "." not in known and distance(plain, known) <= most:
            return "--" + known.replace("_", "-") if name.startswith("-") else known
    return ""


def distance(one: str, other: str) -> int:
    """Return the number of insertions, deletions and substitutions between two texts."""
    before = list(range(len(other) + 1))
    for row in range(1, len(one) + 1):
        now = [row]
        for column in range(1, len(other) + 1):
            same = 0 if one[row - 1] == other[column - 1] else 1
            now.append(min(before[column] + 1, now[column - 1] + 1, before[column - 1] + same))
        before = now
    return before[-1]
