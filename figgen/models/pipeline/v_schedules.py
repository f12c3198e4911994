"""V-Half and V-Min: a building block that is repeated, then compressed, its end filled up.

A block says when one microbatch passes each rank: down the ranks and up again, forward and
backward. The time that it occupies a rank decides the memory. Unlike other schedules, these are
made for given durations: F, I and W take one unit each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from figgen.models.pipeline.action import Action, Kind
from figgen.models.pipeline.order import Schedule, check_sizes, sources
from figgen.models.pipeline.stage_placement import Placement, v_shape

_PERIOD = 6  # units between the starts of blocks: F, I and W of two chunks


def v_half(stages: int, microbatches: int, chunks: int = 2) -> Schedule:
    """Return V-Half: about half the idle time and half the memory of 1F1B, ⌊(P+2)/2⌋ microbatches.

    Forwards go down in steps of 2 and up in steps of 1, backwards likewise. The authors' search
    also moves passes of the first microbatches into the gap that an even P needs, and ends up to 4
    units earlier.
    Source: Qi et al. 2024, arXiv:2405.15362, section 3 and its V-shaped building blocks.
    """
    check_sizes("v-half", stages, microbatches, chunks, only_chunks=2)
    # Without the gap, two passes of a rank would fall into the same slot of the period.
    gap = 3 if stages % 2 == 0 else 0
    starts = [
        (2 * r, 3 * stages - 2 - r, 3 * stages + gap + 2 * r - 1, 6 * stages + gap - 2 - r)
        for r in range(stages)
    ]
    return _press("v-half", starts, microbatches)


def v_min(stages: int, microbatches: int, chunks: int = 2) -> Schedule:
    """Return V-Min: about 2/3 of the idle time and 1/3 of the memory of 1F1B, ⌊(P+4)/3⌋.

    Every pass goes straight from rank to rank, the shortest life that an activation can have. If F,
    I and W differ, idle time grows with M. If 3 divides P, the authors' search ends 4 units
    earlier, as for V-Half.
    Source: Qi et al. 2024, arXiv:2405.15362, section 3 and its V-shaped building blocks.
    """
    check_sizes("v-min", stages, microbatches, chunks, only_chunks=2)
    gap = 2 if stages % 3 == 0 else 0
    starts = [
        (r, 2 * stages - 1 - r, 2 * stages + gap + r, 4 * stages + gap - 1 - r)
        for r in range(stages)
    ]
    return _press("v-min", starts, microbatches)


@dataclass(slots=True, kw_only=True)
class _Rank:
    """A rank in a schedule under construction: coming actions, pending W, and finished actions.

    `bound` counts the W among the coming actions that are still at their place in the block.
    """

    to_come: deque[Action]
    bound: int
    owed: deque[Action] = field(default_factory=deque)
    order: list[Action] = field(default_factory=list)


def _press(name: str, starts: Sequence[Sequence[int]], microbatches: int) -> Schedule:
    """Return the order of the repeated blocks, compressed and with its end filled up.

    A rank follows the blocks, W included, until its last new microbatch; from then on it runs W
    whenever it would wait. Filling every wait from the start gains nothing if F, I and W are equal,
    and costs V-Half time on every microbatch if F is longer.
    """
    placement = v_shape(len(starts))
    ranks = []
    for rank, start in enumerate(starts):
        to_come = deque(_repeat(start, placement.stages_of_rank(rank), microbatches))
        ranks.append(_Rank(to_come=to_come, bound=sum(action.kind == "W" for action in to_come)))
    done: set[Action] = set()
    while ran := [action for rank in ranks for action in _step(rank, placement, done)]:
        done.update(ran)
    orders = tuple(tuple(rank.order) for rank in ranks)
    return Schedule(name=name, placement=placement, microbatches=microbatches, orders=orders)


def _repeat(start: Sequence[int], stages: Sequence[int], microbatches: int) -> Iterator[Action]:
    """Yield the actions of one rank in the order of its repeated block.

    Until the last forward down the ranks, a vacant unit takes the oldest pending W.
    """
    down, up = stages
    passes: tuple[tuple[int, Kind], ...] = ((down, "F"), (up, "F"), (up, "I"), (down, "I"))
    at = {
        first + _PERIOD * m: Action(stage, kind, m)
        for first, (stage, kind) in zip(start, passes, strict=True)
        for m in range(microbatches)
    }
    last_new = start[0] + _PERIOD * (microbatches - 1)
    owed: deque[Action] = deque()
    for time in range(max(at) + 1):
        if time in at:
            yield at[time]
            owed.extend(_weight_part(at[time]))
        elif owed and time < last_new:
            yield owed.popleft()


def _step(rank: _Rank, placement: Placement, done: set[Action]) -> list[Action]:
    """Return what `rank` runs in the current unit of time: no action or one."""
    if rank.to_come:
        action = rank.to_come[0]
        needed = sources(placement, action)
        if not needed or not done.isdisjoint(needed):
            rank.order.append(rank.to_come.popleft())
            rank.owed.extend(_weight_part(action))
            if action.kind == "W":
                rank.owed.popleft()
                rank.bound -= 1
            return [action]
    if rank.owed and not rank.bound:
        rank.order.append(rank.owed.popleft())
        return rank.order[-1:]
    return []


def _weight_part(action: Action) -> tuple[Action, ...]:
    """Return the W that belongs to an I."""
    return (Action(action.stage, "W", action.microbatch),) if action.kind == "I" else ()
