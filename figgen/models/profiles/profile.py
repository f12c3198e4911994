"""Where the time of recorded steps went, rank by rank, from the events of a profiler's trace.

The wall time of a rank is divided into parts that add up to it: computing, exposed communication,
exposed copies, waiting for the host to launch the next kernel, and other idle time. Anything that
runs while the device computes is hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any

from figgen.errors import InputError
from figgen.models.profiles.intervals import (
    Intervals,
    length,
    outside,
    together,
    union,
    within,
    without,
)
from figgen.models.profiles.kernel_times import (
    STALL_US,
    Gap,
    KernelTime,
    KindTime,
    ModuleTime,
    device_times,
    gaps_of,
    late_of,
    modules_of,
    stall_of,
)
from figgen.models.profiles.trace_kinds import OLD, ONE_SIDED, Group, axis_of
from figgen.models.profiles.trace_ranks import (
    RecordedRank,
    Spans,
    keep_header,
    rank_name,
    take,
)
from figgen.models.profiles.trace_window import Window, window_of

LATEST_US, LONGEST_US = 1e20, 1e14
"""Bounds of times and durations (μs): three thousand millennia and three years."""

PARTS = {
    "computing_s": "computing",
    "exposed_s": "exposed",
    "copies_s": "copies",
    "launch_s": "not launched",
    "idle_s": "idle",
}
"""The parts that add up to the wall time of a rank, with the names they are shown under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Calls of one group and collective on a rank; `bytes` are the buffers of all calls together.

    `busy_s` is the time in which any of the calls runs, `exposed_s` the part of it in which nothing
    computes. `each_s` is the duration of every call, in order of start, and `starts_s` is when each
    starts, from the beginning of the window.
    """

    group: Group
    bytes: float
    busy_s: float
    exposed_s: float
    each_s: tuple[float, ...]
    starts_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankProfile:
    """The recorded window of one rank, with `steps` steps; the parts in seconds add up to `wall_s`.

    `world_size` is 0 and `device` empty if the trace does not give them. `kinds` divide the device
    time by what its kernels do, and `all_kinds` do so for the whole recording, outside of steps
    too. `gaps` divide `launch_s` by the operators that launched late. `stall_s` is the part of
    `launch_s` in gaps that are too long for a launch, and `stall` the longest of them.
    `host_events` and `overhead_s` are the work of the profiler itself. If no step is `marked`, the
    whole recording counts as one.
    """

    name: str
    world_size: int
    device: str
    steps: int
    marked: bool
    wall_s: float
    computing_s: float
    exposed_s: float
    hidden_s: float
    copies_s: float
    launch_s: float
    idle_s: float
    exposed_by_axis: tuple[tuple[str, float], ...]
    calls: tuple[Calls, ...]
    kinds: tuple[KindTime, ...]
    all_kinds: tuple[KindTime, ...]
    kernels: tuple[KernelTime, ...]
    modules: tuple[ModuleTime, ...]
    gaps: tuple[Gap, ...]
    stall_s: float
    stall: Gap | None
    host_events: int
    overhead_s: float

    @property
    def alone(self) -> bool:
        """Whether the job is one GPU, as far as the trace tells."""
        return self.world_size == 1 or (not self.world_size and not self.calls)


def profiles(
    events: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]], name: str
) -> tuple[RankProfile, ...]:
    """Return the ranks of a trace: one for a profiler's file, one per process for a modeled step.

    Raises InputError for events without finite times, and if nothing runs.
    """
    return tuple(profile_of(rank, kept) for rank, kept in recorded_ranks(events, name).items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A trace that is being read: what is kept of each rank, and the headers."""

    name: str
    ranks: dict[str, RecordedRank] = field(default_factory=dict)
    headers: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    processes: dict[str, str] = field(default_factory=dict)


