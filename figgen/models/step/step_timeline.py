"""The modeled step as events in time: what each pipeline rank computes and sends, and when.

`step` gives the computing time of every forward and backward, the time of each call and how much of
it is exposed. Within a pass, calls of one kind are spread evenly: a call ends when computing
resumes. Calls once per step stand before the first forward and after the last backward, one after
the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import fsum

from figgen.models.pipeline.simulate import PlacedAction, Trace
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.data_traffic import TIED
from figgen.models.step.layer_traffic import BOUNDARY
from figgen.models.step.stage_time import StageTime, TimedTraffic
from figgen.models.step.step import carried_out, once_exposed_s
from figgen.models.step.step_traffic import BACKWARD, END, FORWARD, START

COMPUTE = "compute"
AGAIN = "forward again"


@dataclass(frozen=True, slots=True)
class StepEvent:
    """Work or calls on one lane of a pipeline rank; events of one lane never overlap.

    `sent` is the traffic of `calls` equal calls, or None for computing. `microbatch` is None for
    what happens once per step, and `stage` for all but the computing of a virtual stage.
    """

    rank: int
    lane: str
    name: str
    start_s: float
    end_s: float
    microbatch: int | None = None
    sent: TimedTraffic | None = None
    calls: int = 0
    stage: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEvent:
    """A kernel, or a part of one, within the computing of a pipeline rank."""

    rank: int
    name: str
    kind: str
    start_s: float
    end_s: float
    microbatch: int | None


@dataclass(frozen=True, slots=True)
class StepTimeline:
    """All events of a step, ordered within each rank and lane, and the length of the step.

    `kernels` are those of its computing, if they are known.
    """

    events: tuple[StepEvent, ...]
    step_time_s: float
    kernels: tuple[KernelEvent, ...] = ()


def step_timeline(
    setup: TrainingSetup, stages: Sequence[StageTime], *, each_call: bool = True
) -> StepTimeline:
    """Return a step, with the times of `figgen.models.step.step.step_stages`, event by event.

    With `each_call` every call is its own event; otherwise equal calls of a pass are one event. The
    optimizer and the loss are part of computing and not shown separately.
    """
    trace, before_s, after_s = carried_out(setup, stages)
    found: list[StepEvent] = []
    for rank in range(setup.placement.ranks):
        events = list(_once(setup, stages, trace, rank, before_s))
        for block in trace.placed_blocks(rank):
            events += _block(stages, block, before_s, each_call)
        found += _stacked(events)
    return StepTimeline(tuple(found), before_s + trace.makespan + after_s)


@dataclass(frozen=True, slots=True)
class _Pause:
    """A call that ends once a share of a block's computing is done, and pauses it meanwhile.

    The pause lasts `exposed_s` of the `takes_s` seconds that the call takes.
    """

    share: float
    sent: TimedTraffic
    calls: int
    takes_s: float
    exposed_s: float
    microbatch: int


def _block(
    stages: Sequence[StageTime], block: tuple[PlacedAction, ...], shift_s: float, each_call: bool
) -> Iterator[StepEvent]:
    """Yield the computing, calls and closing messages of one action, or of a pair that overlaps."""
    start, end = block[0].start + shift_s, block[0].end + shift_s
    rank = block[0].rank
    parts = [part for placed in block for part in _parts(stages, placed)]
    pauses = [pause for placed in block for pause in _pauses(stages, placed, each_call)]
    if len(block) > 1:
        exposed = fsum(pause.exposed_s for pause in pauses)
        spare = end - start - fsum(seconds for _, seconds, _, _ in parts)
        left = min(1.0, max(0.0, spare) / exposed) if exposed else 1.0
        pauses = [replace(pause, exposed_s=left * pause.exposed_s) for pause in pauses]
    yield from _walked(rank, start, parts, sorted(pauses, key=lambda pause: pause.share))
    for placed in block:
        for entry in _entries(stages, placed):
            if entry.traffic.purpose == BOUNDARY:
                yield _event(rank, entry, end, entry.time_s, placed.action.microbatch)


def _walked(
    rank: int, start: float, parts: Sequence[tuple[str, float, int, int]], pauses: Sequence[_Pause]
) -> Iterator[StepEvent]:
    """Yield the computing in its parts, interrupted where it waits for a call."""
    total = fsum(seconds for _, seconds, _, _ in parts)
    bounds = list(accumulate(seconds for _, seconds, _, _ in parts))
    now = begun = start
    done = 0.0
    waiting = list(pauses)
    for (name, _, microbatch, stage), bound in zip(parts, bounds, strict=True):
        last = bound == bounds[-1]
        while waiting and (last or waiting[0].share * total <= bound):
            pause = waiting.pop(0)
            now += pause.share * total - done
            done = pause.share * total
            stop = now + pause.exposed_s
            begin = max(start, stop - pause.takes_s)
            yield _event(rank, pause.sent, begin, pause.takes_s, pause.microbatch, pause.calls)
            if pause.exposed_s:
                if now > begun:
                    yield StepEvent(rank, COMPUTE, name, begun, now, microbatch, stage=stage)
                now = begun = stop
        now += max(0.0, bound - done)
        done = max(done, bound)
        if now > begun:
            yield StepEvent(rank, COMPUTE, name, begun, now, microbatch, stage=stage)
        begun = now


def _parts(
    stages: Sequence[StageTime], placed: PlacedAction
) -> Iterator[tuple[str, float, int, int]]:
    """Yield name, seconds, microbatch and stage of each part of an action's computing."""
    stage, kind, microbatch = (
        stages[placed.action.stage], placed.action.kind, placed.action.microbatch,
    )  # fmt: skip
    times = {
        "F": (("forward", stage.forward_s),),
        "B": (
            (AGAIN, stage.recomputed_s),
            ("backward", stage.backward_input_s + stage.backward_weight_s),
        ),
        "I": ((AGAIN, stage.recomputed_s), ("backward, inputs", stage.backward_input_s)),
        "W": (("backward, weights", stage.backward_weight_s),),
    }[kind]
    yield from ((name, seconds, microbatch, placed.action.stage) for name, seconds in times)


