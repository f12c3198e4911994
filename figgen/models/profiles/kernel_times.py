"""Device time by what kernels do, by module, and by the operators that launched them late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from figgen.models.profiles.intervals import Intervals
from figgen.models.profiles.kernel_kinds import (
    BOUNDS,
    COMMUNICATION,
    COPY,
    MEMSET,
    OPTIMIZER,
    OTHER,
    kind_of_kernel,
    kind_of_operator,
)
from figgen.models.profiles.trace_host import (
    OPTIMIZER_STEP,
    operator_of,
    scopes_of_launches,
)
from figgen.models.profiles.trace_kinds import MODULE
from figgen.models.profiles.trace_ranks import NONE, DeviceEvents, RecordedRank
from figgen.models.profiles.trace_window import Window

STALL_US = 2000.0
"""A gap longer than this is no launch: the host did something else meanwhile, such as loading data.

In ten public traces of eager PyTorch the median gap is 0.03 to 0.14 ms.
"""
MOST = 30
"""Number of kernels, modules and operators that are kept, longest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindTime:
    """Seconds of one kind of kernel, and its share of the device's running time.

    `alone_s` counts moments in which several kernels run for the one that began first, so that the
    kinds that compute add up to computing. It is 0 for communication, copies and memory sets.
    """

    kind: str
    seconds: float
    share: float
    alone_s: float
    kernels: int
    bound: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTime:
    """Seconds of all runs of the kernels of one name."""

    name: str
    kind: str
    seconds: float
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleTime:
    """Seconds of the kernels that one class of modules launched directly, forward and backward."""

    module: str
    seconds: float
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Seconds for which the device waited for launches of one operator."""

    operator: str
    seconds: float
    gaps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LateStart:
    """One gap: the microseconds until the host launched the event that ends it, and its index."""

    late: float
    at: int


def _inside(events: DeviceEvents, window: Window) -> list[int]:
    """Return the indices of events that began within the window, in order of start."""
    starts = events.starts
    some = [at for at in range(len(starts)) if window.start <= starts[at] < window.end]
    some.sort(key=lambda at: starts[at])
    return some


def kinds_by_event(kept: RecordedRank, events: DeviceEvents, order: Sequence[int]) -> list[str]:
    """Return the kind of each of these kernels, by its name or by the operator that launched it.

    Elementwise kernels launched by an optimizer's step count as the optimizer's.
    """
    by_name: dict[int, str] = {}
    optimizing = _optimizing(kept)
    found: list[str] = []
    for at in order:
        name = events.names[at]
        if name not in by_name:
            by_name[name] = kept.kinds.get(kept.names[name]) or kind_of_kernel(kept.names[name])
        kind = by_name[name]
        if kind == OTHER:
            kind = kind_of_operator(operator_of(kept, events, at))
        if events.launches[at] in optimizing and kind != COMMUNICATION:
            kind = OPTIMIZER
        found.append(kind)
    return found


def _optimizing(kept: RecordedRank) -> set[int]:
    """Return the correlation ids of the launches within optimizer steps."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for thread, scopes in kept.scopes.items():
        for scope in scopes:
            if scope.name.startswith(OPTIMIZER_STEP):
                spans.setdefault(thread, []).append((scope.start, scope.end))
    found: set[int] = set()
    for number, launch in kept.launched.items():
        if any(start <= launch.start <= end for start, end in spans.get(launch.thread, [])):
            found.add(number)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTimes:
    """Device time by kind and by kernel within the steps, and by kind over the whole recording.

    All fields are empty for a CPU and for a modeled step without kernels.
    """

    kinds: tuple[KindTime, ...]
    all_kinds: tuple[KindTime, ...]
    kernels: tuple[KernelTime, ...]


def device_times(kept: RecordedRank, window: Window) -> DeviceTimes:
    """Return the device's time by what its kernels do, longest first."""
    whole_passes = kept.facts.get("modelled") and not kept.operations.starts
    if whole_passes or not (kept.kernels.starts or kept.copies.starts):
        return DeviceTimes(kinds=(), all_kinds=(), kernels=())
    everything = Window(start=-inf, end=inf, steps=window.steps, told_by="all")
    order = _inside(kept.running, everything)
    kinds = kinds_by_event(kept, kept.running, order)
    return DeviceTimes(
        kinds=_kinds(kept, window, order, kinds),
        all_kinds=_kinds(kept, everything, order, kinds),
        kernels=_kernels(kept, window, order, kinds),
    )


def _kinds(
    kept: RecordedRank, window: Window, order: Sequence[int], kinds: Sequence[str]
) -> tuple[KindTime, ...]:
    totals: dict[str, float] = {}
    alone: dict[str, float] = {}
    numbers: dict[str, int] = {}
    kernels, until = kept.running, window.start
    for place, at in enumerate(order):
        kind = kinds[place]
        start, end = kernels.starts[at], min(kernels.ends[at], window.end)
        if not window.start <= start < window.end:
            continue
        totals[kind] = totals.get(kind, 0.0) + end - start
        numbers[kind] = numbers.get(kind, 0) + 1
        alone[kind] = alone.get(kind, 0.0) + max(0.0, end - max(start, until))
        until = max(until, end)
    for events in (kept.copies, kept.calls):
        for other in _inside(events, window):
            kind = _kind_beside(kept, events, other)
            end = min(events.ends[other], window.end)
            totals[kind] = totals.get(kind, 0.0) + end - events.starts[other]
            numbers[kind] = numbers.get(kind, 0) + 1
    whole = sum(totals.values())
    found = [
        KindTime(
            kind=kind,
            seconds=total / 1e6,
            share=total / whole if whole else 0.0,
            alone_s=alone.get(kind, 0.0) / 1e6,
            kernels=numbers[kind],
            bound=BOUNDS[kind],
        )
        for kind, total in totals.items()
    ]
    return tuple(sorted(found, key=lambda one: -one.seconds))


