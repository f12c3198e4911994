"""Converts events of JAX's profiler to those of PyTorch's.

Both profilers write Chrome traces. JAX's events have no category: processes named "/device:GPU:0"
or "/device:TPU:0" are devices, whose threads are streams or lines that XLA derives from them.
Source: openxla/xla, xla/tsl/profiler/utils/xplane_schema.cc (names of planes, lines, statistics);
openxla/xprof, xprof/convert/trace_viewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from figgen.models.profiles.trace_kinds import STEP

DEVICE = "/device:"
OPERATIONS, STEPS = "XLA Ops", "Steps"
DERIVED = (
    "XLA Modules", "XLA TraceMe", "Framework Name Scope", "Framework Ops", "Source code",
    "Launch Stats", "Async XLA Ops", "SparseCore",
)  # fmt: skip
"""Threads of a device that repeat the events of others, as sums or under other names."""

Found = tuple[Mapping[str, Any], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    """Names of processes and threads, from the trace's metadata."""

    processes: dict[str, str] = field(default_factory=dict)
    threads: dict[str, str] = field(default_factory=dict)

    def named(self, event: Mapping[str, Any]) -> tuple[str, str]:
        """Return the names of an event's process and thread."""
        process = str(event.get("pid"))
        thread = self.threads.get(f"{process} {event.get('tid')}", "")
        return self.processes.get(process, ""), thread


def with_jax(events: Iterable[Found]) -> Iterator[Found]:
    """Yield events, giving those of JAX the categories and names of PyTorch's profiler."""
    lines = _Lines()
    for header, event in events:
        if event.get("ph") == "M":
            _take_name(lines, event)
        if "cat" in event or event.get("ph") != "X" or not lines.processes:
            yield header, event
            continue
        process, thread = lines.named(event)
        found = _translated(event, process, thread)
        if found is not None:
            devices = [name for name in lines.processes.values() if name.startswith(DEVICE)]
            yield from _for_devices(header, found, process, devices)


def _take_name(lines: _Lines, event: Mapping[str, Any]) -> None:
    given = event.get("args")
    name = str(given.get("name", "")) if isinstance(given, dict) else ""
    process = str(event.get("pid"))
    if event.get("name") == "process_name":
        lines.processes[process] = name
    elif event.get("name") == "thread_name":
        lines.threads[f"{process} {event.get('tid')}"] = name


def _for_devices(
    header: Mapping[str, Any], event: Mapping[str, Any], process: str, devices: list[str]
) -> Iterator[Found]:
    """Yield a device's event for its device, and a host's event for each of `devices`."""
    for name in [process] if process.startswith(DEVICE) else devices:
        number = name.split(" ")[0].rpartition(":")[2]
        if len(devices) > 1 and number.isdigit():
            yield {**header, "gpu": int(number)}, event
        else:
            yield header, event


def _translated(event: Mapping[str, Any], process: str, thread: str) -> dict[str, Any] | None:
    """Return the event as PyTorch's profiler would write it, or None if it adds nothing."""
    given = event.get("args")
    args: Mapping[str, Any] = given if isinstance(given, dict) else {}
    name = str(event.get("name", ""))
    number = _number(args.get("correlation_id"))
    correlated = {} if number is None else {"correlation": number}
    if not process.startswith(DEVICE):
        if "step_num" in args:
            return {**event, "cat": "user_annotation", "name": f"{STEP}{args['step_num']}"}
        if correlated:
            return {**event, "cat": "cuda_runtime", "args": correlated}
        return None
    if thread.startswith(STEPS):
        return {**event, "cat": "gpu_user_annotation", "name": f"{STEP}{name}"}
    is_tpu = process.startswith(f"{DEVICE}TPU")
    if thread.startswith(DERIVED) or (thread.startswith(OPERATIONS) and not is_tpu):
        return None
    if is_tpu and not thread.startswith(OPERATIONS):
        return None
    category = "gpu_memcpy" if name.lower().startswith("memcpy") else "kernel"
    category = "gpu_memset" if name.lower().startswith("memset") else category
    # A TPU's fusions are named by number; their category says what they compute.
    named = f"{args['hlo_category']} {name}" if "hlo_category" in args else name
    return {**event, "cat": category, "name": named, "args": correlated}


def _number(value: object) -> int | None:
    text = str(value)
    return int(text) if text.isdigit() else None
