"""The contents of a snapshot of PyTorch's CUDA allocator: who holds memory, and what is lost.

The structure is that of `torch.cuda.memory._dump_snapshot`: segments obtained from the driver, each
a row of blocks, and a trace of events that may begin in the middle. The frames of a tensor's
allocation show its purpose (`allocation_kinds`).
Source: pytorch/pytorch@0044eb67, torch/cuda/_memory_viz.py and docs, "Understanding CUDA Memory".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from figgen.errors import InputError
from figgen.models.memory.allocation_kinds import kind_of

BEFORE = "before the trace"
PART_OF = {"loss": "working"}
"""The part of the memory model for each kind whose name differs from its part's."""

USED, WAITING, FREE = "active_allocated", "active_awaiting_free", "inactive"
OLDER_STATES = {"active_pending_free": WAITING}
GROWS = ("segment_alloc", "segment_map")
SHRINKS = ("segment_free", "segment_unmap")
MOMENTS = 200
"""Moments of the history that a picture shows."""

LABELS = {
    "allocated": "in use by tensors",
    "rounded": "rounding of their blocks",
    "waiting": "freed, waiting for a stream",
    "torn": "free between blocks in use (torn)",
    "idle": "free segments",
    "reserved": "reserved from the driver",
}
"""Names of the parts of a device's state; the last part is the sum of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorState:
    """Bytes of one device; `reserved`, obtained from the driver, is the sum of all others.

    `allocated` bytes were requested for tensors, `rounded` bytes fill up their blocks, `waiting`
    bytes are freed but still in use by a stream, `torn` bytes are free fragments between blocks in
    use, and `idle` bytes are segments that are entirely free.
    """

    reserved: int
    allocated: int
    rounded: int
    waiting: int
    torn: int
    idle: int
    kinds: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Bytes in use after `event` events of the trace, in total and by kind, and bytes reserved."""

    bytes: int
    event: int
    reserved: int
    kinds: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A failed allocation: number of the event, bytes requested, bytes free on the device."""

    event: int
    asked_bytes: int
    device_free_bytes: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """One event of a trace; only allocations have a `kind`."""

    action: str
    address: int
    size: int
    device_free: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """One block of a segment."""

    size: int
    asked: int
    state: str
    frames: Sequence[Mapping[str, Any]]


def state_of(snapshot: Mapping[str, Any], device: int) -> AllocatorState:
    """Return the state of `device` at the snapshot. Raises InputError for an unknown structure."""
    found = {"allocated": 0, "rounded": 0, "waiting": 0, "torn": 0, "idle": 0}
    kinds: dict[str, int] = {}
    known: dict[str, str] = {}
    events = _events(snapshot, device)
    made = {event.address for event in events if event.action == "alloc"}
    recorded = len(made) > 0
    for segment in _segments(snapshot, device):
        blocks = _blocks(segment)
        address = _whole(segment.get("address") or 0, "address of a segment")
        used = any(block.state != FREE for block in blocks)
        for block in blocks:
            if block.state == USED:
                found["allocated"] += block.asked
                found["rounded"] += block.size - block.asked
                older = recorded and not block.frames and address not in made
                kind = BEFORE if older else kind_of(block.frames, known)
                kinds[kind] = kinds.get(kind, 0) + block.asked
            else:
                free = "torn" if used else "idle"
                found["waiting" if block.state == WAITING else free] += block.size
            address += block.size
    return AllocatorState(
        reserved=sum(found.values()),
        allocated=found["allocated"],
        rounded=found["rounded"],
        waiting=found["waiting"],
        torn=found["torn"],
        idle=found["idle"],
        kinds=_largest_first(kinds),
    )


def history_of(snapshot: Mapping[str, Any], device: int) -> tuple[Moment, ...]:
    """Return the trace of `device` as at most `MOMENTS` moments; empty if nothing was allocated.

    Each moment is the fullest of an equal share of the events, so that the peak is among them. Of
    tensors older than the trace only the size is known, unless they are still in use.
    """
    events = _events(snapshot, device)
    if not any(event.action == "alloc" for event in events):
        return ()
    held = _older(snapshot, device, events)
    kinds: dict[str, int] = {}
    for size, kind in held.values():
        kinds[kind] = kinds.get(kind, 0) + size
    total = sum(kinds.values())
    reserved = _reserved_before(snapshot, device, events)
    share = max(1, -(-len(events) // MOMENTS))
    found: list[Moment] = []
    most: Moment | None = None
    for at, event in enumerate(events):
        total += _applied(event, held, kinds)
        if event.action in GROWS:
            reserved += event.size
        elif event.action in SHRINKS:
            reserved -= event.size
        if most is None or total > most.bytes:
            some = {kind: size for kind, size in kinds.items() if size}
            most = Moment(bytes=total, event=at + 1, reserved=reserved, kinds=some)
        if (at + 1) % share == 0 or at + 1 == len(events):
            found.append(most)
            most = None
    return tuple(found)


def _applied(event: _Event, held: dict[int, tuple[int, str]], kinds: dict[str, int]) -> int:
    """Apply an event to `held` and `kinds`, and return the change of the bytes in use."""
    if event.action == "alloc":
        held[event.address] = (event.size, event.kind)
        kinds[event.kind] = kinds.get(event.kind, 0) + event.size
        return event.size
    if event.action == "free_completed" and event.address in held:
        size, kind = held.pop(event.address)
        kinds[kind] -= size
        return -size
    return 0


def peak_of(history: Sequence[Moment]) -> Moment | None:
    """Return the fullest moment of a history, its kinds sorted by size; None if it is empty."""
    if not history:
        return None
    peak = history[0]
    for moment in history:
        if moment.bytes > peak.bytes:
            peak = moment
    kinds = _largest_first(peak.kinds)
    return Moment(bytes=peak.bytes, event=peak.event, reserved=peak.reserved, kinds=kinds)


def refused_of(snapshot: Mapping[str, Any], device: int) -> tuple[Refused, ...]:
    """Return the allocations of `device` that failed, in order."""
    found: list[Refused] = []
    for at, event in enumerate(_events(snapshot, device)):
        if event.action == "oom":
            found.append(
                Refused(
                    event=at + 1,
                    asked_bytes=event.size,
                    device_free_bytes=event.device_free,
                    kind=event.kind,
                )
            )
    return tuple(found)


def _largest_first(kinds: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(kinds.items(), key=lambda item: -item[1]))


def _reserved_before(snapshot: Mapping[str, Any], device: int, events: Sequence[_Event]) -> int:
    """Return the bytes reserved when the trace began: the snapshot's, less what the trace added."""
    reserved = 0
    for segment in _segments(snapshot, device):
        reserved += sum(block.size for block in _blocks(segment))
    for event in events:
        if event.action in GROWS:
            reserved -= event.size
        elif event.action in SHRINKS:
            reserved += event.size
    return reserved