def read_event(
    reading: Reading, header: Mapping[str, Any], event: Mapping[str, Any], number: int
) -> None:
    """Keep what an event tells. Raises InputError for an event without finite times."""
    if event.get("ph") != "X":
        return
    start: Any = event.get("ts")
    took: Any = event.get("dur") if "dur" in event else 0
    if not (_within(start, LATEST_US) and _within(took, LONGEST_US)) or took < 0:
        expected = "a finite ts and a dur from 0 to 3 years"
        raise InputError(f"{reading.name}, event {number:,}", expected=expected, got=(start, took))
    named = str(event.get("cat"))
    if named in OLD:
        event = {**event, "cat": OLD[named]}
    process = str(event.get("pid"))
    rank = reading.processes.get(process, "")
    if not rank or reading.headers[rank] is not header:
        rank = rank_name(header, event, reading.name)
        reading.processes[process] = rank
        reading.headers[rank] = header
        reading.ranks.setdefault(rank, RecordedRank())
    take(reading.ranks[rank], event, header, float(start), float(start + took))


def ranks_of(reading: Reading) -> dict[str, RecordedRank]:
    """Return what was kept, by rank. Raises InputError if nothing runs or a GPU has no kernels."""
    found: dict[str, RecordedRank] = {}
    for rank, kept in reading.ranks.items():
        header = reading.headers[rank]
        keep_header(kept, header)
        if _runs(kept):
            _check_kernels(rank, kept)
            # A header may follow the events.
            named = rank_name(header, {}, rank) if rank == reading.name else rank
            found[named] = kept
    if not found:
        expected = "kernels, or operators on a CPU"
        raise InputError(f"trace {reading.name}", expected=expected, got="neither")
    return found


def recorded_ranks(
    events: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]], name: str
) -> dict[str, RecordedRank]:
    """Return what is kept of a trace, by rank. Raises InputError as `profiles` does."""
    reading = Reading(name=name)
    for number, (header, event) in enumerate(events):
        read_event(reading, header, event, number)
    return ranks_of(reading)


