"""Keeps the settings of one job where a text has several: documents, or commands of a script."""

from __future__ import annotations

from figgen.scenarios.taking.names import key_of
from figgen.scenarios.texts.entry import ASIDE, Entry, is_whole

_SIZES = (
    "tp pp cp ep layers hidden heads ffn experts microbatch_size global_batch accumulation "
    "sequence lora_rank zero model_name"
)
DECIDING = _SIZES.split(" ")
"""Keys whose values differ between two jobs."""


def of_one_job(parts: list[list[Entry]], what: str, notes: list[str]) -> list[Entry]:
    """Return the settings of one job. Parts that describe a different job are named in `notes`.

    The job is that of the part with the most settings, the first among equals. Another part
    belongs to it unless it sets a size to a different value.
    """
    sizes = [_sizes(part) for part in parts]
    longest = 0
    for at, found in enumerate(sizes):
        longest = at if len(found) > len(sizes[longest]) else longest
    kept: list[Entry] = []
    others: list[str] = []
    for at, part in enumerate(parts):
        other = _difference(sizes[at], sizes[longest])
        if other:
            others.append(other)
        else:
            kept.extend(part)
    if others:
        notes.append(
            f"the text has {len(others) + 1} jobs ({', '.join(others)}); reading the "
            f"{_ordinal(longest, sizes)} of its {what}: to read a different one, give it alone"
        )
    return kept


def _sizes(part: list[Entry]) -> dict[str, str]:
    """Return the sizes and the model that a part sets, by key."""
    found: dict[str, str] = {}
    for one in part:
        key = key_of(one.name) if one.origin != ASIDE else ""
        named = key == "model_name" and "$" not in one.value and one.value != ""
        if key in DECIDING and (is_whole(one.value) or named):
            found[key] = one.value
    return found


def _difference(sizes: dict[str, str], of_job: dict[str, str]) -> str:
    """Return the first size that differs, such as "tp 4 and 8", or ""."""
    for key, value in sizes.items():
        if of_job.get(key, value) != value:
            return f"{key} {of_job[key]} and {value}"
    return ""


def _ordinal(at: int, sizes: list[dict[str, str]]) -> str:
    """Return which of the parts that set sizes this one is, such as "first"."""
    before = len([found for found in sizes[:at] if found])
    names = ("first", "second", "third")
    return names[before] if before < len(names) else f"{before + 1}th"
