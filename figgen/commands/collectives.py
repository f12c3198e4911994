"""trace: show what a collective sends step by step, with a proof of its result."""

from __future__ import annotations

import argparse

from figgen.commands import Answer, Verbs, add_verb, whole
from figgen.errors import InputError, unknown
from figgen.models.collectives import (
    MOST_RANKS,
    CollectiveTrace,
    State,
    algorithms,
    bytes_sent_per_rank,
    final_state,
    states,
    trace,
)

MOST_PIECES = 4096
FINAL_UP_TO, STATES_UP_TO, DRAWN_UP_TO = 128, 16, 8
"""Most ranks for which buffer contents are given: at the end, after each step, and as text."""

# Names in common use for what the models call by the algorithm's structure.
ALIASES = {
    ("broadcast", "ring"): "chain",
    ("reduce", "ring"): "chain",
    ("reduce-scatter", "recursive-halving-doubling"): "recursive-halving",
    ("all-gather", "recursive-halving-doubling"): "recursive-doubling",
}


USUAL = ("ring", "chain", "pairwise", "binomial-tree")
"""Each collective's default algorithm, the first in its list."""


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    tracing = add_verb(
        verbs,
        "trace",
        _trace,
        "trace a collective step by step, and prove its result",
        "all-reduce --algorithm ring --ranks 4",
        "all-to-all --algorithm bruck --ranks 8 --json",
        "all-reduce --algorithm hierarchical --ranks 8 --ranks-per-node 4",
    )
    add_collective(tracing, MOST_RANKS)
    tracing.add_argument("--schedule", help="order of a ring's messages: nccl or textbook")
    tracing.add_argument("--root", type=int, help="root rank, for collectives that have one")


def add_collective(parser: argparse.ArgumentParser, most_ranks: int) -> None:
    """Add the options that choose a collective, its algorithm and the number of ranks."""
    parser.add_argument("collective", help="all-reduce, all-gather, reduce-scatter, …")
    parser.add_argument(
        "--algorithm",
        help="ring, binomial-tree, naive, …; the collective's usual algorithm by default",
    )
    parser.add_argument("--ranks", type=whole(1, most_ranks), required=True)
    parser.add_argument(
        "--ranks-per-node",
        type=whole(1, most_ranks),
        help="ranks per node, for hierarchical algorithms; by default the largest number "
        "up to 8 that gives at least two nodes",
    )
    parser.add_argument(
        "--segments", type=whole(1, 64), help="segments of the message, for pipelined algorithms"
    )


def algorithm_of(collective: str, name: str | None) -> str:
    """Return the models' name of an algorithm, by default the collective's usual one.

    Raises InputError for an unknown algorithm.
    """
    known = algorithms(collective)
    if name is None:
        return next(usual for usual in USUAL if usual in known)
    found = ALIASES.get((collective, name), name)
    if found not in known:
        others = [alias for of, alias in ALIASES if of == collective and alias not in known]
        raise unknown(f"{collective} algorithm", name, [*known, *others])
    return found


def ranks_per_node(options: argparse.Namespace) -> int:
    """Return the given number, or the largest divisor up to 8 that leaves at least two nodes."""
    given: int | None = options.ranks_per_node
    divisors = (width for width in (8, 7, 6, 5, 4, 3, 2) if options.ranks % width == 0)
    return given or next((width for width in divisors if width < options.ranks), 1)


def trace_options(options: argparse.Namespace, algorithm: str) -> dict[str, int | str]:
    """Return the options that were given, except the number of ranks, as keywords of `trace`."""
    names = ("schedule", "ranks_per_node", "segments", "root")
    given = {name: getattr(options, name, None) for name in names}
    if algorithm.startswith("hierarchical"):
        given["ranks_per_node"] = ranks_per_node(options)
    return {name: value for name, value in given.items() if value is not None}


def _trace(options: argparse.Namespace) -> Answer:
    name = algorithm_of(options.collective, options.algorithm)
    pieces = options.ranks * (options.segments or 1)
    if name == "hierarchical-leader" and pieces > MOST_PIECES:
        raise InputError("ranks · segments", expected=f"at most {MOST_PIECES:,}", got=pieces)
    found = trace(options.collective, name, options.ranks, **trace_options(options, name))
    sent = bytes_sent_per_rank(found, 1.0)
    data: dict[str, object] = {
        "collective": found.collective,
        "algorithm": found.algorithm,
        "ranks": found.ranks,
        "chunk_count": found.chunk_count,
        "phases": found.phases,
        "steps": [
            [
                {"source": s.source, "target": s.target, "chunks": s.chunks, "reduces": s.reduces}
                for s in step
            ]
            for step in found.steps
        ],
        "bytes_sent_per_rank_of_message": sent,
    }
    if found.ranks <= STATES_UP_TO:
        data["states"] = [_contents(state) for state in states(found)]
    if found.ranks <= FINAL_UP_TO:
        data["final"] = _contents(final_state(found))
    lines = [*_drawn(found), f"sent by the busiest rank: {max(sent):g} × the message"]
    return Answer(data, "\n".join(lines))


def _contents(state: State) -> list[list[list[int]]]:
    """Return, as [rank][chunk], the ranks whose contributions each chunk contains."""
    return [[sorted(chunk) for chunk in rank] for rank in state]


def _drawn(found: CollectiveTrace) -> list[str]:
    """Return the messages of each step as text.

    For a few ranks, also show what each rank holds after the step, as sums of ranks.
    """
    after = states(found) if found.ranks <= DRAWN_UP_TO else None
    lines = _held(next(after)) if after else []
    for index, (phase, step) in enumerate(zip(found.phases, found.steps, strict=True)):
        moves = ", ".join(
            f"{s.source}→{s.target}{'+' if s.reduces else '='}{','.join(map(str, s.chunks))}"
            for s in step
        )
        lines.append(f"step {index} ({phase}): {moves}")
        lines += _held(next(after)) if after else []
    return lines


def _held(state: State) -> list[str]:
    shown = (
        " | ".join("+".join(map(str, sorted(chunk))) or "–" for chunk in chunks) for chunks in state
    )
    return [f"  rank {rank}: {chunks}" for rank, chunks in enumerate(shown)]
