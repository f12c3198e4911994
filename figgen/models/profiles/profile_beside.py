"""Recorded steps read further: who waits for whom, and what the model says of the same time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from figgen.models.profiles.profile import Calls, RankProfile
from figgen.models.profiles.trace_kinds import AXES, ONE_SIDED, Group
from figgen.models.step.step import FAMILIES, StepEstimate

Common = dict[Group, tuple[tuple[str, ...], NDArray[np.float64]]]
"""Calls that several ranks recorded: their names, and seconds by rank and call."""


@dataclass(frozen=True, slots=True)
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
    held: dict[Group, dict[str, tuple[float, ...]]] = {}
    for rank in ranks:
        for calls in rank.calls:
            if calls.group.ranks and calls.group.collective not in (*ONE_SIDED, "other"):
                held.setdefault(calls.group, {})[rank.name] = calls.each_s
    return {
        group: (tuple(by_rank), np.array(list(by_rank.values())))
        for group, by_rank in held.items()
        if len(by_rank) > 1 and len({len(each) for each in by_rank.values()}) == 1
    }


def waiting(common: Common) -> tuple[Waiting, ...]:
    """How long each rank waits for the last one of each collective."""
    found: dict[str, Waiting] = {}
    for names, times in common.values():
        late, extra = times.argmin(axis=0), times - times.min(axis=0)
        for row, name in enumerate(names):
            before = found.get(name, Waiting(name, 0.0, 0, 0))
            found[name] = Waiting(
                name,
                before.waited_s + float(extra[row].sum()),
                before.last + int(np.sum(late == row)),
                before.calls + times.shape[1],
            )
    return tuple(found.values())


def bus_bandwidth_bytes_per_s(calls: Calls, common: Common) -> float:
    """Bus bandwidth of calls over the time of whoever came last, without waiting for others.

    Where no other rank recorded them, over their own time; 0 where sizes are not known.
    """
    group = calls.group
    seconds = sum(calls.each_s)
    if group in common:
        seconds = float(common[group][1].min(axis=0).sum())
    return group.factor * calls.bytes / seconds if seconds else 0.0


PAGES = {
    "computing": "guide/efficiency",
    "tp": "guide/tensor-parallelism",
    "etp": "guide/experts",
    "ep": "guide/experts",
    "cp": "guide/context-parallelism",
    "dp": "guide/zero-fsdp",
    "pipeline": "guide/pipeline-schedules",
    "launch": "guide/reading-a-profile",
    "copies": "guide/reading-a-profile",
    "other": "guide/reading-a-profile",
    "twice": "guide/reading-a-profile",
}
"""The page that explains a part of the step, without its suffix."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A part of the step, s: as recorded per step and as modelled, and the page about it."""

    part: str
    recorded_s: float
    modelled_s: float
    page: str


def beside(rank: RankProfile, estimate: StepEstimate) -> tuple[Beside, ...]:
    """The parts of one rank's step beside the model's, the largest difference first.

    A pipeline's messages are waited for where it idles, so that both are one part.
    """
    exposed = dict.fromkeys((*AXES, "other"), 0.0) | dict(rank.exposed_by_axis)
    twice = rank.exposed_s - sum(exposed.values())
    modelled = dict.fromkeys(exposed, 0.0)
    for axis, seconds in estimate.exposed:
        modelled[FAMILIES.get(axis, axis)] += seconds
    pipeline = exposed.pop("pp") + rank.idle_s, modelled.pop("pp") + estimate.bubble_s
    other = exposed.pop("other"), modelled.pop("other")
    per_step = {
        "computing": ("computing", rank.computing_s, estimate.compute_s + estimate.recompute_s),
        **{axis: (f"exposed {axis}", exposed[axis], modelled[axis]) for axis in exposed},
        "pipeline": ("pipeline idle and messages", *pipeline),
        "launch": ("kernels not launched yet", rank.launch_s, 0.0),
        "copies": ("copies alone", rank.copies_s, 0.0),
        "other": ("exposed in groups without a telling name", *other),
        "twice": ("exposed calls at the same time", twice, 0.0),
    }
    found = [
        Beside(part, recorded / rank.steps, model_s, PAGES[key])
        for key, (part, recorded, model_s) in per_step.items()
    ]
    wall = rank.wall_s / rank.steps
    shown = [row for row in found if max(abs(row.recorded_s), row.modelled_s) > 1e-9 * wall]
    return tuple(sorted(shown, key=lambda row: -abs(row.recorded_s - row.modelled_s)))


def slowest(ranks: Sequence[RankProfile]) -> RankProfile:
    """The rank that computes longest in a step."""
    return max(ranks, key=lambda rank: rank.computing_s / rank.steps)
