"""Reads the messages of PyTorch's NCCL watchdog: who waited for whom in which collective.

Sources: pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp; the wordings of releases
1.13 to 2.7 in pytorch/pytorch#118369, NVIDIA/nccl#1409 and hiyouga/LlamaFactory#7396.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from figgen.quantity_shown import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A rank's wait: the number of its collective in its group, its kind, and its elements."""

    rank: int
    number: int
    collective: str
    elements: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """Collectives that timed out, the first one of each rank, and the seconds that ranks waited."""

    waits: tuple[Wait, ...]
    timeout_s: float
    groups: int


WAITED = (
    r"\[Rank (\d+)\] Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(\d+), "
    r"OpType=(\w+)(?:, NumelIn=)?(\d*)[^)\n]*?Timeout\(ms\)=(\d+)"
)
MOST_NAMED = 8


def read_timeouts(text: str) -> TimedOut | None:
    """Return the timeouts in a text, or None."""
    waits: dict[int, Wait] = {}
    timeout_s = 0.0
    for one in re.finditer(WAITED, text):
        rank = int(one[1])
        timeout_s = max(timeout_s, int(one[5]) / 1e3)
        if rank not in waits:
            waits[rank] = Wait(
                rank=rank,
                number=int(one[2]),
                collective=one[3].lower().strip("_").removesuffix("_base").replace("_", "-"),
                elements=int(one[4]) if one[4] else 0,
            )
    if not waits:
        return None
    groups = set(re.findall(r"\[PG (?:ID )?(\d+)", text))
    ranks = sorted(waits)
    found = tuple([waits[rank] for rank in ranks])
    return TimedOut(waits=found, timeout_s=timeout_s, groups=max(1, len(groups)))


def timeout_sentences(log: TimedOut) -> list[tuple[str, str]]:
    """Return sentences, each with its kind, on what ranks waited for and which to look at first."""
    first = log.waits[0]
    size = f" of {first.elements:,} elements" if first.elements else ""
    ranks = "1 rank" if len(log.waits) == 1 else f"{len(log.waits):,} ranks"
    read = (
        f"Read as time-outs of NCCL's watchdog: {ranks} waited {shown(log.timeout_s, 's')}; rank "
        f"{first.rank} in {_article(first.collective)}{size}, number {first.number:,}."
    )
    return [("plain", read), ("warning", _suspect(log))]


def _suspect(log: TimedOut) -> str:
    numbers = sorted({one.number for one in log.waits})
    behind = [one for one in log.waits if one.number == numbers[0]]
    kinds = sorted({one.collective for one in behind})
    sizes = sorted({one.elements for one in behind})
    if log.groups > 1:
        return (
            f"The messages come from {log.groups:,} process groups, whose numbers cannot be "
            "compared: sort them by group, and paste those of one."
        )
    if len(numbers) > 1:
        return (
            f"{_named([one.rank for one in behind])} at number {numbers[0]:,}, and others at "
            f"{numbers[-1]:,}: look there first for what ran late, failed or took another branch."
        )
    if len(kinds) > 1:
        return (
            f"At number {numbers[0]:,} some ranks call {kinds[0]} and others {kinds[1]}: the "
            "program took different branches, or its data ended on some ranks."
        )
    if len(sizes) > 1:
        return f"Ranks pass {sizes[0]:,} and {sizes[-1]:,} elements to the same {kinds[0]}."
    ranks = [one.rank for one in log.waits]
    silent = [rank for rank in range(ranks[-1] + 1) if rank not in ranks]
    if silent:
        return (
            f"All of them wait in the same collective. {_named(silent, said='said nothing')}: "
            "look there first for an error, a slow data loader or a checkpoint being written."
        )
    return (
        "All ranks that report wait in the same collective. If these are all ranks of the group, "
        "suspect the network; otherwise a rank that is missing here never came."
    )


def _named(ranks: list[int], said: str = "") -> str:
    """Return ranks with a verb: `Rank 3 is behind`, or what they are reported to have done."""
    some = ", ".join([str(rank) for rank in ranks[:MOST_NAMED]])
    more = f" and {len(ranks) - MOST_NAMED:,} more" if len(ranks) > MOST_NAMED else ""
    plural = len(ranks) > 1
    does = said if said else ("are behind" if plural else "is behind")
    return f"Rank{'s' if plural else ''} {some}{more} {does}"


def _article(collective: str) -> str:
    return ("an " if collective[:1] in "aeiou" else "a ") + collective