def _older(
    snapshot: Mapping[str, Any], device: int, events: Sequence[_Event]
) -> dict[int, tuple[int, str]]:
    """Return the size and kind, by address, of blocks that were in use before the trace began.

    They are freed in the trace without being allocated there, or still in use.
    """
    held: dict[int, tuple[int, str]] = {}
    made: set[int] = set()
    gone: set[int] = set()
    for event in events:
        if event.action == "alloc":
            made.add(event.address)
        elif event.action == "free_completed":
            if event.address not in made and event.address not in gone:
                held[event.address] = (event.size, BEFORE)
            gone.add(event.address)
    known: dict[str, str] = {}
    for segment in _segments(snapshot, device):
        address = _whole(segment.get("address") or 0, "address of a segment")
        for block in _blocks(segment):
            if block.state == USED and address not in made:
                kind = kind_of(block.frames, known) if block.frames else BEFORE
                held[address] = (block.asked, kind)
            address += block.size
    return held


def _events(snapshot: Mapping[str, Any], device: int) -> list[_Event]:
    """Return the events of a device's trace. Raises InputError for an unknown structure."""
    known: dict[str, str] = {}
    found: list[_Event] = []
    for event in _trace(snapshot, device):
        if not isinstance(event, dict) or "action" not in event:
            raise InputError("an event of the trace", expected="a dict with an action", got=event)
        action = str(event["action"])
        tells = action in ("alloc", "oom")
        found.append(
            _Event(
                action=action,
                address=_whole(event.get("addr") or 0, "addr of an event"),
                size=_whole(event.get("size") or 0, "size of an event"),
                device_free=_whole(
                    event.get("device_free") or event.get("addr") or 0, "device_free of an event"
                ),
                kind=kind_of(_list(event.get("frames")), known) if tells else "",
            )
        )
    return found


def _trace(snapshot: Mapping[str, Any], device: int) -> list[Any]:
    """Return the recorded events of a device unchanged, or none if it has no trace."""
    traces = _list(snapshot.get("device_traces"))
    return _list(traces[device]) if device < len(traces) else []


def _list(value: Any) -> list[Any]:
    """Return a list as it is, or an empty list for any other value in the file."""
    return list(value) if isinstance(value, list | tuple) else []


def _whole(value: Any, what: str) -> int:
    """Return a number of the file as an integer. Raises InputError for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InputError(what, expected="a number", got=value)
    return int(value)


def devices_of(snapshot: Mapping[str, Any]) -> list[int]:
    """Return the numbers of the devices in a snapshot; device 0 if it names none."""
    found: set[int] = set()
    for segment in _all_segments(snapshot):
        device: Any = segment.get("device") or 0
        found.add(_whole(device, "device of a segment"))
    for device_number in range(len(_list(snapshot.get("device_traces")))):
        if _trace(snapshot, device_number):
            found.add(device_number)
    return sorted(found) or [0]


def _segments(snapshot: Mapping[str, Any], device: int) -> list[Mapping[str, Any]]:
    return [one for one in _all_segments(snapshot) if (one.get("device") or 0) == device]


def _all_segments(snapshot: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    given = snapshot.get("segments")
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise InputError("a snapshot", expected="a dict with a list of segments", got=given)
    segments: list[Mapping[str, Any]] = given
    return segments


def _blocks(segment: Mapping[str, Any]) -> list[_Held]:
    """Return the size, requested bytes, state and frames of every block, in older formats too."""
    found: list[_Held] = []
    for given in _list(segment.get("blocks")):
        if not isinstance(given, dict):
            raise InputError("a block", expected="a dict", got=given)
        block: Mapping[str, Any] = given
        state = str(block.get("state"))
        state = OLDER_STATES.get(state, state)
        if state not in (USED, WAITING, FREE):
            expected = f"{USED}, {WAITING} or {FREE}"
            raise InputError("state of a block", expected=expected, got=state)
        size = _whole(block.get("size"), "size of a block")
        older: Mapping[str, Any] = {}
        for one in _list(block.get("history"))[:1]:
            older = one if isinstance(one, dict) else {}
        asked = block.get("requested_size") or older.get("real_size") or size
        found.append(
            _Held(
                size=size,
                asked=_whole(asked, "requested_size of a block"),
                state=state,
                frames=_list(block.get("frames")) or _list(older.get("frames")),
            )
        )
    return found