def _within(value: Any, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -most <= value <= most


def _runs(kept: RecordedRank) -> bool:
    return bool(kept.kernels.starts or kept.work or kept.calls.starts)


def _check_kernels(name: str, kept: RecordedRank) -> None:
    """Raise InputError for a GPU whose kernels were not recorded."""
    launches = kept.counts.get("launches", 0)
    device = kept.kernels.starts or kept.copies.starts
    if launches and not device:
        raise InputError(
            f"trace {name}",
            expected="GPU kernels: record with ProfilerActivity.CUDA, and with one profiler"
            " at a time",
            got=f"{launches:,} launches, but no kernels",
        )
    kernels = kept.kernels
    if kernels.starts and fsum(kernels.ends) == fsum(kernels.starts):
        raise InputError(f"trace {name}", expected="kernels with a dur", got="none that has one")


def profile_of(name: str, kept: RecordedRank) -> RankProfile:
    """Return the profile of one rank's recorded steps."""
    computing = union(kept.kernels.starts, kept.kernels.ends)
    if not kept.kernels.starts:
        computing = _work(kept)
    groups, spans, sizes = _calls_by_group(kept)
    copying = union(kept.copies.starts, kept.copies.ends)
    talking = together([one.union() for one in spans.values()])
    window = window_of(kept, together([computing, talking, copying]))
    computing, talking, copying = (
        within(some, window.start, window.end) for some in (computing, talking, copying)
    )
    exposed = without(talking, computing)
    busy = together([computing, talking])
    idle = outside(together([busy, copying]), window.start, window.end)
    late = late_of(kept, idle)
    launch = fsum(gap.late for gap in late)
    times = device_times(kept, window)
    calls = [_calls(groups[key], spans[key], sizes[key], computing, window) for key in groups]
    return RankProfile(
        name=name,
        world_size=int(str(kept.facts.get("world_size", 0))),
        device=str(kept.facts.get("device", "")),
        steps=window.steps,
        marked=window.told_by != "all" or bool(kept.facts.get("modelled")),
        wall_s=(window.end - window.start) / 1e6,
        computing_s=length(computing) / 1e6,
        exposed_s=length(exposed) / 1e6,
        hidden_s=(length(talking) - length(exposed)) / 1e6,
        copies_s=length(without(copying, busy)) / 1e6,
        launch_s=launch / 1e6,
        idle_s=(length(idle) - launch) / 1e6,
        exposed_by_axis=_by_axis(groups, spans, computing, window),
        calls=tuple(sorted([c for c in calls if c.each_s], key=lambda c: -c.exposed_s)),
        kinds=times.kinds,
        all_kinds=times.all_kinds,
        kernels=times.kernels,
        modules=modules_of(kept, window),
        gaps=gaps_of(kept, late),
        stall_s=fsum(gap.late for gap in late if gap.late > STALL_US) / 1e6,
        stall=stall_of(kept, late),
        host_events=kept.counts.get("operators", 0),
        overhead_s=length(within(kept.overhead.union(), window.start, window.end)) / 1e6,
    )


def _calls_by_group(
    kept: RecordedRank,
) -> tuple[dict[str, Group], dict[str, Spans], dict[str, float]]:
    """Return groups, times and bytes of collectives, by the key of the group.

    If a kernel does not name its collective, the host's call that launched it does: NCCL runs an
    all-to-all as sends and receives.
    """
    groups: dict[str, Group] = {}
    spans: dict[str, Spans] = {}
    sizes: dict[str, float] = {}
    shuffles = _only_shuffles(kept)
    for at in range(len(kept.calls.starts)):
        group, size = kept.called.groups[at], kept.called.bytes[at]
        number = kept.calls.operators[at]
        launch = kept.launched.get(kept.calls.launches[at])
        if number not in kept.asked and launch is not None:
            number = launch.operator
        asked = kept.asked.get(number)
        if asked is not None and not kept.called.told[at]:
            if group.collective in (*ONE_SIDED, "other"):
                group = Group(
                    name=group.name or asked.name,
                    collective=asked.collective,
                    size=group.size or asked.size,
                    ranks=group.ranks or asked.ranks,
                )
            size = size or kept.asked_bytes[number]
        elif shuffles and group.collective in ONE_SIDED:
            group = replace(group, collective="all-to-all")
        key = group.key
        if key not in groups:
            groups[key] = group
            spans[key] = Spans()
            sizes[key] = 0.0
        spans[key].add(kept.calls.starts[at], kept.calls.ends[at])
        sizes[key] += size
    return groups, spans, sizes


def _only_shuffles(kept: RecordedRank) -> bool:
    """Whether sends and receipts can only be those of all-to-alls.

    Old traces do not say which call of the host launched a kernel; a host that asked for
    all-to-alls, and for nothing one-sided, launched them all.
    """
    asked = {group.collective for group in kept.asked.values()}
    return "all-to-all" in asked and not any(one in asked for one in ONE_SIDED)


def _by_axis(
    groups: Mapping[str, Group],
    spans: Mapping[str, Spans],
    computing: Intervals,
    window: Window,
) -> tuple[tuple[str, float], ...]:
    """Return the exposed seconds of each axis; simultaneous calls count once."""
    axes: dict[str, list[Intervals]] = {}
    for key, group in groups.items():
        inside = within(spans[key].union(), window.start, window.end)
        axes.setdefault(axis_of(group), []).append(inside)
    return tuple(
        (axis, length(without(together(sets), computing)) / 1e6) for axis, sets in axes.items()
    )


def _work(kept: RecordedRank) -> Intervals:
    """Return when the operators of a CPU's threads compute, outside of collectives."""
    sets: list[Intervals] = []
    for thread, spans in kept.work.items():
        runs = kept.runs[thread].union() if thread in kept.runs else union([], [])
        sets.append(without(spans.union(), runs))
    return together(sets)


def _calls(group: Group, spans: Spans, size: float, computing: Intervals, window: Window) -> Calls:
    order = sorted(range(len(spans.starts)), key=lambda at: spans.starts[at])
    own = [at for at in order if window.start <= spans.starts[at] < window.end]
    found = within(spans.union(), window.start, window.end)
    return Calls(
        group=group,
        bytes=size * len(own) / len(order),
        busy_s=length(found) / 1e6,
        exposed_s=length(without(found, computing)) / 1e6,
        each_s=tuple((spans.ends[at] - spans.starts[at]) / 1e6 for at in own),
        starts_s=tuple((spans.starts[at] - window.start) / 1e6 for at in own),
    )
