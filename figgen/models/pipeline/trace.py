"""A simulated pipeline schedule: durations and times of actions, idle time and memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from math import fsum

from figgen.errors import InputError
from figgen.models.pipeline.action import Action
from figgen.models.pipeline.order import Schedule, peak_in_flight, sources

PerStage = float | tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """How long one stage works on one microbatch, in any unit of time.

    `forward`, `backward_input`, `backward_weight`: one number for all virtual stages, or a tuple
    with one per stage. A full backward takes both backward parts. `latency` delays an activation or
    gradient that changes rank. `overlapped_pair` is the time of an F&B pair in schedules that have
    them, by the stage of its forward; the backward is of the rank's other stage. Without it a pair
    hides nothing and takes the sum. By default a backward takes twice as long as a forward.
    """

    forward: PerStage = 1.0
    backward_input: PerStage = 1.0
    backward_weight: PerStage = 1.0
    latency: float = 0.0
    overlapped_pair: PerStage | None = None

    def __post_init__(self) -> None:
        # By name, `getattr` would print every method for the pages.
        durations: tuple[tuple[str, PerStage | None], ...] = (
            ("forward", self.forward),
            ("backward_input", self.backward_input),
            ("backward_weight", self.backward_weight),
            ("latency", self.latency),
            ("overlapped_pair", self.overlapped_pair),
        )
        for name, value in durations:
            if value is None:
                continue
            times = value if isinstance(value, tuple) else (value,)
            if not all(0 <= time < math.inf for time in times):
                raise InputError(f"duration {name}", expected="finite times ≥ 0", got=value)
            # Stages without layers may take no time, but not all stages.
            if name == "forward" and not any(times):
                raise InputError("duration forward", expected="times > 0", got=value)

    def per_chunk(self, chunks: int) -> Durations:
        """Return the durations of a rank's work cut into `chunks` equal chunks; latency stays."""

        def cut(value: PerStage) -> PerStage:
            return tuple(t / chunks for t in value) if isinstance(value, tuple) else value / chunks

        pair = self.overlapped_pair
        return replace(
            self,
            forward=cut(self.forward),
            backward_input=cut(self.backward_input),
            backward_weight=cut(self.backward_weight),
            overlapped_pair=None if pair is None else cut(pair),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedAction:
    """An action with its rank and times; `overlapped` if another action shares its time."""

    action: Action
    rank: int
    start: float
    end: float
    overlapped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A simulated schedule with the time of each action on each rank.

    `starts[rank][i]` and `ends[rank][i]` belong to block i of `schedule.blocks(rank)`; `busy` is
    the time that each rank works. The wall time is [0, `makespan`] on every rank: idle time
    includes the wait before a rank's first and after its last action.
    """

    schedule: Schedule
    durations: Durations
    starts: tuple[tuple[float, ...], ...]
    ends: tuple[tuple[float, ...], ...]
    busy: tuple[float, ...]
    makespan: float

    def placed_blocks(self, rank: int) -> tuple[tuple[PlacedAction, ...], ...]:
        """Return what one rank runs in turn, single actions and overlapped pairs, with times.

        Raises InputError for a rank that the schedule does not have.
        """
        if not 0 <= rank < len(self.starts):
            raise InputError("rank", expected=f"0 to {len(self.starts) - 1}", got=rank)
        blocks = zip(self.schedule.blocks(rank), self.starts[rank], self.ends[rank], strict=True)
        return tuple(
            tuple(
                PlacedAction(
                    action=action, rank=rank, start=start, end=end, overlapped=len(block) > 1
                )
                for action in block
            )
            for block, start, end in blocks
        )

    def placed_on(self, rank: int) -> tuple[PlacedAction, ...]:
        """Return the actions of one rank, in order of start."""
        return tuple(placed for block in self.placed_blocks(rank) for placed in block)

    @property
    def placed(self) -> tuple[tuple[PlacedAction, ...], ...]:
        """The actions of every rank, `placed[rank]` in order of start."""
        return tuple(map(self.placed_on, range(len(self.starts))))

    @property
    def bubble_fraction_by_rank(self) -> tuple[float, ...]:
        """Idle share of the wall time on each rank."""
        return tuple((self.makespan - busy) / self.makespan for busy in self.busy)

    @property
    def bubble_fraction(self) -> float:
        """Idle share of the wall time over all ranks."""
        wall = self.makespan * len(self.busy)
        return (wall - fsum(self.busy)) / wall

    @property
    def bubble_overhead_by_rank(self) -> tuple[float, ...]:
        """Idle time over work on each rank."""
        return tuple((self.makespan - busy) / busy for busy in self.busy)

    @property
    def bubble_overhead(self) -> float:
        """Idle time over ideal time, which is the work alone, over all ranks."""
        work = fsum(self.busy)
        return (self.makespan * len(self.busy) - work) / work

    @property
    def span_by_rank(self) -> tuple[float, ...]:
        """Time from each rank's first start to its last end."""
        return tuple(
            ends[-1] - starts[0] for starts, ends in zip(self.starts, self.ends, strict=True)
        )

    @property
    def bubble_fraction_without_flush(self) -> float:
        """Idle share if steps follow each other without a common end.

        This is how zero-bubble schedules are judged: a rank starts its next step when its own work
        is done, and the longest span sets the pace. Source: Qi et al. 2023, arXiv:2401.10241,
        section 4 (optimizer step without synchronization).
        """
        pace = max(self.span_by_rank)
        return (pace * len(self.busy) - fsum(self.busy)) / (pace * len(self.busy))

    @property
    def peak_in_flight(self) -> tuple[float, ...]:
        """Most activations held at once on each rank, in microbatch equivalents."""
        return peak_in_flight(self.schedule)

    def in_flight(self, rank: int) -> tuple[tuple[float, float], ...]:
        """Return the activations held on `rank` over time, in microbatch equivalents.

        There is a (time, amount from then on) for each change, beginning with (0, …).
        """
        chunks = self.schedule.placement.chunks
        changes: dict[float, int] = {0: 0}
        for placed in self.placed_on(rank):
            if placed.action.kind == "F":
                changes[placed.start] = changes.get(placed.start, 0) + 1
            elif placed.action.kind != "I":
                changes[placed.end] = changes.get(placed.end, 0) - 1
        held = 0
        steps: list[tuple[float, float]] = []
        for time in sorted(changes):
            held += changes[time]
            if not steps or steps[-1][1] != held / chunks:
                steps.append((time, held / chunks))
        return tuple(steps)


def critical_path(trace: Trace) -> tuple[PlacedAction, ...]:
    """Return a chain of actions from time 0 to the makespan, each started by the previous end.

    Durations along it plus `latency` at each change of rank add up to the makespan. If an action
    was held up by its rank and by an input alike, the path stays on the rank.
    """
    blocks = [trace.placed_blocks(rank) for rank in range(len(trace.starts))]
    placed = {p.action: p for lane in blocks for block in lane for p in block}
    index_of = {p.action: i for lane in blocks for i, block in enumerate(lane) for p in block}
    step = max((lane[-1][-1] for lane in blocks), key=lambda p: p.end)
    path = [step]
    while step.start > 0:
        index = index_of[step.action]
        earlier = blocks[step.rank][index - 1][-1] if index > 0 else None
        if earlier is None or earlier.end != step.start:
            path[-1], earlier = _held_by(trace, blocks[step.rank][index], placed)
        step = earlier
        path.append(step)
    return tuple(reversed(path))


def _held_by(
    trace: Trace, block: tuple[PlacedAction, ...], placed: dict[Action, PlacedAction]
) -> tuple[PlacedAction, PlacedAction]:
    """Return the action whose input arrived at the start of `block`, and the one that sent it."""
    for member in block:
        for action in sources(trace.schedule.placement, member.action):
            source = placed.get(action)
            # A source on the same rank ends no later than the previous block.
            if source is None or source.rank == member.rank:
                continue
            if source.end + trace.durations.latency == member.start:
                return member, source
    raise InputError(
        f"nothing explains the start of {block[0].action}", expected="a simulated trace"
    )
