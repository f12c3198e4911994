"""Binomial trees and chains: broadcast, reduce, scatter, gather, and algorithms built from them.

A binomial tree halves the distance in every step: the root reaches the rank half way round, then
both reach the rank a quarter further, and so on, in ⌈log2 n⌉ steps for any n. Each subtree is a run
of consecutive ranks, so that a scatter sends one contiguous part per message. Reductions and
gathers run the same messages backwards (MPICH; Thakur, Rabenseifner and Gropp 2005).

A chain passes the message from neighbor to neighbor in `segments` pieces, which overlap.
"""

from __future__ import annotations

from collections.abc import Sequence

from figgen.errors import check_size
from figgen.models.collectives.rings import gather_rounds, reduce_rounds, single_chunks
from figgen.models.collectives.traces import (
    CollectiveTrace,
    Round,
    assemble,
    require_rank,
)


def _binomial_edges(ranks: int, root: int) -> list[list[tuple[int, int, int]]]:
    """Per step, (parent, child, size of the child's subtree) in places counted from the root."""
    require_rank(root, check_size("ranks", ranks))
    distances = [1 << i for i in reversed(range((ranks - 1).bit_length()))]
    return [
        [
            (place, place + distance, min(distance, ranks - place - distance))
            for place in range(0, ranks - distance, 2 * distance)
        ]
        for distance in distances
    ]


def _down(ranks: int, root: int) -> list[Round]:
    return [
        [((a + root) % ranks, (b + root) % ranks, (0,), False) for a, b, _ in edges]
        for edges in _binomial_edges(ranks, root)
    ]


def _up(ranks: int, root: int) -> list[Round]:
    return [
        [(target, source, chunks, True) for source, target, chunks, _ in moves]
        for moves in reversed(_down(ranks, root))
    ]


def _scatter_rounds(ranks: int, root: int) -> list[Round]:
    return [
        [
            (
                (a + root) % ranks,
                (b + root) % ranks,
                tuple((place + root) % ranks for place in range(b, b + size)),
                False,
            )
            for a, b, size in edges
        ]
        for edges in _binomial_edges(ranks, root)
    ]


def _gather_rounds(ranks: int, root: int) -> list[Round]:
    return [
        [(target, source, chunks, False) for source, target, chunks, _ in moves]
        for moves in reversed(_scatter_rounds(ranks, root))
    ]


def binomial_broadcast(ranks: int, *, root: int = 0) -> CollectiveTrace:
    """The whole vector down a binomial tree in ⌈log2 n⌉ steps, each doubling the ranks served."""
    return assemble(
        "broadcast", "binomial-tree", ranks, 1, [("broadcast", _down(ranks, root))], root=root
    )


def binomial_reduce(ranks: int, *, root: int = 0) -> CollectiveTrace:
    """The whole vector up a binomial tree: ⌈log2 n⌉ steps."""
    return assemble("reduce", "binomial-tree", ranks, 1, [("reduce", _up(ranks, root))], root=root)


def binomial_all_reduce(ranks: int, *, root: int = 0) -> CollectiveTrace:
    """Reduce up a binomial tree, then broadcast down it: 2⌈log2 n⌉ steps of the whole vector."""
    phases = [("reduce", _up(ranks, root)), ("broadcast", _down(ranks, root))]
    return assemble("all-reduce", "binomial-tree", ranks, 1, phases, root=root)


def binomial_scatter(ranks: int, *, root: int = 0) -> CollectiveTrace:
    """Every message carries the chunks of a whole subtree; the root sends (n−1)/n of its buffer."""
    phases = [("scatter", _scatter_rounds(ranks, root))]
    return assemble(
        "scatter", "binomial-tree", ranks, ranks, phases, owners=range(ranks), root=root
    )


def binomial_gather(ranks: int, *, root: int = 0) -> CollectiveTrace:
    """A binomial scatter run backwards."""
    phases = [("gather", _gather_rounds(ranks, root))]
    return assemble("gather", "binomial-tree", ranks, ranks, phases, owners=range(ranks), root=root)


def scatter_all_gather_broadcast(ranks: int, *, root: int = 0) -> CollectiveTrace:
    """Binomial scatter, then ring all-gather: broadcast for long vectors.

    The ring ignores which ranks already hold chunks, so some messages bring nothing new. MPICH runs
    the algorithm this way; it costs no time because every step is equally long.
    """
    require_rank(root, check_size("ranks", ranks))
    phases = [
        ("scatter", _scatter_rounds(ranks, root)),
        ("all-gather", gather_rounds(range(ranks), single_chunks(ranks))),
    ]
    return assemble(
        "broadcast", "scatter-all-gather", ranks, ranks, phases, owners=range(ranks), root=root
    )


def reduce_scatter_gather_reduce(ranks: int, *, root: int = 0) -> CollectiveTrace:
    """Ring reduce-scatter, then binomial gather: reduce for long vectors."""
    require_rank(root, check_size("ranks", ranks))
    phases = [
        ("reduce-scatter", reduce_rounds(range(ranks), single_chunks(ranks))),
        ("gather", _gather_rounds(ranks, root)),
    ]
    return assemble(
        "reduce", "reduce-scatter-gather", ranks, ranks, phases, owners=range(ranks), root=root
    )


def chain_rounds(
    members: Sequence[int], blocks: Sequence[tuple[int, ...]], *, reduces: bool
) -> list[Round]:
    """Send `blocks` one after the other along the chain of `members`, from first to last."""
    if len(members) < 2:
        return []
    return [
        [
            (members[i], members[i + 1], blocks[step - i], reduces)
            for i in range(len(members) - 1)
            if 0 <= step - i < len(blocks)
        ]
        for step in range(len(members) - 2 + len(blocks))
    ]


def _from_root(ranks: int, root: int) -> list[int]:
    require_rank(root, check_size("ranks", ranks))
    return [(root + i) % ranks for i in range(ranks)]


def chain_broadcast(ranks: int, *, root: int = 0, segments: int = 4) -> CollectiveTrace:
    """Pass the vector along in k `segments` (≥ 1): n − 2 + k steps of one k-th each."""
    check_size("segments", segments)
    rounds = chain_rounds(_from_root(ranks, root), single_chunks(segments), reduces=False)
    phases = [("broadcast", rounds)]
    return assemble(
        "broadcast", "chain", ranks, segments, phases, root=root, variant=f"{segments} segments"
    )


def chain_reduce(ranks: int, *, root: int = 0, segments: int = 4) -> CollectiveTrace:
    """A chain broadcast run backwards: every rank adds its own part to what it passes on."""
    check_size("segments", segments)
    rounds = chain_rounds(_from_root(ranks, root)[::-1], single_chunks(segments), reduces=True)
    phases = [("reduce", rounds)]
    return assemble(
        "reduce", "chain", ranks, segments, phases, root=root, variant=f"{segments} segments"
    )
