"""Which ranks wait for which in recorded steps, and the model's times next to the recorded ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TypeAlias

from figgen.models.profiles.intervals import length
from figgen.models.profiles.profile import Calls, RankProfile
from figgen.models.profiles.trace_kinds import AXES, ONE_SIDED
from figgen.models.profiles.trace_ranks import Spans
from figgen.models.step.step import StepEstimate
from figgen.models.step.step_rows import family_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonCalls:
    """Calls that several ranks recorded: the names of the ranks, and by rank and call the seconds
    that each takes and when it starts."""

    names: tuple[str, ...]
    times: tuple[tuple[float, ...], ...]
    starts: tuple[tuple[float, ...], ...]

    @property
    def shortest(self) -> list[float]:
        """Seconds of each call on the rank that came to it last."""
        return [min(each[at] for each in self.times) for at in range(len(self.times[0]))]


Common: TypeAlias = Mapping[str, CommonCalls]
"""Calls that ranks have in common, by the key of their group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Seconds that a rank waits for the others in the collectives that they have in common.

    A collective ends for all ranks at once, so the rank that comes last spends the least time in
    it, and every other rank waits for the difference. Calls that overlap count once. `last` counts
    the calls to which this rank came last, `calls` all that could be compared.
    """

    name: str
    waited_s: float
    last: int
    calls: int


def waited_s(name: str, waits: Iterable[Waiting]) -> float:
    """Return how many seconds the rank of this name waits for others."""
    seconds = 0.0
    for one in waits:
        if one.name == name:
            seconds += one.waited_s
    return seconds


def common_calls(ranks: Iterable[RankProfile]) -> Common:
    """Return the calls of groups that two or more ranks recorded the same number of times."""
    held: dict[str, dict[str, Calls]] = {}
    for rank in ranks:
        for calls in rank.calls:
            if calls.group.ranks and calls.group.collective not in (*ONE_SIDED, "other"):
                held.setdefault(calls.group.key, {})[rank.name] = calls
    found: dict[str, CommonCalls] = {}
    for key, by_rank in held.items():
        times = tuple(calls.each_s for calls in by_rank.values())
        if len(times) > 1 and len({len(each) for each in times}) == 1:
            starts = tuple(calls.starts_s for calls in by_rank.values())
            found[key] = CommonCalls(names=tuple(by_rank), times=times, starts=starts)
    return found


def waiting(common: Common) -> tuple[Waiting, ...]:
    """Return how long each rank waits for the last one in its collectives.

    A rank waits from the start of a call until the last rank comes to it.
    """
    spans: dict[str, Spans] = {}
    came_last: dict[str, int] = {}
    compared: dict[str, int] = {}
    for calls in common.values():
        shortest = calls.shortest
        late = [_first_of(calls.times, at, least) for at, least in enumerate(shortest)]
        for row, name in enumerate(calls.names):
            waits = spans.setdefault(name, Spans())
            for at, least in enumerate(shortest):
                start = calls.starts[row][at]
                waits.add(start, start + calls.times[row][at] - least)
            came_last[name] = came_last.get(name, 0) + sum(1 for one in late if one == row)
            compared[name] = compared.get(name, 0) + len(shortest)
    return tuple(
        Waiting(
            name=name,
            waited_s=length(waits.union()),
            last=came_last[name],
            calls=compared[name],
        )
        for name, waits in spans.items()
    )


def _first_of(times: Sequence[Sequence[float]], at: int, least: float) -> int:
    """Return the first rank whose call took the `least` time."""
    return next(row for row, each in enumerate(times) if each[at] == least)


def bus_bandwidth_bytes_per_s(calls: Calls, common: Common) -> float:
    """Return the bus bandwidth of calls over the time of the last rank to arrive.

    That time includes no waiting. If no other rank recorded the calls, their own time counts.
    Returns 0 if the sizes are unknown.
    """
    group = calls.group
    seconds = fsum(calls.each_s)
    if group.key in common:
        seconds = fsum(common[group.key].shortest)
    return group.factor * calls.bytes / seconds if seconds else 0.0


PAGES = {
    "computing": "guide/efficiency",
    "tp": "guide/tensor-parallelism",
    "etp": "guide/experts",
    "ep": "guide/experts",
    "cp": "guide/context-parallelism",
    "dp": "guide/zero-fsdp",
    "pipeline": "guide/pipeline-schedules",
    "idle": "guide/reading-a-profile",
    "launch": "guide/reading-a-profile",
    "copies": "guide/reading-a-profile",
    "other": "guide/reading-a-profile",
    "twice": "guide/reading-a-profile",
}
"""Pages that explain the parts of a step, without suffix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A part of the step, recorded and modeled, in seconds per step, and the page about it."""

    part: str
    recorded_s: float
    modelled_s: float
    page: str


def beside(rank: RankProfile, estimate: StepEstimate) -> tuple[Beside, ...]:
    """Return the parts of a rank's step next to the model's, largest difference first.

    A pipeline's messages are waited for in its idle time, so both are one part. If neither the
    trace nor the model has a pipeline, idle time is a part of its own.
    """
    exposed = dict.fromkeys((*AXES, "other"), 0.0) | dict(rank.exposed_by_axis)
    twice = rank.exposed_s - sum(exposed.values())
    modelled = dict.fromkeys(exposed, 0.0)
    for axis, seconds in estimate.exposed:
        modelled[family_of(axis)] += seconds
    idle = "pipeline" if modelled["pp"] + estimate.bubble_s else idle_page(rank)
    pipeline = exposed.pop("pp") + rank.idle_s, modelled.pop("pp") + estimate.bubble_s
    other = exposed.pop("other"), modelled.pop("other")
    per_step = {
        "computing": ("computing", rank.computing_s, estimate.compute_s + estimate.recompute_s),
        **{axis: (f"exposed {axis}", exposed[axis], modelled[axis]) for axis in exposed},
        idle: ("pipeline idle and messages" if idle == "pipeline" else "idle", *pipeline),
        "launch": ("kernels not launched yet", rank.launch_s, 0.0),
        "copies": ("copies alone", rank.copies_s, 0.0),
        "other": ("exposed, group not identified", *other),
        "twice": ("exposed calls that overlap", twice, 0.0),
    }
    found = [
        Beside(part=part, recorded_s=recorded / rank.steps, modelled_s=model_s, page=PAGES[key])
        for key, (part, recorded, model_s) in per_step.items()
    ]
    wall = rank.wall_s / rank.steps
    shown = [row for row in found if max(abs(row.recorded_s), row.modelled_s) > 1e-9 * wall]
    return tuple(sorted(shown, key=lambda row: -abs(row.recorded_s - row.modelled_s)))


def idle_page(rank: RankProfile) -> str:
    """Return the key of `PAGES` for a rank's idle time, the pipeline's if it sends along one."""
    return "pipeline" if "pp" in dict(rank.exposed_by_axis) else "idle"


def slowest(ranks: Sequence[RankProfile]) -> RankProfile:
    """Return the rank that computes longest in a step."""
    return max(ranks, key=lambda rank: rank.computing_s / rank.steps)
