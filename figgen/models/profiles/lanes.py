"""A rank's recording as lanes over time, one for each stream of the device, for a figure."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.models.profiles.kernel_kinds import BOUNDS, COMMUNICATION, COPY, MEMSET
from figgen.models.profiles.kernel_times import kinds_by_event
from figgen.models.profiles.trace_ranks import RecordedRank

KINDS = tuple(BOUNDS)
"""Kinds, in the order of their numbers in a lane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The events of one stream in order of start, in seconds from the start of the recording.

    `kinds` are indices into `KINDS`, `names` indices into the names of the recording.
    """

    name: str
    starts: list[float]
    ends: list[float]
    kinds: list[int]
    names: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """The lanes of one rank, the names of its kernels, and its steps as the device ran them."""

    lanes: tuple[Lane, ...]
    names: list[str]
    steps: tuple[tuple[str, float, float], ...]
    seconds: float


def lanes_of(kept: RecordedRank) -> Lanes:
    """Return all that ran on a rank's device; a CPU has no lanes."""
    events: list[tuple[float, float, int, int, int]] = []
    numbers = {kind: place for place, kind in enumerate(KINDS)}
    order = list(range(len(kept.running.starts)))
    kinds = ["other" for _ in order]
    if kept.operations.starts or not kept.facts.get("modelled"):
        kinds = kinds_by_event(kept, kept.running, order)
    for table in (kept.running, kept.copies, kept.calls):
        for at in range(len(table.starts)):
            kind = COMMUNICATION
            if table is kept.running:
                kind = kinds[at]
            elif table is kept.copies:
                name = kept.names[table.names[at]].lower()
                kind = MEMSET if name.startswith("memset") else COPY
            events.append(
                (
                    table.starts[at],
                    table.ends[at],
                    table.streams[at],
                    numbers[kind],
                    table.names[at],
                )
            )
    events.sort()
    if not events:
        return Lanes(lanes=(), names=[], steps=(), seconds=0.0)
    origin = events[0][0]
    lanes: dict[int, Lane] = {}
    streams = {number: name for name, number in kept.streams.items()}
    for start, end, stream, kind_number, name_number in events:
        if stream not in lanes:
            name = streams[stream].partition(" ")[2]
            lanes[stream] = Lane(name=f"stream {name}", starts=[], ends=[], kinds=[], names=[])
        lanes[stream].starts.append((start - origin) / 1e6)
        lanes[stream].ends.append((end - origin) / 1e6)
        lanes[stream].kinds.append(kind_number)
        lanes[stream].names.append(name_number)
    steps = kept.device_steps or kept.host_steps
    found = [
        (name, (start - origin) / 1e6, (end - origin) / 1e6) for name, (start, end) in steps.items()
    ]
    return Lanes(
        lanes=tuple(sorted(lanes.values(), key=lambda lane: -len(lane.starts))),
        names=kept.names,
        steps=tuple(sorted(found, key=lambda step: step[1])),
        seconds=max((event[1] - origin) / 1e6 for event in events),
    )
