"""What is kept of a trace's events, by rank: times, numbered names, groups of calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from figgen.models.profiles.intervals import Intervals, union
from figgen.models.profiles.trace_kinds import (
    ANNOTATIONS,
    BACKWARD,
    COPIES,
    KERNELS,
    MADE_BY,
    MODULE,
    OPERATION,
    OPERATORS,
    OURS,
    OVERHEAD,
    RUNS,
    STACKS,
    STARTS,
    STEP,
    Group,
    bytes_of,
    device_name,
    group_of,
    is_communication,
    is_launch,
    is_run,
    is_work,
    world_size,
)

NONE = -1
"""Stands for a number that an event lacks."""
LARGEST = 9_007_199_254_740_991
"""The largest valid number, 2^53 - 1; profilers write larger ones for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Starts and ends, of a trace in microseconds."""

    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)

    def add(self, start: float, end: float) -> None:
        """Append one span."""
        self.starts.append(start)
        self.ends.append(end)

    def union(self) -> Intervals:
        """Return the moments within any of the spans."""
        return union(self.starts, self.ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEvents:
    """Events of a device: times, numbers of the name and of the stream, and who launched them.

    `launches` are correlation ids, which a launch shares with the events it launches; `operators`
    are the numbers of the operators that launched them.
    """

    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    names: list[int] = field(default_factory=list)
    streams: list[int] = field(default_factory=list)
    launches: list[int] = field(default_factory=list)
    operators: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEvents:
    """The groups and bytes of collectives, parallel to their `DeviceEvents`.

    `told` is True if the event itself names its collective.
    """

    groups: list[Group] = field(default_factory=list)
    bytes: list[float] = field(default_factory=list)
    told: list[bool] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceScope:
    """A module's call, a backward node or an annotation that runs on a thread of the host.

    `sequence` is the number that a forward operator and its backward node share.
    """

    start: float
    end: float
    name: str
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A host call that starts something on the device."""

    start: float
    end: float
    thread: str
    operator: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The number of an operator's name, and what the name says about the operator."""

    number: int
    works: bool
    wraps: bool
    asks: bool
    backward: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRank:
    """What is kept of a rank's events.

    `operations` are the kernels of a modeled step, whose `kinds` the trace gives by name; its
    `kernels` are whole passes.
    """

    names: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    communicates: dict[str, bool] = field(default_factory=dict)
    streams: dict[str, int] = field(default_factory=dict)
    kernels: DeviceEvents = field(default_factory=DeviceEvents)
    operations: DeviceEvents = field(default_factory=DeviceEvents)
    kinds: dict[str, str] = field(default_factory=dict)
    copies: DeviceEvents = field(default_factory=DeviceEvents)
    calls: DeviceEvents = field(default_factory=DeviceEvents)
    called: CallEvents = field(default_factory=CallEvents)
    asked: dict[int, Group] = field(default_factory=dict)
    asked_bytes: dict[int, float] = field(default_factory=dict)
    work: dict[str, Spans] = field(default_factory=dict)
    runs: dict[str, Spans] = field(default_factory=dict)
    operators: dict[int, int] = field(default_factory=dict)
    traits: dict[str, Traits] = field(default_factory=dict)
    scopes: dict[str, list[TraceScope]] = field(default_factory=dict)
    sequences: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    launched: dict[int, Launch] = field(default_factory=dict)
    host_steps: dict[str, tuple[float, float]] = field(default_factory=dict)
    device_steps: dict[str, tuple[float, float]] = field(default_factory=dict)
    overhead: Spans = field(default_factory=Spans)
    counts: dict[str, int] = field(default_factory=dict)
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def running(self) -> DeviceEvents:
        """The kernels, which for a modeled step are its operations if the trace has them."""
        return self.operations if self.operations.starts else self.kernels


