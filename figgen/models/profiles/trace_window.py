"""Which part of a trace is its recorded steps: their start and end on the device, and number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from figgen.models.profiles.intervals import Intervals
from figgen.models.profiles.trace_host import launch_of
from figgen.models.profiles.trace_ranks import RecordedRank

MARKER_SHARE = 0.1
"""Step annotations of a device are markers if they cover a smaller share of the recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Start and end in microseconds, the number of steps between, and what they were read from."""

    start: float
    end: float
    steps: int
    told_by: str


def window_of(kept: RecordedRank, active: Intervals) -> Window:
    """Return the recorded steps of a rank, or all of its activity if no step is marked.

    A step lasts on the device from the first to the last kernel that the host launched in it.
    Without launches, the device's own annotations of steps count. ROCm writes those as short
    markers at the end of each step; between the first and the last marker lies one step less.
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
    """Return the window of what the host launched within its steps, or None without launches.

    Work from earlier launches that the device still does, recorded or not, is not part of the
    steps.
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
