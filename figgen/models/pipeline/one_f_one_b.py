"""Schedules with full backwards: naive, GPipe, breadth-first, 1F1B and interleaved 1F1B."""

from __future__ import annotations

from collections.abc import Iterator

from figgen.models.pipeline.action import Action, Kind, Order
from figgen.models.pipeline.order import Schedule, check_sizes
from figgen.models.pipeline.stage_placement import contiguous, looping

_FORWARD_BACKWARD: tuple[Kind, Kind] = ("F", "B")


def naive(stages: int, microbatches: int, chunks: int = 1) -> Schedule:
    """Return the schedule without pipelining: microbatches run one after the other."""
    check_sizes("naive", stages, microbatches, chunks, only_chunks=1)
    orders = tuple(
        tuple(Action(rank, kind, m) for m in range(microbatches) for kind in _FORWARD_BACKWARD)
        for rank in range(stages)
    )
    return Schedule(
        name="naive", placement=contiguous(stages), microbatches=microbatches, orders=orders
    )


def gpipe(stages: int, microbatches: int, chunks: int = 1) -> Schedule:
    """Return GPipe: all forwards, then all backwards, first in first out as torch runs it.

    The paper draws the backwards last in first out; wall time and peak memory are the same.
    Source: Huang et al. 2019, arXiv:1811.06965, section 2.3.
    """
    check_sizes("gpipe", stages, microbatches, chunks, only_chunks=1)
    orders = tuple(
        tuple(Action(rank, kind, m) for kind in _FORWARD_BACKWARD for m in range(microbatches))
        for rank in range(stages)
    )
    return Schedule(
        name="gpipe", placement=contiguous(stages), microbatches=microbatches, orders=orders
    )


def one_f_one_b(stages: int, microbatches: int, chunks: int = 1) -> Schedule:
    """Return 1F1B with a flush: rank p runs P−p−1 forwards ahead, then alternates F and B.

    Source: Narayanan et al. 2021, arXiv:2104.04473, section 2.2.1 (PipeDream-Flush).
    """
    check_sizes("1f1b", stages, microbatches, chunks, only_chunks=1)
    orders = tuple(
        _warm_up_then_alternate(
            [Action(rank, "F", m) for m in range(microbatches)],
            [Action(rank, "B", m) for m in range(microbatches)],
            warmup=min(stages - rank - 1, microbatches),
        )
        for rank in range(stages)
    )
    return Schedule(
        name="1f1b", placement=contiguous(stages), microbatches=microbatches, orders=orders
    )


def interleaved_1f1b(stages: int, microbatches: int, chunks: int = 2) -> Schedule:
    """Return 1F1B over `chunks` model chunks per rank, in looping placement and Megatron's order.

    Chunks take turns after each group of microbatches (`microbatch_group_size`). Rank p runs
    2(P−p−1) + (V−1)·group forwards ahead. With one chunk this is plain 1F1B.
    Source: Narayanan et al. 2021, arXiv:2104.04473, section 2.2.2; Megatron-LM `get_schedule_table`
    for groups.
    """
    check_sizes("interleaved-1f1b", stages, microbatches, chunks)
    if chunks == 1:
        plain = one_f_one_b(stages, microbatches)
        return Schedule(
            name="interleaved-1f1b",
            placement=looping(stages, 1),
            microbatches=microbatches,
            orders=plain.orders,
        )
    group = microbatch_group_size(stages, microbatches)
    turns = list(chunk_turns(microbatches, chunks, group))
    orders = tuple(
        _warm_up_then_alternate(
            [Action(chunk * stages + rank, "F", m) for chunk, m in turns],
            [Action((chunks - 1 - chunk) * stages + rank, "B", m) for chunk, m in turns],
            warmup=min(2 * (stages - rank - 1) + (chunks - 1) * group, microbatches * chunks),
        )
        for rank in range(stages)
    )
    return Schedule(
        name="interleaved-1f1b",
        placement=looping(stages, chunks),
        microbatches=microbatches,
        orders=orders,
    )


def looped_bfs(stages: int, microbatches: int, chunks: int = 2) -> Schedule:
    """Return GPipe over `chunks` chunks per rank, each of which runs all microbatches at once.

    Backwards run last in first out, as in torch.
    Source: Lamy-Poirier 2022, arXiv:2211.05953 (breadth-first pipeline parallelism).
    """
    check_sizes("looped-bfs", stages, microbatches, chunks)
    placement = looping(stages, chunks)
    orders = []
    for rank in range(stages):
        held = placement.stages_of_rank(rank)
        forwards = tuple(Action(stage, "F", m) for stage in held for m in range(microbatches))
        backwards = tuple(Action(a.stage, "B", a.microbatch) for a in reversed(forwards))
        orders.append(forwards + backwards)
    return Schedule(
        name="looped-bfs", placement=placement, microbatches=microbatches, orders=tuple(orders)
    )


def microbatch_group_size(stages: int, microbatches: int) -> int:
    """Return how many microbatches a chunk runs before the next chunk's turn.

    That is P if it divides M. Otherwise it is the smallest size ≥ P that leaves no group shorter
    than P, as Megatron requires of its `microbatch_group_size_per_vp_stage`; it equals torch's M /
    ⌊M/P⌋ wherever torch accepts M. With M < P there is one group, as in torch.
    """
    if microbatches < stages:
        return microbatches
    size = stages
    while 0 < microbatches % size < stages:
        size += 1
    return size


def chunk_turns(microbatches: int, chunks: int, group: int) -> Iterator[tuple[int, int]]:
    """Yield (chunk, microbatch) in the order of forwards; the last group may be short."""
    for first in range(0, microbatches, group):
        for chunk in range(chunks):
            for microbatch in range(first, min(first + group, microbatches)):
                yield chunk, microbatch


def _warm_up_then_alternate(forwards: list[Action], backwards: list[Action], warmup: int) -> Order:
    order = forwards[:warmup]
    for forward, backward in zip(forwards[warmup:], backwards, strict=False):
        order += (forward, backward)
    return (*order, *backwards[len(forwards) - warmup :])
