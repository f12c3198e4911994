"""An order in which the blocks of a schedule can be executed, whatever their durations.

Which block may follow which depends only on the orders of the ranks, so it is computed once per
schedule; `figgen.models.pipeline.simulate` then adds the times.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from figgen.errors import InputError
from figgen.models.pipeline.action import Action, Order
from figgen.models.pipeline.stage_placement import Placement

KIND_ORDER = "FBIW"
"""Times of actions are indexed by kind, in this order, then by stage."""


Half: TypeAlias = tuple[int, int, int, bool, int]
"""One action as indices: its time, the two outputs it waits for, whether the second comes from
another rank, and its own output. The first comes from its own stage and is available at once."""

Step: TypeAlias = tuple[int, Half, Half | None]
"""A block: its rank, its action, and the action that overlaps it, if any."""


@dataclass(frozen=True, slots=True)
class CarriedOrder:
    """All blocks of a schedule, each after the blocks that it waits for.

    The activation of (stage, microbatch) is output `stage * M + microbatch`; the gradient of its
    input is stages · M further. Two more outputs follow: `ready`, which exists from the start, for
    actions that wait for nothing, and one for results that no action waits for.
    """

    steps: tuple[Step, ...]
    outputs: int


def plan_of(
    *,
    name: str,
    placement: Placement,
    microbatches: int,
    orders: tuple[Order, ...],
    overlapped: frozenset[Action],
) -> CarriedOrder:
    """Return an order in which the blocks of the schedule `name` can be executed.

    `orders` has one order per rank. Raises InputError, naming the cycle of waits, if they cannot be
    executed.
    """
    board = _Board(name, placement, microbatches, orders, overlapped)
    runnable = list(range(placement.ranks))
    while runnable:
        runnable += board.run(runnable.pop())
    if any(at < len(order) for at, order in zip(board.position, orders, strict=True)):
        raise _stuck(board)
    return CarriedOrder(tuple(board.steps), board.ready + 2)


class _Board:
    """The position of every rank in its order, and the outputs that exist so far."""

    def __init__(
        self,
        name: str,
        placement: Placement,
        microbatches: int,
        orders: tuple[Order, ...],
        overlapped: frozenset[Action],
    ) -> None:
        stages, holder = placement.stages, placement.rank_of_stage
        self.name, self.orders, self.overlapped = name, orders, overlapped
        self.holder, self.microbatches = holder, microbatches
        self.gradients = stages * microbatches
        self.ready = 2 * self.gradients
        self.first = [placement.is_first(stage) for stage in range(stages)]
        self.last = [placement.is_last(stage) for stage in range(stages)]
        # Whether messages from stage s-1 to s, or back, change rank; at either end there are none.
        self.changes = [False, *(a != b for a, b in pairwise(holder)), False]
        self.times = {kind: place * stages for place, kind in enumerate(KIND_ORDER)}
        self.there = bytearray(self.ready + 2)
        self.there[self.ready] = 1
        self.position = [0] * placement.ranks
        self.waiting: dict[int, int] = {}
        self.steps: list[Step] = []

    def half(self, action: Action) -> Half:
        """Return the inputs and the output of `action`; I and B share one, W has none."""
        stage, kind, microbatch = action
        time, ready = self.times[kind] + stage, self.ready
        slot = stage * self.microbatches + microbatch
        gradient = slot + self.gradients
        if kind == "F":
            if self.first[stage]:
                return time, ready, ready, False, slot
            return time, ready, slot - self.microbatches, self.changes[stage], slot
        if kind == "W":
            return time, gradient, ready, False, ready + 1
        if self.last[stage]:
            return time, slot, ready, False, gradient
        return time, slot, gradient + self.microbatches, self.changes[stage + 1], gradient

    def missing(self, half: Half) -> int | None:
        """Return the first output that an action waits for."""
        _, own, sent, _, _ = half
        if not self.there[own]:
            return own
        return None if self.there[sent] else sent

    def block(self, rank: int) -> Order:
        """Return what `rank` runs next: an action, or an overlapped pair."""
        order, at = self.orders[rank], self.position[rank]
        return order[at : at + (2 if order[at] in self.overlapped else 1)]

    def run(self, rank: int) -> list[int]:
        """Run `rank` until its order ends or must wait; return the ranks that can now go on."""
        order, overlapped = self.orders[rank], self.overlapped
        woken: list[int] = []
        while self.position[rank] < len(order):
            first = self.half(order[self.position[rank]])
            partner = None
            if overlapped and len(block := self.block(rank)) > 1:
                partner = self.half(block[1])
            missing = self.missing(first)
            if missing is None and partner:
                missing = self.missing(partner)
            if missing is not None:
                self.waiting[missing] = rank
                return woken
            self.steps.append((rank, first, partner))
            self.position[rank] += 2 if partner else 1
            for half in (first, partner) if partner else (first,):
                self.there[half[-1]] = 1
                if half[-1] in self.waiting:
                    woken.append(self.waiting.pop(half[-1]))
        return woken


def _stuck(board: _Board) -> InputError:
    """Return the error for an order that stopped; it names a cycle of waits."""
    orders = board.orders
    rank = next(r for r, order in enumerate(orders) if board.position[r] < len(order))
    waits: dict[int, tuple[Action, Action]] = {}
    while rank not in waits:
        action, missing = next(
            (action, output)
            for action in board.block(rank)
            if (output := board.missing(board.half(action))) is not None
        )
        awaited = _maker(board, missing)
        waits[rank] = action, awaited
        rank = board.holder[awaited.stage]
    circle = list(waits)[list(waits).index(rank) :]
    action, awaited = waits[circle[0]]
    if len(circle) == 1:
        return InputError(
            f"order of schedule {board.name!r} breaks a dependency: on rank {rank},"
            f" {action} waits for {awaited}, which comes later in the same order"
        )
    return InputError(
        f"order of schedule {board.name!r} deadlocks: "
        + "; ".join(f"rank {r} at {waits[r][0]} waits for {waits[r][1]}" for r in circle)
    )


def _maker(board: _Board, output: int) -> Action:
    """Return the action that computes an activation or the gradient of an input."""
    stage = output % board.gradients // board.microbatches
    order = board.orders[board.holder[stage]]
    return next(a for a in order if board.half(a)[-1] == output)