def rank_name(header: Mapping[str, Any], event: Mapping[str, Any], name: str) -> str:
    """Return the rank of an event, or `name` if the trace does not give it."""
    job, other = header.get("distributedInfo"), header.get("otherData")
    if isinstance(other, dict) and other.get("made by") == MADE_BY:
        return f"pipeline rank {event.get('pid')}"
    if "gpu" in header:
        return f"GPU {header['gpu']}"
    return f"rank {job['rank']}" if isinstance(job, dict) and "rank" in job else name


def keep_header(kept: RecordedRank, header: Mapping[str, Any]) -> None:
    """Keep the size of the job and the name of the GPU from the header."""
    kept.facts["world_size"] = world_size(header)
    kept.facts["device"] = device_name(header)


def take(
    kept: RecordedRank,
    event: Mapping[str, Any],
    header: Mapping[str, Any],
    start: float,
    end: float,
) -> None:
    """Keep what an event from `start` to `end`, in microseconds, tells."""
    category = event.get("cat")
    if category in STACKS and not str(event.get("name") or "").startswith(MODULE):
        return
    name = str(event.get("name") or "")
    given = event.get("args")
    args: Mapping[str, Any] = given if isinstance(given, dict) else {}
    if category in KERNELS or category in COPIES or category == OURS[0]:
        _take_device(kept, event, args, header, (start, end))
    elif category == OPERATION:
        kept.kinds[name] = str(args.get("kind") or "")
        _add(kept, kept.operations, event, args, (start, end))
    elif is_launch(category):
        _take_launch(kept, name, str(event.get("tid")), args, (start, end))
    elif category in OPERATORS and not name.startswith(RUNS):
        kept.counts["operators"] = kept.counts.get("operators", 0) + 1
        _take_operator(kept, event, args, header, (start, end))
    elif is_run(category, name):
        _take_run(kept, event, header, (start, end))
    elif category in ANNOTATIONS:
        _take_annotation(kept, event, args, header, (start, end))
    elif category in STACKS:
        _scope(kept, str(event.get("tid")), name, args, (start, end))
    elif category in OVERHEAD:
        kept.overhead.add(start, end)


def number_of(args: Mapping[str, Any], key: str) -> int:
    """Return a number of an event's arguments, or `NONE` if it has no valid one."""
    found = args.get(key)
    if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= LARGEST:
        return found
    return NONE


def _named(kept: RecordedRank, name: str) -> int:
    """Return the number of a name, adding it if it is new."""
    if name not in kept.numbers:
        kept.numbers[name] = len(kept.names)
        kept.names.append(name)
    return kept.numbers[name]


def _add(
    kept: RecordedRank,
    into: DeviceEvents,
    event: Mapping[str, Any],
    args: Mapping[str, Any],
    span: tuple[float, float],
) -> None:
    stream = f"{event.get('pid')} {event.get('tid')}"
    if stream not in kept.streams:
        kept.streams[stream] = len(kept.streams)
    into.starts.append(span[0])
    into.ends.append(span[1])
    into.names.append(_named(kept, str(event.get("name") or "")))
    into.streams.append(kept.streams[stream])
    into.launches.append(number_of(args, "correlation"))
    into.operators.append(number_of(args, "External id"))


def _take_device(
    kept: RecordedRank,
    event: Mapping[str, Any],
    args: Mapping[str, Any],
    header: Mapping[str, Any],
    span: tuple[float, float],
) -> None:
    category, name = event.get("cat"), str(event.get("name") or "")
    key = f"{category} {name}"
    if key not in kept.communicates:
        kept.communicates[key] = is_communication(category, name)
    if kept.communicates[key]:
        _add_call(kept, event, args, header, span)
    elif category in COPIES:
        _add(kept, kept.copies, event, args, span)
    else:
        kept.facts["modelled"] = category == OURS[0]
        _add(kept, kept.kernels, event, args, span)


