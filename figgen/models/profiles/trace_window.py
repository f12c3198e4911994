"""Which part of a trace is its recorded steps: from when to when on the device, and how many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from figgen.models.profiles.intervals import Intervals
from figgen.models.profiles.trace_host import launch_of
from figgen.models.profiles.trace_ranks import RecordedRank

MARKER_SHARE = 0.1
"""A device's annotations of steps are markers where they cover less of the recording than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Microseconds from when to when, how many steps that is, and what told it."""

    start: float
    end: float
    steps: int
    told_by: str


def window_of(kept: RecordedRank, active: Intervals) -> Window:
    """The recorded steps of a rank; all of its activity where no step is marked.

    A device goes through a step from the first kernel that the host launched in it to the last
    one; without launches its own annotations of steps count. ROCm writes those as short markers
    at the end of each step: between the first and the last of them lies one step less.
    """
    device, host = kept.device_steps, kept.host_steps
    if len(device) > 1 and _are_markers(device, host):
        ends = sorted(end for _, end in device.values())
        return Window(start=ends[0], end=ends[-1], steps=len(ends) - 1, told_by="markers")
    if host:
        launched = _launched(kept)
        if launched is not None:
            return launched
    if device and not _are_markers(device, host):
        return _around(device, "device")
    if host:
        found = _around(host, "host")
        end = max([found.end, *(end for _, end in device.values())])
        return Window(start=found.start, end=end, steps=found.steps, told_by="host")
    steps = max(1, len(device))
    return Window(start=active[0][0], end=active[1][-1], steps=steps, told_by="all")


def _around(steps: Mapping[str, tuple[float, float]], told_by: str) -> Window:
    start = min(start for start, _ in steps.values())
    end = max(end for _, end in steps.values())
    return Window(start=start, end=end, steps=len(steps), told_by=told_by)


def _are_markers(
    device: Mapping[str, tuple[float, float]], host: Mapping[str, tuple[float, float]]
) -> bool:
    """Whether annotations on the device mark the ends of steps instead of spanning them."""
    covered = sum(end - start for start, end in device.values())
    whole = _around(device, "device")
    length = whole.end - whole.start
    if len(device) == 1:
        length = max([end - start for start, end in host.values()], default=0.0)
    return covered < MARKER_SHARE * length


def _launched(kept: RecordedRank) -> Window | None:
    """The window of what the host launched within its steps; None without launches to go by.

    What the device still does then of earlier launches, recorded or not, is no part of the steps.
    """
    first = min(start for start, _ in kept.host_steps.values())
    last = max(end for _, end in kept.host_steps.values())
    inside: list[tuple[float, float]] = []
    earlier: list[tuple[float, float]] = []
    for events in (kept.kernels, kept.copies, kept.calls):
        for at in range(len(events.starts)):
            launch = launch_of(kept, events, at)
            if launch is None or launch.start < first:
                earlier.append((events.starts[at], events.ends[at]))
            elif launch.start <= last:
                inside.append((events.starts[at], events.ends[at]))
    if not inside or len(inside) < len(earlier):
        return None
    begun = min(start for start, _ in inside)
    before = max([end for start, end in earlier if start < begun], default=first)
    return Window(
        start=min(begun, max(first, before)),
        end=max(last, max(end for _, end in inside)),
        steps=len(kept.host_steps),
        told_by="launches",
    )
