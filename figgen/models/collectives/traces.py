"""Step-by-step traces of collective operations: what is sent, when, by whom, to whom.

A trace is a list of steps, a step is a list of messages that travel at the same time, and a message
is a few chunks that go from one rank to another, which adds them to what it holds (`reduces`) or
replaces it. What a rank holds of a chunk is the set of ranks whose contributions it contains
(`figgen.models.collectives.proof`), so that "half reduced" and "fully reduced" can be shown and
proved.

`CONTRACTS` defines every collective by two rules for a chunk: where contributions start, and where
their sum must end.

Sizes follow the convention of NCCL and nccl-tests: `message_bytes` is the largest buffer of any one
rank (the vector of an all-reduce, the gathered output of an all-gather, the send buffer of an
all-to-all, the root's buffer of a scatter).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from figgen.errors import InputError, check_size

# collective -> (ranks where the contributions to a chunk start, ranks where their sum must end).
# Reading a row backwards gives the dual collective.
CONTRACTS: dict[str, tuple[str, str]] = {
    "all-reduce": ("every", "every"),
    "reduce-scatter": ("every", "owner"),
    "reduce": ("every", "root"),
    "all-gather": ("owner", "every"),
    "broadcast": ("root", "every"),
    "scatter": ("root", "owner"),
    "gather": ("owner", "root"),
    "all-to-all": ("sender", "addressee"),
}

Move = tuple[int, int, tuple[int, ...], bool]
"""A message that has no step yet: source, target, chunks, reduces."""

Round = list[Move]
"""Messages that travel at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """One message: in `step`, `source` sends `chunks` to `target`, which adds or replaces."""

    step: int
    source: int
    target: int
    chunks: tuple[int, ...]
    reduces: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTrace:
    """All messages of one collective operation, step by step.

    `phases[i]` names the phase of step `i`. `owners[c]` is the rank that owns chunk `c`; it is
    empty where the algorithm gives chunks no owner. `root` applies only to rooted collectives.
    `variant` tells two traces of one algorithm apart (schedule, segments).
    """

    collective: str
    algorithm: str
    ranks: int
    chunk_count: int
    steps: tuple[tuple[Send, ...], ...]
    phases: tuple[str, ...]
    owners: tuple[int, ...] = ()
    root: int = 0
    variant: str = ""

    @property
    def message_chunks(self) -> int:
        """Number of equal chunks in `message_bytes`: the send buffer of an all-to-all has n."""
        return self.ranks if self.collective == "all-to-all" else self.chunk_count


def assemble(
    collective: str,
    algorithm: str,
    ranks: int,
    chunk_count: int,
    phases: Sequence[tuple[str, Sequence[Round]]],
    *,
    owners: Sequence[int] = (),
    root: int = 0,
    variant: str = "",
) -> CollectiveTrace:
    """Build a trace from named phases of rounds, with steps numbered from 0 across all phases."""
    names = [name for name, rounds in phases for _ in rounds]
    rounds = [moves for _, rounds in phases for moves in rounds]
    steps = tuple(
        tuple(
            Send(step=step, source=source, target=target, chunks=chunks, reduces=reduces)
            for source, target, chunks, reduces in sorted(moves)
        )
        for step, moves in enumerate(rounds)
    )
    return CollectiveTrace(
        collective=collective,
        algorithm=algorithm,
        ranks=ranks,
        chunk_count=chunk_count,
        steps=steps,
        phases=tuple(names),
        owners=tuple(owners),
        root=root,
        variant=variant,
    )


def side_by_side(rounds_of_groups: Sequence[Sequence[Round]]) -> list[Round]:
    """Merge the rounds of several groups that work at the same time, round by round."""
    at_once = zip_longest(*rounds_of_groups, fillvalue=())
    return [[move for moves in each for move in moves] for each in at_once]


def require_power_of_two(ranks: int, algorithm: str) -> int:
    """Return log2 of `ranks`; InputError with the nearest powers of two for any other number."""
    check_size("ranks", ranks)
    exponent = ranks.bit_length() - 1
    if ranks != 1 << exponent:
        raise InputError(
            f"{algorithm}: ranks",
            expected="a power of two",
            got=ranks,
            nearest=[str(1 << exponent), str(2 << exponent)],
            key="ranks",
        )
    return exponent


def require_rank(rank: int, ranks: int, name: str = "root") -> int:
    """Return `rank` if it is one of `ranks` ranks; InputError otherwise."""
    if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < ranks:
        raise InputError(name, expected=f"a rank from 0 to {ranks - 1}", got=rank)
    return rank


def _ends(trace: CollectiveTrace, chunk: int, end: str) -> tuple[int, ...]:
    if end == "every":
        return tuple(range(trace.ranks))
    if end == "root":
        return (trace.root,)
    if end == "sender":
        return (chunk // trace.ranks,)
    if end == "addressee":
        return (chunk % trace.ranks,)
    return (trace.owners[chunk],)


def origins(trace: CollectiveTrace, chunk: int) -> tuple[int, ...]:
    """Ranks that hold a contribution to `chunk` before the first step, each only its own."""
    return _ends(trace, chunk, CONTRACTS[trace.collective][0])


def destinations(trace: CollectiveTrace, chunk: int) -> tuple[int, ...]:
    """Ranks that must hold the sum of all contributions to `chunk` after the last step."""
    return _ends(trace, chunk, CONTRACTS[trace.collective][1])