def _entries(stages: Sequence[StageTime], placed: PlacedAction) -> Iterator[TimedTraffic]:
    """Return the traffic of an action; a backward's goes with its input gradients."""
    phase = {"F": FORWARD, "B": BACKWARD, "I": BACKWARD}.get(placed.action.kind)
    stage = stages[placed.action.stage]
    return (entry for entry in stage.traffic if entry.traffic.phase == phase)


def _pauses(stages: Sequence[StageTime], placed: PlacedAction, each_call: bool) -> Iterator[_Pause]:
    """Yield the calls of an action, except pipeline messages."""
    for entry in _entries(stages, placed):
        if entry.traffic.purpose != BOUNDARY:
            events = entry.traffic.calls if each_call else 1
            for index in range(events):
                yield _Pause(
                    (index + 1) / events, entry, 1 if each_call else entry.traffic.calls,
                    entry.time_s / events, entry.exposed_s / events, placed.action.microbatch,
                )  # fmt: skip


def _once(
    setup: TrainingSetup, stages: Sequence[StageTime], trace: Trace, rank: int, shift_s: float
) -> Iterator[StepEvent]:
    """Yield the calls once per step: weights from the start, gradients as they become ready."""
    mine = [stages[stage] for stage in setup.placement.stages_of_rank(rank)]
    entries = [entry for stage in mine for entry in stage.traffic]
    now = 0.0
    for entry in _single(entry for entry in entries if entry.traffic.phase == START):
        yield _event(rank, entry, now, entry.call.total_s)
        now += entry.call.total_s
    ending = [entry for entry in entries if entry.traffic.phase == END]
    backward_s = fsum(stage.backward_s + stage.exposed_s(BACKWARD) for stage in mine)
    late_s = once_exposed_s(setup, ending, backward_s)
    last = trace.ends[rank][-1] + shift_s
    bucketed = list(_single(entry for entry in ending if entry.traffic.purpose != TIED))
    tied = list(_single(entry for entry in ending if entry.traffic.purpose == TIED))
    behind_s = backward_s if setup.overlap_data_parallel else 0.0
    # Starts no later than the closed form of the step allows, even with unequal buckets.
    latest = last + late_s - fsum(entry.call.total_s for entry in (*bucketed, *tied))
    now, calls = 0.0, list[tuple[TimedTraffic, float]]()
    for index, entry in enumerate((*bucketed, *tied)):
        share = min(1.0, (index + 1) / len(bucketed)) if bucketed else 1.0
        now = min(max(now, last - behind_s * (1 - share)), latest)
        calls.append((entry, now))
        now += entry.call.total_s
        latest += entry.call.total_s
    # If the step waits for them longer than that, they run later.
    later_s = max(0.0, last + late_s - now) if calls else 0.0
    for entry, start in calls:
        yield _event(rank, entry, start + later_s, entry.call.total_s)


def _single(entries: Iterator[TimedTraffic]) -> Iterator[TimedTraffic]:
    """Yield every entry once per call."""
    return (entry for entry in entries for _ in range(entry.traffic.calls))


def _event(
    rank: int,
    entry: TimedTraffic,
    start: float,
    takes_s: float,
    microbatch: int | None = None,
    calls: int = 1,
) -> StepEvent:
    traffic = entry.traffic
    lane = f"{traffic.axis}: {traffic.purpose}, {traffic.collective}"
    if traffic.purpose == BOUNDARY:
        lane = f"{lane} {'on' if traffic.phase == FORWARD else 'back'}"
    name = f"{traffic.collective} {traffic.axis}"
    return StepEvent(rank, lane, name, start, start + takes_s, microbatch, entry, calls)


def _stacked(events: Sequence[StepEvent]) -> Iterator[StepEvent]:
    """Yield the events in order; overlapping ones move to another lane of the same name."""
    ends: dict[str, list[float]] = {}
    for event in sorted(events, key=lambda event: (event.start_s, event.end_s)):
        rows = ends.setdefault(event.lane, [])
        # Rounding errors are no overlap: adjacent events begin where the previous one ends.
        slack = 1e-9 * event.end_s
        row = next((i for i, end in enumerate(rows) if end <= event.start_s + slack), len(rows))
        start = event.start_s if row == len(rows) else max(event.start_s, rows[row])
        rows[row : row + 1] = [event.end_s]
        lane = event.lane if not row else f"{event.lane} ({row + 1})"
        yield replace(event, start_s=start, lane=lane)
