"""All-reduce by exchanges among any number of ranks; those beyond a power of two are folded in.

Source: MPICH and Thakur, Rabenseifner and Gropp 2005, section 4.5: surplus ranks hand their vector
to a partner before the exchanges, and get the sum back after them.
"""

from __future__ import annotations

from figgen.errors import check_size
from figgen.models.collectives.exchanges import (
    recursive_doubling_all_reduce,
    recursive_halving_doubling_all_reduce,
)
from figgen.models.collectives.proof import verify
from figgen.models.collectives.traces import CollectiveTrace, Round, assemble

EXCHANGES = {
    "recursive-doubling": recursive_doubling_all_reduce,
    "recursive-halving-doubling": recursive_halving_doubling_all_reduce,
}


def folded_all_reduce(ranks: int, algorithm: str) -> CollectiveTrace:
    """Return a proven trace of an `algorithm` of `EXCHANGES` among any number of `ranks` ≥ 1.

    With p the largest power of two ≤ n, rank p + i folds into rank i. Unless n = p, this adds two
    steps that carry the whole vector.
    """
    core_ranks = 1 << (check_size("ranks", ranks).bit_length() - 1)
    core = EXCHANGES[algorithm](core_ranks)
    whole = tuple(range(core.chunk_count))
    pairs = [(core_ranks + i, i) for i in range(ranks - core_ranks)]
    fold: Round = [(surplus, partner, whole, True) for surplus, partner in pairs]
    unfold: Round = [(partner, surplus, whole, False) for surplus, partner in pairs]
    middle: list[Round] = [
        [(s.source, s.target, s.chunks, s.reduces) for s in sends] for sends in core.steps
    ]
    phases = [("exchange", middle)]
    if pairs:
        phases = [("fold in", [fold]), *phases, ("hand back", [unfold])]
    return verify(assemble("all-reduce", f"folded {algorithm}", ranks, core.chunk_count, phases))
