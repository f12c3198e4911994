"""Algorithms without a tree: one rank exchanges with all others, one after the other.

They are the baseline for every other algorithm. In a rooted algorithm the root sends or receives in
every step, and every other rank in a single step.
"""

from __future__ import annotations

from figgen.errors import check_size
from figgen.models.collectives.exchanges import chunk_of_pair
from figgen.models.collectives.traces import CollectiveTrace, Round, assemble, require_rank


def _others(ranks: int, root: int) -> list[int]:
    require_rank(root, check_size("ranks", ranks))
    return [(root + i) % ranks for i in range(1, ranks)]


def _reduce_rounds(ranks: int, root: int) -> list[Round]:
    return [[(rank, root, (0,), True)] for rank in _others(ranks, root)]


def _broadcast_rounds(ranks: int, root: int) -> list[Round]:
    return [[(root, rank, (0,), False)] for rank in _others(ranks, root)]


def serial_reduce(ranks: int, *, root: int = 0) -> CollectiveTrace:
    """Every other rank sends its vector to `root`, in turn: n−1 steps of the whole vector."""
    rounds = _reduce_rounds(ranks, root)
    return assemble("reduce", "naive", ranks, 1, [("reduce", rounds)], root=root)


def serial_broadcast(ranks: int, *, root: int = 0) -> CollectiveTrace:
    """`root` sends its vector to every other rank, in turn: n−1 steps of the whole vector."""
    rounds = _broadcast_rounds(ranks, root)
    return assemble("broadcast", "naive", ranks, 1, [("broadcast", rounds)], root=root)


def serial_all_reduce(ranks: int, *, root: int = 0) -> CollectiveTrace:
    """Serial reduce to `root`, then serial broadcast: the naive all-reduce, 2(n−1) steps."""
    phases = [
        ("reduce", _reduce_rounds(ranks, root)),
        ("broadcast", _broadcast_rounds(ranks, root)),
    ]
    return assemble("all-reduce", "naive", ranks, 1, phases, root=root)


def _scatter_rounds(ranks: int, root: int) -> list[Round]:
    return [[(root, rank, (rank,), False)] for rank in _others(ranks, root)]


def _gather_rounds(ranks: int, root: int) -> list[Round]:
    return [[(rank, root, (rank,), False)] for rank in _others(ranks, root)]


def serial_scatter(ranks: int, *, root: int = 0) -> CollectiveTrace:
    """`root` sends every other rank its chunk, in turn: n−1 steps of one n-th of the buffer."""
    phases = [("scatter", _scatter_rounds(ranks, root))]
    return assemble("scatter", "naive", ranks, ranks, phases, owners=range(ranks), root=root)


def serial_gather(ranks: int, *, root: int = 0) -> CollectiveTrace:
    """Every other rank sends its chunk to `root`, in turn: n−1 steps of one n-th each."""
    phases = [("gather", _gather_rounds(ranks, root))]
    return assemble("gather", "naive", ranks, ranks, phases, owners=range(ranks), root=root)


def serial_all_gather(ranks: int, *, root: int = 0) -> CollectiveTrace:
    """Serial gather at `root`, which then sends every other rank all that it lacks, in turn."""
    back: list[Round] = [
        [(root, rank, tuple(c for c in range(ranks) if c != rank), False)]
        for rank in _others(ranks, root)
    ]
    phases = [("gather", _gather_rounds(ranks, root)), ("broadcast", back)]
    return assemble("all-gather", "naive", ranks, ranks, phases, owners=range(ranks), root=root)


def serial_reduce_scatter(ranks: int, *, root: int = 0) -> CollectiveTrace:
    """Serial reduce of whole vectors to `root`, then serial scatter: 2(n−1) steps."""
    whole = tuple(range(ranks))
    to_root: list[Round] = [[(rank, root, whole, True)] for rank in _others(ranks, root)]
    phases = [("reduce", to_root), ("scatter", _scatter_rounds(ranks, root))]
    return assemble("reduce-scatter", "naive", ranks, ranks, phases, owners=whole, root=root)


def serial_all_to_all(ranks: int) -> CollectiveTrace:
    """One message at a time, rank by rank: n(n−1) steps of one n-th of the buffer."""
    rounds: list[Round] = [
        [(a, b, (chunk_of_pair(a, b, ranks),), False)]
        for a in range(check_size("ranks", ranks))
        for b in range(ranks)
        if a != b
    ]
    return assemble("all-to-all", "naive", ranks, ranks**2, [("exchange", rounds)])
