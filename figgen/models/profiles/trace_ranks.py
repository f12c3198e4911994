"""What is kept of the events of a trace, rank by rank: times, and bytes of calls, nothing else."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from figgen.models.profiles.trace_kinds import (
    COPIES,
    KERNELS,
    LAUNCHES,
    MADE_BY,
    OURS,
    STEP,
    Group,
    bytes_of,
    group_of,
    is_call,
    is_work,
)
from figgen.models.step.intervals import Floats, Intervals, union

Integers: TypeAlias = NDArray[np.int64]


@dataclass(slots=True)
class Spans:
    """Starts and ends in microseconds, eight bytes each."""

    starts: array[float] = field(default_factory=lambda: array("d"))
    ends: array[float] = field(default_factory=lambda: array("d"))

    def add(self, start: float, end: float) -> None:
        """Keep one more."""
        self.starts.append(start)
        self.ends.append(end)

    def union(self) -> Intervals:
        """The moments within any of them."""
        return union(self.starts, self.ends)


@dataclass(slots=True)
class Numbered:
    """Moments in microseconds by the number that a launch and what it launches have in common."""

    numbers: array[int] = field(default_factory=lambda: array("q"))
    moments: array[float] = field(default_factory=lambda: array("d"))

    def add(self, number: int, moment: float) -> None:
        """Keep one more."""
        self.numbers.append(number)
        self.moments.append(moment)

    def sorted(self) -> tuple[Integers, Floats]:
        """Numbers and moments in the order of the numbers."""
        numbers = np.array(self.numbers, dtype=np.int64)
        order = np.argsort(numbers, kind="stable")
        return numbers[order], np.array(self.moments)[order]


@dataclass(slots=True)
class RecordedRank:
    """What is kept of a rank's events: no more than times, and bytes of calls."""

    kernels: Spans = field(default_factory=Spans)
    copies: Spans = field(default_factory=Spans)
    work: dict[object, Spans] = field(default_factory=dict)
    runs: dict[object, Spans] = field(default_factory=dict)
    calls: dict[Group, Spans] = field(default_factory=dict)
    bytes: dict[Group, float] = field(default_factory=dict)
    steps: dict[str, tuple[float, float]] = field(default_factory=dict)
    launched: Numbered = field(default_factory=Numbered)
    began: Numbered = field(default_factory=Numbered)


def rank_name(header: Mapping[str, Any], event: Mapping[str, Any], name: str) -> str:
    """The rank of an event; `name` where the trace does not say."""
    job, other = header.get("distributedInfo"), header.get("otherData")
    if isinstance(other, dict) and other.get("made by") == MADE_BY:
        return f"pipeline rank {event.get('pid')}"
    return f"rank {job['rank']}" if isinstance(job, dict) and "rank" in job else name


def take(
    kept: RecordedRank,
    event: Mapping[str, Any],
    header: Mapping[str, Any],
    start: float,
    end: float,
) -> None:
    """Keep what an event from `start` to `end` in microseconds tells."""
    category, name, thread = event.get("cat"), str(event.get("name", "")), event.get("tid")
    if is_call(event):
        group = group_of(event, header)
        kept.calls.setdefault(group, Spans()).add(start, end)
        kept.bytes[group] = kept.bytes.get(group, 0.0) + bytes_of(event, group)
        if category not in KERNELS:
            kept.runs.setdefault(thread, Spans()).add(start, end)
    elif category in (*KERNELS, OURS[0]):
        kept.kernels.add(start, end)
    elif category in COPIES:
        kept.copies.add(start, end)
    elif is_work(event):
        kept.work.setdefault(thread, Spans()).add(start, end)
    elif category == "cpu_op" and name.startswith("c10d::"):
        kept.runs.setdefault(thread, Spans()).add(start, end)
    elif name.startswith(STEP) and category in ("user_annotation", "gpu_user_annotation"):
        _step(kept, name, category == "gpu_user_annotation", (start, end))
    _launch(kept, event, start, end)


def _step(kept: RecordedRank, name: str, on_device: bool, span: tuple[float, float]) -> None:
    """Keep a step where the device went through it, or else the host."""
    if on_device or name not in kept.steps:
        kept.steps[name] = span


def _launch(kept: RecordedRank, event: Mapping[str, Any], start: float, end: float) -> None:
    """Keep when the host had launched what runs on the device, by their common number."""
    args = event.get("args")
    number = args.get("correlation") if isinstance(args, dict) else None
    if not isinstance(number, int) or not 0 <= number < 2**63:
        return
    if event.get("cat") in LAUNCHES:
        kept.launched.add(number, end)
    elif event.get("cat") in (*KERNELS, *COPIES):
        kept.began.add(number, start)
