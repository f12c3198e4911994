"""The report on a snapshot of PyTorch's allocator: sentences and tables for command and page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from figgen.models.memory.allocator_snapshot import BEFORE, LABELS, AllocatorState, Moment, Refused
from figgen.models.memory.snapshot_summary import REMEDIES, Summary

MOST_REFUSED = 5
"""Failed allocations that are reported one by one."""


def gigabytes(size: float) -> str:
    """Return bytes in GB as the tables print them."""
    return f"{size / 1e9:.3f}"


def summary_sentence(summary: Summary, peak: Moment | None) -> str:
    """Return a sentence on what fills the memory, and on the cheapest change."""
    remedy = REMEDIES[summary.remedy]
    when = "At the snapshot" if peak is None else "At the peak"
    part = (
        f"what was allocated {BEFORE}, usually the weights"
        if summary.kind == BEFORE
        else summary.kind
    )
    share = f"{summary.bytes / summary.of_bytes:.0%}"
    return (
        f"{when}, {gigabytes(summary.of_bytes)} GB were in use; the largest part is {part}:"
        f" {gigabytes(summary.bytes)} GB ({share}). The cheapest way to need less is to"
        f" {remedy.change}; this costs {remedy.cost} and acts on"
        f" {gigabytes(summary.remedied_bytes)} GB."
    )


def refusals(refused: Sequence[Refused]) -> list[str]:
    """Return a sentence for each of the first allocations that failed."""
    found = [
        f"Out of memory at event {one.event}: asked for {gigabytes(one.asked_bytes)} GB with"
        f" {gigabytes(one.device_free_bytes)} GB free on the device, for {one.kind}."
        for one in refused[:MOST_REFUSED]
    ]
    if len(refused) > MOST_REFUSED:
        found.append(f"{len(refused) - MOST_REFUSED} more allocations failed.")
    return found


def state_rows(state: AllocatorState) -> list[list[str]]:
    """Return the parts of the reserved memory as the rows of a table."""
    sizes = {
        "allocated": state.allocated,
        "rounded": state.rounded,
        "waiting": state.waiting,
        "torn": state.torn,
        "idle": state.idle,
        "reserved": state.reserved,
    }
    return [
        ["at the snapshot", "GB"],
        *([name, gigabytes(sizes[part])] for part, name in LABELS.items()),
    ]


def kinds_sentences(state: AllocatorState, peak: Moment | None) -> list[str]:
    """Return sentences on the purposes of tensors, now and at the peak."""
    found = ["in use now, by kind: " + _kinds(state.kinds)]
    if peak is not None:
        found.append(
            f"peak {gigabytes(peak.bytes)} GB of {gigabytes(peak.reserved)} GB reserved at event"
            f" {peak.event}: {_kinds(peak.kinds)}"
        )
    return found


def _kinds(kinds: Mapping[str, int]) -> str:
    said = [f"{kind} {gigabytes(size)} GB" for kind, size in kinds.items()]
    return ", ".join(said) or "nothing"
