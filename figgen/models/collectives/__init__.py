"""Collective operations as step-by-step traces, by name.

`trace("all-reduce", "ring", 8)` builds and proves a trace; `states` says what every rank holds
after each step; `figgen.models.collectives.traffic` says what it costs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache

from figgen.errors import InputError, closest, unknown
from figgen.models.collectives import (
    double_tree,
    exchanges,
    hierarchical,
    rings,
    serial,
    trees,
)
from figgen.models.collectives.proof import State, final_state, states, verify
from figgen.models.collectives.traces import CONTRACTS, CollectiveTrace, Send
from figgen.models.collectives.traffic import (
    bytes_per_link,
    bytes_received_per_rank,
    bytes_sent_per_rank,
    largest_message_per_step,
    synchronous_time_s,
)

__all__ = [
    "CONTRACTS",
    "MOST_RANKS",
    "TRACES",
    "CollectiveTrace",
    "Send",
    "State",
    "algorithms",
    "bytes_per_link",
    "bytes_received_per_rank",
    "bytes_sent_per_rank",
    "final_state",
    "largest_message_per_step",
    "most_sent",
    "states",
    "synchronous_time_s",
    "trace",
    "verify",
]

TRACES: dict[tuple[str, str], Callable[..., CollectiveTrace]] = {
    ("all-reduce", "ring"): rings.ring_all_reduce,
    ("all-reduce", "naive"): serial.serial_all_reduce,
    ("all-reduce", "binomial-tree"): trees.binomial_all_reduce,
    ("all-reduce", "double-binary-tree"): double_tree.double_binary_tree_all_reduce,
    ("all-reduce", "recursive-doubling"): exchanges.recursive_doubling_all_reduce,
    ("all-reduce", "recursive-halving-doubling"): exchanges.recursive_halving_doubling_all_reduce,
    ("all-reduce", "hierarchical-leader"): hierarchical.leader_all_reduce,
    ("all-reduce", "hierarchical"): hierarchical.two_level_all_reduce,
    ("reduce-scatter", "ring"): rings.ring_reduce_scatter,
    ("reduce-scatter", "naive"): serial.serial_reduce_scatter,
    ("reduce-scatter", "recursive-halving"): exchanges.recursive_halving_reduce_scatter,
    ("all-gather", "ring"): rings.ring_all_gather,
    ("all-gather", "naive"): serial.serial_all_gather,
    ("all-gather", "recursive-doubling"): exchanges.recursive_doubling_all_gather,
    ("broadcast", "naive"): serial.serial_broadcast,
    ("broadcast", "binomial-tree"): trees.binomial_broadcast,
    ("broadcast", "chain"): trees.chain_broadcast,
    ("broadcast", "scatter-all-gather"): trees.scatter_all_gather_broadcast,
    ("reduce", "naive"): serial.serial_reduce,
    ("reduce", "binomial-tree"): trees.binomial_reduce,
    ("reduce", "chain"): trees.chain_reduce,
    ("reduce", "reduce-scatter-gather"): trees.reduce_scatter_gather_reduce,
    ("scatter", "naive"): serial.serial_scatter,
    ("scatter", "binomial-tree"): trees.binomial_scatter,
    ("gather", "naive"): serial.serial_gather,
    ("gather", "binomial-tree"): trees.binomial_gather,
    ("all-to-all", "naive"): serial.serial_all_to_all,
    ("all-to-all", "pairwise"): exchanges.pairwise_all_to_all,
    ("all-to-all", "bruck"): exchanges.bruck_all_to_all,
}
"""(collective, algorithm) -> the function that builds its trace from a number of ranks."""


MOST_RANKS = 512
"""Most ranks for which a trace is built and proved on request: its messages grow with n²."""


def algorithms(collective: str) -> tuple[str, ...]:
    """Return the names of the algorithms for `collective`; InputError if it is not a collective."""
    if collective not in CONTRACTS:
        raise unknown("collective", collective, CONTRACTS)
    return tuple(algorithm for known, algorithm in TRACES if known == collective)


def trace(collective: str, algorithm: str, ranks: int, **options: int | str) -> CollectiveTrace:
    """Return the verified trace of `algorithm` for `collective` among `ranks` ranks.

    `options` are those of the algorithm's own function in `TRACES` (`schedule`, `root`, `segments`,
    `ranks_per_node`). Raises InputError for an unknown name or option, and for a number of ranks
    that the algorithm does not support.
    """
    known = algorithms(collective)
    if algorithm not in known:
        raise unknown(f"{collective} algorithm", algorithm, known)
    build = TRACES[collective, algorithm]
    accepted = [name for name in inspect.signature(build).parameters if name != "ranks"]
    for name in options:
        if name not in accepted:
            raise InputError(
                f"unknown option {name!r} of {algorithm} {collective}",
                expected=f"one of {', '.join(accepted)}" if accepted else "no options",
                nearest=closest(name, accepted),
            )
    if isinstance(ranks, int) and ranks > MOST_RANKS:
        raise InputError(
            "ranks of a trace", expected=f"at most {MOST_RANKS}", got=ranks, key="ranks"
        )
    return verify(build(ranks, **options))


@lru_cache(maxsize=256)
def most_sent(collective: str, algorithm: str, ranks: int, **options: int | str) -> float:
    """Return the most that one rank sends in a verified trace, as a multiple of the message.

    Takes the arguments of `trace` and raises its errors.
    """
    return max(bytes_sent_per_rank(trace(collective, algorithm, ranks, **options), 1.0))
