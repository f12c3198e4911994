"""Pairwise exchanges: recursive halving and doubling, and the two all-to-alls.

Sources: Thakur, Rabenseifner and Gropp 2005 (MPICH) for the recursive algorithms and the pairwise
all-to-all; Bruck et al. 1997 for the Bruck all-to-all.
"""

from __future__ import annotations

from figgen.errors import check_size
from figgen.models.collectives.traces import (
    CollectiveTrace,
    Round,
    assemble,
    require_power_of_two,
)


def _run_of(rank: int, length: int) -> tuple[int, ...]:
    """Return the aligned block of `length` consecutive numbers that contains `rank`."""
    first = rank // length * length
    return tuple(range(first, first + length))


def _halving_rounds(exponent: int) -> list[Round]:
    # each pair splits its block of chunks; each rank sends the half that its partner keeps
    ranks = 1 << exponent
    return [
        [(rank, rank ^ distance, _run_of(rank ^ distance, distance), True) for rank in range(ranks)]
        for distance in (1 << i for i in reversed(range(exponent)))
    ]


def _doubling_rounds(exponent: int) -> list[Round]:
    ranks = 1 << exponent
    return [
        [(rank, rank ^ distance, _run_of(rank, distance), False) for rank in range(ranks)]
        for distance in (1 << i for i in range(exponent))
    ]


def recursive_halving_reduce_scatter(ranks: int) -> CollectiveTrace:
    """log2 n exchanges, over half the distance and half the bytes each time.

    `ranks` must be a power of two (InputError with the nearest ones otherwise).
    """
    exponent = require_power_of_two(ranks, "recursive halving")
    phases = [("reduce-scatter", _halving_rounds(exponent))]
    return assemble(
        "reduce-scatter", "recursive-halving", ranks, ranks, phases, owners=range(ranks)
    )


def recursive_doubling_all_gather(ranks: int) -> CollectiveTrace:
    """log2 n exchanges, over twice the distance and twice the bytes each time.

    `ranks` must be a power of two (InputError with the nearest ones otherwise).
    """
    exponent = require_power_of_two(ranks, "recursive doubling")
    phases = [("all-gather", _doubling_rounds(exponent))]
    return assemble("all-gather", "recursive-doubling", ranks, ranks, phases, owners=range(ranks))


def _nearest_first_rounds(exponent: int) -> list[Round]:
    # a pair splits the chunks that share its lower bits; each sends those with its partner's bit
    ranks = 1 << exponent
    return [
        [
            (
                rank,
                rank ^ bit,
                tuple(c for c in range(ranks) if (c ^ rank ^ bit) % (2 * bit) == 0),
                True,
            )
            for rank in range(ranks)
        ]
        for bit in (1 << i for i in range(exponent))
    ]


def recursive_halving_doubling_all_reduce(
    ranks: int, *, nearest_first: bool = False
) -> CollectiveTrace:
    """Recursive halving, then doubling (Rabenseifner): 2 log2 n steps, the bytes of a ring.

    The first and largest exchange spans half of the ranks. With `nearest_first` it goes to the
    neighbor, as in MPICH (allreduce_intra_reduce_scatter_allgather.c): an all-reduce does not
    depend on which part a rank holds in between. `ranks` must be a power of two (InputError with
    the nearest ones otherwise).
    """
    exponent = require_power_of_two(ranks, "recursive halving-doubling")
    halving, doubling = _halving_rounds(exponent), _doubling_rounds(exponent)
    if nearest_first:
        halving = _nearest_first_rounds(exponent)
        doubling = [
            sorted((target, source, chunks, False) for source, target, chunks, _ in moves)
            for moves in reversed(halving)
        ]
    phases = [("reduce-scatter", halving), ("all-gather", doubling)]
    return assemble(
        "all-reduce", "recursive-halving-doubling", ranks, ranks, phases, owners=range(ranks)
    )


def recursive_doubling_all_reduce(ranks: int) -> CollectiveTrace:
    """log2 n exchanges of the whole vector: the fewest steps, for short messages.

    `ranks` must be a power of two (InputError with the nearest ones otherwise).
    """
    exponent = require_power_of_two(ranks, "recursive doubling")
    rounds: list[Round] = [
        [(rank, rank ^ (1 << i), (0,), True) for rank in range(ranks)] for i in range(exponent)
    ]
    return assemble("all-reduce", "recursive-doubling", ranks, 1, [("exchange", rounds)])


def chunk_of_pair(source: int, target: int, ranks: int) -> int:
    """Number of the chunk that an all-to-all among `ranks` brings from `source` to `target`."""
    return source * ranks + target


def pair_of_chunk(chunk: int, ranks: int) -> tuple[int, int]:
    """(source, target) of a chunk of an all-to-all among `ranks`."""
    return divmod(chunk, ranks)


def pairwise_all_to_all(ranks: int) -> CollectiveTrace:
    """In step k, k = 1 … n−1, every rank sends straight to the rank k places on."""
    check_size("ranks", ranks)
    rounds: list[Round] = []
    for distance in range(1, ranks):
        pairs = [(rank, (rank + distance) % ranks) for rank in range(ranks)]
        rounds.append([(a, b, (chunk_of_pair(a, b, ranks),), False) for a, b in pairs])
    return assemble("all-to-all", "pairwise", ranks, ranks**2, [("exchange", rounds)])


def bruck_all_to_all(ranks: int) -> CollectiveTrace:
    """⌈log2 n⌉ steps: step k moves every block whose distance has bit k set by 2^k ranks.

    A block that has d ranks to go travels once for each 1 bit of d. Each step therefore carries
    about half of the buffer, which is the price of taking so few steps.
    """
    check_size("ranks", ranks)
    rounds: list[Round] = []
    for bit in range((ranks - 1).bit_length()):
        hop = 1 << bit
        moves: Round = []
        for rank in range(ranks):
            carried = tuple(
                # the block has already travelled the lower bits of its distance
                chunk_of_pair(
                    source := (rank - distance % hop) % ranks, (source + distance) % ranks, ranks
                )
                for distance in range(ranks)
                if distance & hop
            )
            moves.append((rank, (rank + hop) % ranks, carried, False))
        rounds.append(moves)
    return assemble("all-to-all", "bruck", ranks, ranks**2, [("exchange", rounds)])
