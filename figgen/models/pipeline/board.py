"""A schedule that is built one action at a time, with the reason if an action cannot be placed.

An action starts once its rank is free and its inputs have arrived, as in
`figgen.models.pipeline.simulate`. It can be placed once its inputs are, and placed actions never
move.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import cast

from figgen.errors import InputError
from figgen.models.pipeline.action import Action, Kind
from figgen.models.pipeline.arrivals import arrivals
from figgen.models.pipeline.carry import KIND_ORDER
from figgen.models.pipeline.order import Schedule, needs
from figgen.models.pipeline.simulate import action_times
from figgen.models.pipeline.trace import Durations, PlacedAction, Trace

_ACTION = re.compile(r"([0-9]{1,6})([FBIW])([0-9]{1,6})")
_KINDS: tuple[Kind, ...] = ("F", "B", "I", "W")
_RIVALS: dict[Kind, tuple[Kind, ...]] = {"F": (), "B": ("I", "W"), "I": ("B",), "W": ("B",)}
_SAME_WORK: dict[Kind, tuple[Kind, ...]] = {
    "F": ("F",), "B": ("B", "I"), "I": ("I", "B"), "W": ("W", "B"),
}  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Board:
    """The placed actions of a schedule with the sizes and stages of `schedule`.

    `times` are indexed by kind, then by stage. `lanes[rank]` and `moves` are in order of placing.
    """

    schedule: Schedule
    times: tuple[float, ...]
    latency: float
    lanes: list[list[PlacedAction]]
    placed: dict[Action, PlacedAction] = field(default_factory=dict)
    moves: list[Action] = field(default_factory=list)


def empty_board(schedule: Schedule, durations: Durations) -> Board:
    """Return a board without actions, on which pairs do not overlap."""
    times, _ = action_times(durations, schedule.placement.stages)
    return Board(
        schedule=schedule,
        times=times,
        latency=durations.latency,
        lanes=[[] for _ in range(schedule.placement.ranks)],
    )


def action_of(board: Board, text: str) -> Action:
    """Return the action written as `2F0`. Raises InputError for other forms and unknown actions."""
    match = _ACTION.fullmatch(text.strip().upper())
    if match is None:
        expected = "stage, F, B, I or W, microbatch, as 2F0"
        raise InputError("cannot read action", expected=expected, got=text[:40])
    stage, microbatch, stages = int(match[1]), int(match[3]), board.schedule.placement.stages
    kind = cast(Kind, match[2])
    if stage >= stages:
        raise InputError(
            f"stage of {match[0]}",
            expected=f"0 to {stages - 1}",
            got=stage,
            nearest=(f"{stages - 1}{kind}{microbatch}",),
        )
    there = board.schedule.microbatches_of(stage)
    low, high = there[0], there[-1]
    if not low <= microbatch <= high:
        raise InputError(
            f"microbatch of {match[0]}",
            expected=f"{low} to {high}",
            got=microbatch,
            nearest=(f"{stage}{kind}{min(high, max(low, microbatch))}",),
        )
    return Action(stage, kind, microbatch)


def refusal(board: Board, action: Action) -> str | None:
    """Return why `action` cannot be placed now, or None if it can."""
    stage, kind, microbatch = action
    if action in board.placed:
        return f"{action} has been placed already: every action runs once"
    for rival in _RIVALS[kind]:
        other = Action(stage, rival, microbatch)
        if other in board.placed:
            return (
                f"{other} has been placed: B does the work of I and W, so a microbatch has either "
                "B or both I and W"
            )
    placement = board.schedule.placement
    for makers in needs(placement, action):
        if not any(maker in board.placed for maker in makers):
            what = "activation" if makers[0].kind == "F" else "gradient"
            rank = placement.rank_of_stage[makers[0].stage]
            return (
                f"{action} waits for the {what} of {' or '.join(map(str, makers))} on rank {rank}, "
                "which has not been placed"
            )
    return None


def place(board: Board, action: Action) -> PlacedAction:
    """Place `action` as early as it can run. Raises InputError with the reason if it cannot."""
    why = refusal(board, action)
    if why is not None:
        raise InputError(why)
    placement = board.schedule.placement
    rank = placement.rank_of_stage[action.stage]
    lane = board.lanes[rank]
    start = lane[-1].end if lane else 0.0
    for arrival in arrivals(placement, board.latency, board.placed, action):
        start = max(start, arrival.time)
    time = board.times[KIND_ORDER.find(action.kind) * placement.stages + action.stage]
    placed = PlacedAction(action=action, rank=rank, start=start, end=start + time, overlapped=False)
    lane.append(placed)
    board.placed[action] = placed
    board.moves.append(action)
    return placed


def undo(board: Board) -> None:
    """Remove the action that was placed last, if there is one."""
    if board.moves:
        placed = board.placed.pop(board.moves.pop())
        board.lanes[placed.rank].pop()


def left(board: Board) -> int:
    """Return the number of passes still to be placed; I and W together count as one backward."""
    count = 0
    for stage in range(board.schedule.placement.stages):
        for microbatch in board.schedule.microbatches_of(stage):
            last: Kind = "W" if Action(stage, "I", microbatch) in board.placed else "B"
            for kind in ("F", last):
                count += Action(stage, kind, microbatch) not in board.placed
    return count


def offers(board: Board, rank: int) -> tuple[Action, ...]:
    """Return the next microbatch of each stage and kind that `rank` has not run, ready or not."""
    found: list[Action] = []
    for stage in board.schedule.placement.stages_of_rank(rank):
        for kind in _KINDS:
            for microbatch in board.schedule.microbatches_of(stage):
                action = Action(stage, kind, microbatch)
                owed = kind != "W" or Action(stage, "I", microbatch) in board.placed
                if owed and not _is_done(board, action):
                    found.append(action)
                    break
    return tuple(found)


def follow(board: Board, trace: Trace, before: float | None = None) -> int:
    """Place actions in the order of `trace` as far as possible; return how many were placed.

    With `before`, only actions that start earlier are placed. Without it, a W is also placed where
    an I was placed and the trace has a B.
    """
    lanes, count = trace.placed, 0
    reached = [0] * len(lanes)
    moved = True
    while moved:
        moved = False
        for rank, lane in enumerate(lanes):
            while reached[rank] < len(lane):
                slot = lane[reached[rank]]
                if before is not None and slot.start >= before:
                    break
                if not _is_done(board, slot.action):
                    if refusal(board, slot.action) is not None:
                        break
                    place(board, slot.action)
                    count += 1
                reached[rank] += 1
                moved = True
    if before is not None:
        return count
    for rank in range(len(lanes)):
        while owed := [action for action in offers(board, rank) if action.kind == "W"]:
            place(board, owed[0])
            count += 1
    return count


def _is_done(board: Board, action: Action) -> bool:
    """Whether `action` has been placed, as B or as I and W."""
    stage, kind, microbatch = action
    return any(Action(stage, one, microbatch) in board.placed for one in _SAME_WORK[kind])


def as_schedule(board: Board) -> Schedule:
    """Return the placed actions as a schedule, which `simulate` can run once none is left."""
    return Schedule(
        name=board.schedule.name,
        placement=board.schedule.placement,
        microbatches=board.schedule.microbatches,
        orders=tuple(tuple(placed.action for placed in lane) for lane in board.lanes),
    )
