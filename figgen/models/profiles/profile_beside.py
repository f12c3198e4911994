"""Recorded steps read further: who waits for whom, and what the model says of the same time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TypeAlias

from figgen.models.profiles.profile import Calls, RankProfile
from figgen.models.profiles.trace_kinds import AXES, ONE_SIDED
from figgen.models.step.step import StepEstimate
from figgen.models.step.step_rows import family_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonCalls:
    """Calls that several ranks recorded: their names, and seconds by rank and call."""

    names: tuple[str, ...]
    times: tuple[tuple[float, ...], ...]

    @property
    def shortest(self) -> list[float]:
        """Seconds of each call on the rank that came to it last."""
        return [min(each[at] for each in self.times) for at in range(len(self.times[0]))]


Common: TypeAlias = Mapping[str, CommonCalls]
"""Calls in common by the key of their group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What a rank waits for the others in the collectives that they have in common, s.

    A collective ends for all at once, so that who came last is in it for the shortest time, and
    everybody else waited for as long as he was in it longer. `last` counts the calls to which this
    rank came last, `calls` all that could be compared.
    """

    name: str
    waited_s: float
    last: int
    calls: int


def common_calls(ranks: Iterable[RankProfile]) -> Common:
    """Calls of one group that two ranks or more have recorded as often as each other."""
    held: dict[str, dict[str, tuple[float, ...]]] = {}
    for rank in ranks:
        for calls in rank.calls:
            if calls.group.ranks and calls.group.collective not in (*ONE_SIDED, "other"):
                held.setdefault(calls.group.key, {})[rank.name] = calls.each_s
    found: dict[str, CommonCalls] = {}
    for key, by_rank in held.items():
        times = tuple(by_rank.values())
        if len(times) > 1 and len({len(each) for each in times}) == 1:
            found[key] = CommonCalls(names=tuple(by_rank), times=times)
    return found


def waiting(common: Common) -> tuple[Waiting, ...]:
    """How long each rank waits for the last one of each collective."""
    found: dict[str, Waiting] = {}
    for calls in common.values():
        shortest = calls.shortest
        late = [_first_of(calls.times, at, least) for at, least in enumerate(shortest)]
        for row, name in enumerate(calls.names):
            before = found.get(name, Waiting(name=name, waited_s=0.0, last=0, calls=0))
            extra = [took - least for took, least in zip(calls.times[row], shortest, strict=True)]
            found[name] = Waiting(
                name=name,
                waited_s=before.waited_s + fsum(extra),
                last=before.last + sum(1 for one in late if one == row),
                calls=before.calls + len(shortest),
            )
    return tuple(found.values())


def _first_of(times: Sequence[Sequence[float]], at: int, least: float) -> int:
    """The first rank whose call took just as long as the shortest one."""
    return next(row for row, each in enumerate(times) if each[at] == least)


def bus_bandwidth_bytes_per_s(calls: Calls, common: Common) -> float:
    """Bus bandwidth of calls over the time of the last rank to arrive, without waiting.

    Where no other rank recorded them, over their own time; 0 where sizes are not known.
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
"""The page that explains a part of the step, without its suffix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A part of the step, s: as recorded per step and as modelled, and the page about it."""

    part: str
    recorded_s: float
    modelled_s: float
    page: str


def beside(rank: RankProfile, estimate: StepEstimate) -> tuple[Beside, ...]:
    """The parts of one rank's step beside the model's, the largest difference first.

    A pipeline's messages are waited for where it idles, so that both are one part. Where neither
    the trace nor the model has a pipeline, idle time is just that.
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
        "other": ("exposed in groups without a telling name", *other),
        "twice": ("exposed calls at the same time", twice, 0.0),
    }
    found = [
        Beside(part=part, recorded_s=recorded / rank.steps, modelled_s=model_s, page=PAGES[key])
        for key, (part, recorded, model_s) in per_step.items()
    ]
    wall = rank.wall_s / rank.steps
    shown = [row for row in found if max(abs(row.recorded_s), row.modelled_s) > 1e-9 * wall]
    return tuple(sorted(shown, key=lambda row: -abs(row.recorded_s - row.modelled_s)))


def idle_page(rank: RankProfile) -> str:
    """Which of `PAGES` explains a rank's idle time: a pipeline's only where it sends along one."""
    return "pipeline" if "pp" in dict(rank.exposed_by_axis) else "idle"


def slowest(ranks: Sequence[RankProfile]) -> RankProfile:
    """The rank that computes longest in a step."""
    return max(ranks, key=lambda rank: rank.computing_s / rank.steps)
