"""The events of a modeled step in the trace event format, which Perfetto and Chrome open.

A process is one pipeline rank, whose GPUs all do the same; its threads are computing, with the
kernels of each pass below it, and one per kind of call. Times are microseconds from the beginning
of the step. Arguments of calls have the names of PyTorch's profiler where it has one.
Source: "Trace Event Format" of Chromium's catapult, complete events ("X") and metadata ("M").
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from figgen.models.machine.layout import mesh_of
from figgen.models.machine.mesh import axis_stride
from figgen.models.operations.operation import CAST, CONTIGUOUS, GROUPED, MATMUL, SCATTER
from figgen.models.pipeline.trace import Trace
from figgen.models.profiles.kernel_kinds import ELEMENTWISE, PRODUCT
from figgen.models.profiles.trace_kinds import MADE_BY, OPERATION, STEP
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.step_timeline import COMPUTE, KernelEvent, StepEvent, StepTimeline
from figgen.models.step.step_traffic import SEND

Event = dict[str, object]
DECIMALS = 3
"""Nanoseconds."""
STEP_THREAD = 0
KINDS = {
    MATMUL: PRODUCT,
    GROUPED: PRODUCT,
    CONTIGUOUS: ELEMENTWISE,
    SCATTER: "indexing",
    CAST: "quantization",
}
"""What a profile calls the kinds of operations that have another name there."""
MILLISECOND = 1000.0
"""Microseconds per unit of a schedule's time: a trace shows a unit as a millisecond."""


def written(events: Iterable[Event], model: str) -> Iterator[str]:
    """Yield a trace as pieces of text, one for each event and for the object around them."""
    other = json.dumps({"made by": MADE_BY, "model": model})
    yield f'{{"displayTimeUnit": "ms", "otherData": {other}, "traceEvents": ['
    for number, event in enumerate(events):
        line = json.dumps(event, ensure_ascii=False, allow_nan=False)
        yield f"{',' if number else ''}\n{line}"
    yield "\n]}\n"


def schedule_events(trace: Trace) -> Iterator[Event]:
    """Yield a pipeline schedule alone: a process for each rank, an event for each action.

    The second half of an overlapped pair has a thread of its own. A unit of time becomes a
    millisecond.
    """
    for rank in range(trace.schedule.placement.ranks):
        yield _metadata(rank, 0, "process_name", {"name": f"pipeline rank {rank}"})
        yield _metadata(rank, 0, "process_sort_index", {"sort_index": rank})
        yield {
            "ph": "X", "cat": "user_annotation", "pid": rank, "tid": STEP_THREAD,
            "name": f"{STEP}0", "ts": 0.0, "dur": round(trace.makespan * MILLISECOND, DECIMALS),
            "args": {},
        }  # fmt: skip
        for block in trace.placed_blocks(rank):
            for half, placed in enumerate(block):
                start = round(placed.start * MILLISECOND, DECIMALS)
                end = round(placed.end * MILLISECOND, DECIMALS)
                action = placed.action
                yield {
                    "ph": "X", "cat": "computing", "pid": rank, "tid": STEP_THREAD + 1 + half,
                    "name": str(action), "ts": start, "dur": round(end - start, DECIMALS),
                    "args": {"kind": action.kind, "stage": action.stage,
                             "microbatch": action.microbatch},
                }  # fmt: skip


def trace_events(setup: TrainingSetup, timeline: StepTimeline) -> Iterator[Event]:
    """Yield metadata of processes and threads, then the events of each lane in order of time."""
    parallel = setup.parallel
    stride = axis_stride(mesh_of(parallel, "pp"), "pp")
    alike = parallel.world_size // parallel.pp
    for rank in range(parallel.pp):
        name = f"pipeline rank {rank}: GPU {rank * stride} ({alike:,} alike)"
        yield _metadata(rank, 0, "process_name", {"name": name})
        yield _metadata(rank, 0, "process_sort_index", {"sort_index": rank})
        yield _metadata(rank, STEP_THREAD, "thread_name", {"name": "step"})
    lanes: dict[tuple[int, str], int] = {}
    for event in sorted(timeline.events, key=lambda e: (e.rank, e.lane != COMPUTE, e.lane)):
        key = (event.rank, event.lane)
        if key not in lanes:
            lanes[key] = STEP_THREAD + 1 + sum(rank == event.rank for rank, _ in lanes)
            yield _metadata(event.rank, lanes[key], "thread_name", {"name": event.lane})
            yield _metadata(event.rank, lanes[key], "thread_sort_index", {"sort_index": lanes[key]})
    for rank in range(parallel.pp):
        yield {
            "ph": "X", "cat": "user_annotation", "pid": rank, "tid": STEP_THREAD,
            "name": f"{STEP}0", "ts": 0.0, "dur": round(timeline.step_time_s * 1e6, DECIMALS),
            "args": {},
        }  # fmt: skip
    for event in timeline.events:
        yield _complete(event, lanes[event.rank, event.lane])
    for kernel in timeline.kernels:
        yield _kernel(kernel, lanes[kernel.rank, COMPUTE])


def _kernel(kernel: KernelEvent, thread: int) -> Event:
    """Return a kernel, which viewers draw below the pass that it is part of."""
    start = round(kernel.start_s * 1e6, DECIMALS)
    arguments: Event = {"kind": KINDS.get(kernel.kind, kernel.kind)}
    if kernel.microbatch is not None:
        arguments["microbatch"] = kernel.microbatch
    return {
        "ph": "X",
        "cat": OPERATION,
        "pid": kernel.rank,
        "tid": thread,
        "name": kernel.name,
        "ts": start,
        "dur": round(round(kernel.end_s * 1e6, DECIMALS) - start, DECIMALS),
        "args": arguments,
    }


def _metadata(rank: int, thread: int, name: str, arguments: Event) -> Event:
    return {"ph": "M", "pid": rank, "tid": thread, "name": name, "args": arguments}


def _complete(event: StepEvent, thread: int) -> Event:
    start = round(event.start_s * 1e6, DECIMALS)
    took = round(round(event.end_s * 1e6, DECIMALS) - start, DECIMALS)
    arguments: Event = {} if event.microbatch is None else {"microbatch": event.microbatch}
    if event.sent is not None:
        traffic = event.sent.traffic
        seconds = event.end_s - event.start_s
        arguments |= {
            "Collective name": traffic.collective,
            "Process Group Description": traffic.axis,
            "Group size": 2 if traffic.collective == SEND else traffic.size,
            "purpose": traffic.purpose,
            "link": event.sent.link.level,
            "calls": event.calls,
            "buffer bytes": traffic.buffer_bytes,
            "bus bandwidth (B/s)": event.calls * traffic.sent_bytes / seconds if seconds else 0.0,
        }
    return {
        "ph": "X", "cat": "computing" if event.sent is None else "communication",
        "pid": event.rank, "tid": thread, "name": event.name, "ts": start, "dur": took,
        "args": arguments,
    }  # fmt: skip
