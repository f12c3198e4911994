"""Where the time of recorded steps went, rank by rank: from the events of a profiler's trace.

The wall of a rank is divided so that the parts add up to it: computing, communication that
nothing hides (exposed), copies that nothing hides, time in which the host had not launched the
next kernel, and the rest in which the device idles. What runs while something computes is hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from figgen.errors import InputError
from figgen.models.profiles.trace_kinds import Group, axis_of
from figgen.models.profiles.trace_ranks import RecordedRank, Spans, rank_name, take
from figgen.models.step.intervals import Floats, Intervals, length, outside, together, union, within
from figgen.models.step.intervals import without as minus

PARTS = {
    "computing_s": "computing",
    "exposed_s": "exposed",
    "copies_s": "copies",
    "launch_s": "not launched",
    "idle_s": "idle",
}
"""What adds up to the wall of a rank, and what each of it is called."""


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of one group and collective on a rank; `bytes` are those of the buffers, all calls.

    `busy_s` counts moments in which any of them runs once, `exposed_s` those of them in which
    nothing computes. `each_s` is how long every call takes, in the order of their starts.
    """

    group: Group
    bytes: float
    busy_s: float
    exposed_s: float
    each_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RankProfile:
    """One rank's recorded window of `steps` steps, s; the parts add up to `wall_s`."""

    name: str
    steps: int
    wall_s: float
    computing_s: float
    exposed_s: float
    hidden_s: float
    copies_s: float
    launch_s: float
    idle_s: float
    exposed_by_axis: tuple[tuple[str, float], ...]
    calls: tuple[Calls, ...]


def profiles(
    events: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]], name: str
) -> tuple[RankProfile, ...]:
    """The ranks of one trace: one for a profiler's file, one per process for a modelled step.

    Raises InputError for events without finite times, and where nothing runs.
    """
    ranks: dict[str, RecordedRank] = {}
    for number, (header, event) in enumerate(events):
        if event.get("ph") != "X":
            continue
        start: Any = event.get("ts")
        took: Any = event.get("dur", 0)
        if not (_finite(start) and _finite(took)) or took < 0:
            expected = "a finite ts and a dur >= 0"
            raise InputError(f"{name}, event {number:,}", expected=expected, got=(start, took))
        rank = ranks.setdefault(rank_name(header, event, name), RecordedRank())
        take(rank, event, header, float(start), float(start + took))
    found = tuple(_profile(rank, kept) for rank, kept in ranks.items() if _runs(kept))
    if not found:
        expected = "kernels, or operators on a CPU"
        raise InputError(f"trace {name}", expected=expected, got="neither")
    return found


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _runs(kept: RecordedRank) -> bool:
    return bool(kept.kernels.starts or kept.work or kept.calls)


def _profile(name: str, kept: RecordedRank) -> RankProfile:
    on_device = bool(kept.kernels.starts)
    computing = kept.kernels.union() if on_device else _work(kept)
    sets = {group: spans.union() for group, spans in kept.calls.items()}
    talking = together(*sets.values(), union((), ()))
    copying = kept.copies.union()
    start, end = _window(kept, together(computing, talking, copying))
    computing, talking, copying = (within(s, start, end) for s in (computing, talking, copying))
    exposed = minus(talking, computing)
    busy = together(computing, talking)
    alone = length(minus(copying, busy))
    idle = outside(together(busy, copying), start, end)
    launch = _late(kept, idle)
    calls = [
        _calls(group, kept, within(found, start, end), computing, (start, end))
        for group, found in sets.items()
    ]
    return RankProfile(
        name=name,
        steps=max(1, len(kept.steps)),
        wall_s=(end - start) / 1e6,
        computing_s=length(computing) / 1e6,
        exposed_s=length(exposed) / 1e6,
        hidden_s=(length(talking) - length(exposed)) / 1e6,
        copies_s=alone / 1e6,
        launch_s=launch / 1e6,
        idle_s=(length(idle) - launch) / 1e6,
        exposed_by_axis=tuple(_by_axis(sets, computing, (start, end)).items()),
        calls=tuple(sorted((c for c in calls if c.each_s), key=lambda c: -c.exposed_s)),
    )


def _by_axis(
    sets: Mapping[Group, Intervals], computing: Intervals, window: tuple[float, float]
) -> dict[str, float]:
    """Exposed seconds of each axis, calls that run at the same time counted once."""
    axes: dict[str, list[Intervals]] = {}
    for group, found in sets.items():
        axes.setdefault(axis_of(group), []).append(within(found, *window))
    return {axis: length(minus(together(*s), computing)) / 1e6 for axis, s in axes.items()}


def _work(kept: RecordedRank) -> Intervals:
    """Operators of all threads of a CPU, without what they do inside of a collective."""
    return together(
        *(
            minus(spans.union(), kept.runs.get(thread, Spans()).union())
            for thread, spans in kept.work.items()
        ),
        union((), ()),
    )


def _window(kept: RecordedRank, active: Intervals) -> tuple[float, float]:
    """From the first recorded step's beginning to the last one's end; all activity without them."""
    if kept.steps:
        return min(s for s, _ in kept.steps.values()), max(e for _, e in kept.steps.values())
    return float(active[0][0]), float(active[1][-1])


def _late(kept: RecordedRank, idle: Intervals) -> float:
    """Microseconds of idle gaps that passed before the host had launched what ends them."""
    if not kept.launched.numbers:
        return 0.0
    numbers, begun = kept.began.sorted()
    known, ends = kept.launched.sorted()
    at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    paired = known[at] == numbers
    starts, launched = begun[paired], ends[at[paired]]
    order = np.argsort(starts, kind="stable")
    starts, launched = starts[order], launched[order]
    following = np.searchsorted(starts, idle[1] - 1e-3)
    some = following < len(starts)
    until = np.minimum(launched[following[some]], idle[1][some])
    return float(np.sum(np.maximum(0.0, until - idle[0][some])))


def _calls(
    group: Group,
    kept: RecordedRank,
    found: Intervals,
    computing: Intervals,
    window: tuple[float, float],
) -> Calls:
    spans = kept.calls[group]
    starts: Floats = np.array(spans.starts)
    order = np.argsort(starts, kind="stable")
    inside = (starts >= window[0]) & (starts < window[1])
    each = (np.array(spans.ends) - starts)[order][inside[order]]
    share = len(each) / len(starts)
    return Calls(
        group=group,
        bytes=kept.bytes[group] * share,
        busy_s=length(found) / 1e6,
        exposed_s=length(minus(found, computing)) / 1e6,
        each_s=tuple(each / 1e6),
    )