def _add_call(
    kept: RecordedRank,
    event: Mapping[str, Any],
    args: Mapping[str, Any],
    header: Mapping[str, Any],
    span: tuple[float, float],
) -> None:
    _add(kept, kept.calls, event, args, span)
    group = group_of(event, header)
    kept.called.groups.append(group)
    kept.called.bytes.append(bytes_of(event, group))
    kept.called.told.append("Collective name" in args)


def _take_run(
    kept: RecordedRank,
    event: Mapping[str, Any],
    header: Mapping[str, Any],
    span: tuple[float, float],
) -> None:
    given = event.get("args")
    _add_call(kept, event, given if isinstance(given, dict) else {}, header, span)
    _spans(kept.runs, str(event.get("tid"))).add(span[0], span[1])


def _take_launch(
    kept: RecordedRank,
    name: str,
    thread: str,
    args: Mapping[str, Any],
    span: tuple[float, float],
) -> None:
    number = number_of(args, "correlation")
    lower = name.lower()
    if any(part in lower for part in STARTS):
        kept.counts["launches"] = kept.counts.get("launches", 0) + 1
    if number != NONE and number not in kept.launched:
        operator = number_of(args, "External id")
        kept.launched[number] = Launch(start=span[0], end=span[1], thread=thread, operator=operator)


def _take_operator(
    kept: RecordedRank,
    event: Mapping[str, Any],
    args: Mapping[str, Any],
    header: Mapping[str, Any],
    span: tuple[float, float],
) -> None:
    name, thread = str(event.get("name") or ""), str(event.get("tid"))
    if name not in kept.traits:
        kept.traits[name] = _traits(kept, name)
    traits = kept.traits[name]
    number = number_of(args, "External id")
    if number != NONE:
        kept.operators[number] = traits.number
    if traits.works:
        _spans(kept.work, thread).add(span[0], span[1])
    elif traits.wraps:
        _spans(kept.runs, thread).add(span[0], span[1])
    if traits.asks or "Collective name" in args:
        _ask(kept, event, header, number)
    if traits.backward:
        _scope(kept, thread, name, args, span)
    elif "Sequence number" in args:
        sequence = number_of(args, "Sequence number")
        kept.sequences.setdefault(thread, []).append((span[0], sequence))


def _traits(kept: RecordedRank, name: str) -> Traits:
    wraps = name.startswith("c10d::")
    return Traits(
        number=_named(kept, name),
        works=is_work(name),
        wraps=wraps,
        asks=wraps,
        backward=name.startswith(BACKWARD),
    )


def _take_annotation(
    kept: RecordedRank,
    event: Mapping[str, Any],
    args: Mapping[str, Any],
    header: Mapping[str, Any],
    span: tuple[float, float],
) -> None:
    name, on_device = str(event.get("name") or ""), event.get("cat") == "gpu_user_annotation"
    if name.startswith(STEP):
        steps = kept.device_steps if on_device else kept.host_steps
        # A device has one annotation for each of its streams.
        before = steps.get(name, span)
        steps[name] = (min(before[0], span[0]), max(before[1], span[1]))
    elif not on_device:
        if name.startswith("nccl:"):
            _ask(kept, event, header, number_of(args, "External id"))
        _scope(kept, str(event.get("tid")), name, args, span)


def _ask(
    kept: RecordedRank, event: Mapping[str, Any], header: Mapping[str, Any], number: int
) -> None:
    """Record which collective the host asks for; the innermost event with a collective counts."""
    group = group_of(event, header)
    if number != NONE and group.collective != "other":
        kept.asked[number] = group
        kept.asked_bytes[number] = bytes_of(event, group)


def _scope(
    kept: RecordedRank,
    thread: str,
    name: str,
    args: Mapping[str, Any],
    span: tuple[float, float],
) -> None:
    sequence = number_of(args, "Sequence number")
    found = TraceScope(start=span[0], end=span[1], name=name, sequence=sequence)
    kept.scopes.setdefault(thread, []).append(found)


def _spans(into: dict[str, Spans], thread: str) -> Spans:
    if thread not in into:
        into[thread] = Spans()
    return into[thread]
