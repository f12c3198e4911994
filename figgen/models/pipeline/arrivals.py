"""The inputs that an action of a pipeline schedule waits for, and when they arrive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from figgen.models.pipeline.action import Action
from figgen.models.pipeline.order import needs
from figgen.models.pipeline.stage_placement import Placement
from figgen.models.pipeline.trace import PlacedAction


@dataclass(frozen=True, slots=True)
class Arrival:
    """An input of an action: the action that computed it, and when it reaches the waiting rank."""

    source: PlacedAction
    time: float


def by_action(lanes: Iterable[Sequence[PlacedAction]]) -> dict[Action, PlacedAction]:
    """Return the rank and time of each action of these lanes."""
    return {placed.action: placed for lane in lanes for placed in lane}


def arrivals(
    placement: Placement, latency: float, placed: Mapping[Action, PlacedAction], action: Action
) -> tuple[Arrival, ...]:
    """Return the inputs of `action` that are `placed`, latest first.

    `latency` delays inputs from another rank.
    """
    rank = placement.rank_of_stage[action.stage]
    found = []
    for makers in needs(placement, action):
        for maker in makers:
            source = placed.get(maker)
            if source is not None:
                delay = 0.0 if source.rank == rank else latency
                found.append(Arrival(source, source.end + delay))
    return tuple(sorted(found, key=lambda arrival: -arrival.time))


def free_at(lane: Sequence[PlacedAction], place: int) -> float:
    """Return when a rank is free for the action or pair at `place` in its lane."""
    placed = lane[place]
    first = place - 1 if placed.overlapped and placed.action.kind != "F" else place
    return lane[first - 1].end if first else 0.0