def _kind_beside(kept: RecordedRank, events: DeviceEvents, at: int) -> str:
    """Return the kind of an event that computes nothing: communication, copy or memory set."""
    if events is kept.calls:
        return COMMUNICATION
    return MEMSET if kept.names[events.names[at]].lower().startswith("memset") else COPY


def _kernels(
    kept: RecordedRank, window: Window, order: Sequence[int], by_event: Sequence[str]
) -> tuple[KernelTime, ...]:
    seconds: dict[str, float] = {}
    runs: dict[str, int] = {}
    kinds: dict[str, str] = {}
    for place, at in enumerate(order):
        name = kept.names[kept.running.names[at]]
        if not window.start <= kept.running.starts[at] < window.end:
            continue
        end = min(kept.running.ends[at], window.end)
        seconds[name] = seconds.get(name, 0.0) + (end - kept.running.starts[at]) / 1e6
        runs[name] = runs.get(name, 0) + 1
        kinds[name] = by_event[place]
    longest = sorted(seconds, key=lambda name: -seconds[name])[:MOST]
    return tuple(
        KernelTime(name=name, kind=kinds[name], seconds=seconds[name], runs=runs[name])
        for name in longest
    )


def modules_of(kept: RecordedRank, window: Window) -> tuple[ModuleTime, ...]:
    """Return device time by class of module, longest first; empty without recorded stacks."""
    if not _has_modules(kept):
        return ()
    scopes = scopes_of_launches(kept)
    seconds: dict[str, float] = {}
    runs: dict[str, int] = {}
    for events in (kept.kernels, kept.copies, kept.calls):
        for at in _inside(events, window):
            module = scopes.get(events.launches[at], OTHER)
            end = min(events.ends[at], window.end)
            seconds[module] = seconds.get(module, 0.0) + (end - events.starts[at]) / 1e6
            runs[module] = runs.get(module, 0) + 1
    longest = sorted(seconds, key=lambda module: -seconds[module])[:MOST]
    return tuple(
        ModuleTime(module=module, seconds=seconds[module], runs=runs[module]) for module in longest
    )


def _has_modules(kept: RecordedRank) -> bool:
    for scopes in kept.scopes.values():
        if any(scope.name.startswith(MODULE) for scope in scopes):
            return True
    return False


def late_of(kept: RecordedRank, idle: Intervals) -> list[LateStart]:
    """Return the idle gaps that passed before the host had launched the event that ends them."""
    begun: list[tuple[float, float, int]] = []
    for place, events in enumerate((kept.kernels, kept.copies, kept.calls)):
        for at in range(len(events.starts)):
            launch = kept.launched.get(events.launches[at])
            if launch is not None and events.launches[at] != NONE:
                begun.append((events.starts[at], launch.end, 3 * at + place))
    begun.sort()
    found: list[LateStart] = []
    following = 0
    for start, end in zip(idle[0], idle[1], strict=True):
        while following < len(begun) and begun[following][0] < end - 1e-3:
            following += 1
        if following == len(begun):
            break
        _, launched, number = begun[following]
        late = min(launched, end) - start
        if late > 0:
            found.append(LateStart(late=late, at=number))
    return found


def gaps_of(kept: RecordedRank, late: Sequence[LateStart]) -> tuple[Gap, ...]:
    """Return late launches by the operator that they belong to, largest total first."""
    tables = (kept.kernels, kept.copies, kept.calls)
    seconds: dict[str, float] = {}
    gaps: dict[str, int] = {}
    for one in late:
        events = tables[one.at % 3]
        operator = operator_of(kept, events, one.at // 3) or kept.names[events.names[one.at // 3]]
        seconds[operator] = seconds.get(operator, 0.0) + one.late / 1e6
        gaps[operator] = gaps.get(operator, 0) + 1
    longest = sorted(seconds, key=lambda operator: -seconds[operator])[:MOST]
    return tuple(
        Gap(operator=operator, seconds=seconds[operator], gaps=gaps[operator])
        for operator in longest
    )


def stall_of(kept: RecordedRank, late: Sequence[LateStart]) -> Gap | None:
    """The longest gap that is too long for a launch, with how many there are; None without."""
    long = [one for one in late if one.late > STALL_US]
    if not long:
        return None
    longest = max(long, key=lambda one: one.late)
    events = (kept.kernels, kept.copies, kept.calls)[longest.at % 3]
    operator = operator_of(kept, events, longest.at // 3)
    name = operator or kept.names[events.names[longest.at // 3]]
    return Gap(operator=name, seconds=longest.late / 1e6, gaps=len(long))


def kinds_together(ranks: Sequence[Sequence[KindTime]]) -> tuple[KindTime, ...]:
    """Return the kinds of several ranks added up, longest first."""
    found: dict[str, KindTime] = {}
    for kinds in ranks:
        for one in kinds:
            before = found.get(one.kind)
            found[one.kind] = KindTime(
                kind=one.kind,
                seconds=one.seconds + (before.seconds if before else 0.0),
                share=0.0,
                alone_s=one.alone_s + (before.alone_s if before else 0.0),
                kernels=one.kernels + (before.kernels if before else 0),
                bound=one.bound,
            )
    whole = sum(one.seconds for one in found.values())
    return tuple(
        replace(one, share=one.seconds / whole if whole else 0.0)
        for one in sorted(found.values(), key=lambda one: -one.seconds)
    )
