"""A pipeline schedule: the order of actions on each rank.

An order says what a rank does next, not when; `figgen.models.pipeline.simulate` adds the time.
Communication is not an action but a delay on a dependency.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from figgen.errors import InputError
from figgen.models.pipeline.action import Action, Order
from figgen.models.pipeline.carry import CarriedOrder, plan_of
from figgen.models.pipeline.stage_placement import Placement


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The order of every rank, `orders[rank]`, over a placement.

    `overlapped` holds the forwards that overlap the next backward in their rank's order (DualPipe's
    F&B pairs). With several pipes, each gets an equal run of consecutive microbatches.
    """

    name: str
    placement: Placement
    microbatches: int
    orders: tuple[Order, ...]
    overlapped: frozenset[Action] = frozenset()

    def __str__(self) -> str:
        return "\n".join(" ".join(map(str, order)) for order in self.orders)

    @cached_property
    def plan(self) -> CarriedOrder:
        """The blocks in an order in which they can be executed.

        Raises InputError for an action that is missing, repeated or on the wrong rank, and if no
        such order exists.
        """
        check_orders(self)
        return plan_of(
            name=self.name,
            placement=self.placement,
            microbatches=self.microbatches,
            orders=self.orders,
            overlapped=self.overlapped,
        )

    @cached_property
    def in_flight(self) -> tuple[frozenset[tuple[tuple[int, int], ...]], ...]:
        """For each rank, the microbatches that its stages hold whenever it is about to free one.

        A state is a tuple of (stage, microbatches), listed once; at no other moment does the rank
        hold more.
        """
        return tuple(map(_states_in_flight, self.orders))

    @cached_property
    def most_in_flight(self) -> tuple[int, ...]:
        """The most activations that each rank holds at once, over all its stages."""
        return tuple(map(_peak_stages, self.orders))

    def blocks(self, rank: int) -> tuple[Order, ...]:
        """Return what `rank` runs in turn: single actions and overlapped pairs."""
        if not self.overlapped:
            return tuple((action,) for action in self.orders[rank])
        blocks: list[Order] = []
        for action in self.orders[rank]:
            if blocks and blocks[-1][-1] in self.overlapped:
                blocks[-1] = (*blocks[-1], action)
            else:
                blocks.append((action,))
        return tuple(blocks)

    def microbatches_of(self, stage: int) -> range:
        """Return the microbatches that pass through `stage`."""
        share = self.microbatches // self.placement.pipes
        pipe = stage // self.placement.depth
        return range(pipe * share, (pipe + 1) * share)


def sources(placement: Placement, action: Action) -> tuple[Action, ...]:
    """Return the actions of other stages that compute the input of `action`, if any.

    A forward needs the forward of the previous stage. A backward needs the gradient from the next
    stage, computed by its B or its I; both are returned, and a schedule has one of them.
    """
    stage, microbatch = action.stage, action.microbatch
    if action.kind == "F":
        return () if placement.is_first(stage) else (Action(stage - 1, "F", microbatch),)
    if action.kind == "W" or placement.is_last(stage):
        return ()
    return Action(stage + 1, "B", microbatch), Action(stage + 1, "I", microbatch)


def needs(placement: Placement, action: Action) -> tuple[Order, ...]:
    """Return, for each input of `action`, the alternative actions that compute it."""
    stage, kind, microbatch = action
    if kind == "W":
        return ((Action(stage, "I", microbatch),),)
    sent = sources(placement, action)
    own: tuple[Order, ...] = () if kind == "F" else ((Action(stage, "F", microbatch),),)
    return (*own, sent) if sent else own


def check_orders(schedule: Schedule) -> None:
    """Raise InputError unless every stage works on each of its microbatches exactly once.

    Once means one F, and either one B or one I and one W, on the rank that holds the stage. This
    does not check whether the order can be executed; the simulator does.
    """
    placement = schedule.placement
    if len(schedule.orders) != placement.ranks:
        raise InputError(
            "wrong number of orders",
            expected=f"one per rank, {placement.ranks}",
            got=len(schedule.orders),
        )
    todo = {
        stage: {kind: set(schedule.microbatches_of(stage)) for kind in "FIW"}
        for stage in range(placement.stages)
    }
    for rank, order in enumerate(schedule.orders):
        for action in order:
            if action.stage not in todo or placement.rank_of_stage[action.stage] != rank:
                raise InputError(
                    f"rank {rank} does not hold the stage of {action}",
                    expected=f"stages {placement.stages_of_rank(rank)}",
                )
            for kind in "IW" if action.kind == "B" else action.kind:
                if action.microbatch not in todo[action.stage][kind]:
                    raise InputError(
                        f"{action} is repeated, or stage {action.stage} has no such microbatch",
                        expected=f"each of {schedule.microbatches_of(action.stage)} once",
                    )
                todo[action.stage][kind].remove(action.microbatch)
        _check_overlapped(order, schedule.overlapped)
    for stage, kinds in todo.items():
        for kind, left in kinds.items():
            if left:
                raise InputError(
                    f"order lacks {stage}{kind}{min(left)}", expected="every action", key="order"
                )


def _check_overlapped(order: Order, overlapped: frozenset[Action]) -> None:
    for action, after in zip(order, (*order[1:], None), strict=True) if overlapped else ():
        if action in overlapped and (action.kind != "F" or after is None or after.kind not in "BI"):
            raise InputError(
                f"{action} overlaps nothing", expected="a forward followed by a backward"
            )


def peak_in_flight(schedule: Schedule) -> tuple[float, ...]:
    """Return the most activations held at once on each rank, in microbatch equivalents.

    One unit is one microbatch's activations of one P-th of the model, so a chunk counts 1/V.
    Activations live from their forward to the end of B or W; what I frees earlier is ignored. The
    result depends only on the order, so no durations are needed.
    """
    chunks = schedule.placement.chunks
    return tuple(most / chunks for most in schedule.most_in_flight)


def _states_in_flight(order: Order) -> frozenset[tuple[tuple[int, int], ...]]:
    counts = dict.fromkeys((action.stage for action in order), 0)
    states, grown = set[tuple[int, ...]](), False
    for stage, kind, _ in order:
        if kind == "F":
            counts[stage] += 1
            grown = True
        elif kind != "I":
            if grown:
                states.add(tuple(counts.values()))
                grown = False
            counts[stage] -= 1
    return frozenset(tuple(zip(counts, state, strict=True)) for state in states)


def _peak_stages(order: Order) -> int:
    held = peak = 0
    for action in order:
        if action.kind == "F":
            held += 1
            peak = max(peak, held)
        elif action.kind != "I":
            held -= 1
    return peak


def check_sizes(
    name: str, stages: int, microbatches: int, chunks: int, only_chunks: int | None = None
) -> None:
    """Raise InputError unless P, M and V are integers ≥ 1 and the schedule allows V."""
    sizes = {"stages": stages, "microbatches": microbatches, "chunks": chunks}
    for size_name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError(
                f"{size_name} of schedule {name!r}",
                expected="an integer ≥ 1",
                got=size,
                key=size_name,
            )
    if only_chunks is not None and chunks != only_chunks:
        raise InputError(
            f"chunks of schedule {name!r}", expected=str(only_chunks), got=chunks, key="chunks"
        )
