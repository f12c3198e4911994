"""trace, convert: what a collective sends step by step, and what its measured bandwidth means."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from figgen.commands import Answer, add_verb, whole
from figgen.commands.quantities import quantity
from figgen.errors import InputError, unknown
from figgen.formulas import evaluate
from figgen.models.collectives import (
    MOST_RANKS,
    State,
    Trace,
    algorithms,
    bytes_sent_per_rank,
    final_state,
    states,
    trace,
)
from figgen.units import format_number, format_quantity

if TYPE_CHECKING:
    from figgen.commands import Verbs

MOST_PIECES = 4096
FINAL_UP_TO, STATES_UP_TO, DRAWN_UP_TO = 128, 16, 8
"""Ranks up to which the contents of buffers are given: at the end, after each step, as text."""

# Names in common use for what the models call by the algorithm's structure.
ALIASES = {
    ("broadcast", "ring"): "chain",
    ("reduce", "ring"): "chain",
    ("reduce-scatter", "recursive-halving-doubling"): "recursive-halving",
    ("all-gather", "recursive-halving-doubling"): "recursive-doubling",
}
BUS_FACTOR = {
    "all-reduce": "all_reduce_bus_bandwidth",
    "reduce-scatter": "all_gather_bus_bandwidth",
    "all-gather": "all_gather_bus_bandwidth",
    "all-to-all": "all_gather_bus_bandwidth",
    "broadcast": "algorithm_bandwidth",
    "reduce": "algorithm_bandwidth",
}


def add(verbs: Verbs) -> None:
    """Register the verbs of this module."""
    tracing = add_verb(
        verbs,
        "trace",
        _trace,
        "a collective step by step, proved to keep its promise",
        "all-reduce --algorithm ring --ranks 4",
        "all-to-all --algorithm bruck --ranks 8 --json",
        "all-reduce --algorithm hierarchical --ranks 8 --ranks-per-node 4",
    )
    add_collective(tracing, MOST_RANKS)
    tracing.add_argument("--schedule", help="nccl or textbook, for rings")
    tracing.add_argument("--root", type=int, help="for collectives that have one")
    convert = add_verb(
        verbs,
        "convert",
        _convert,
        "bus bandwidth, algorithm bandwidth and line rate of a measured collective",
        "busbw all-reduce --ranks 8 --bytes '16 GiB' --time '35.6 ms'",
        "busbw all-gather --ranks 64 --algbw '48 GB/s' --json",
        "busbw all-to-all --ranks 16 --busbw '400 Gb/s'",
    )
    convert.add_argument("what", choices=("busbw",))
    convert.add_argument("collective", choices=sorted(BUS_FACTOR))
    convert.add_argument("--ranks", type=whole(2, 10**9), required=True)
    convert.add_argument("--bytes", help="largest per-rank buffer, with --time")
    convert.add_argument("--time", help="how long it took, such as '35.6 ms'")
    convert.add_argument("--algbw", help="instead of --bytes and --time")
    convert.add_argument("--busbw", help="instead of --bytes and --time")


def add_collective(parser: argparse.ArgumentParser, most_ranks: int) -> None:
    """The options that say which algorithm of which collective among how many ranks."""
    parser.add_argument("collective", help="all-reduce, all-gather, reduce-scatter, …")
    parser.add_argument("--algorithm", default="ring", help="ring, binomial-tree, naive, …")
    parser.add_argument("--ranks", type=whole(1, most_ranks), required=True)
    parser.add_argument(
        "--ranks-per-node",
        type=whole(1, most_ranks),
        help="for hierarchical algorithms; the most that make two nodes or more, up to 8",
    )
    parser.add_argument("--segments", type=whole(1, 64), help="for pipelined algorithms")


def algorithm_of(collective: str, name: str) -> str:
    """The models' name of an algorithm. Raises InputError for one that is not there."""
    known = algorithms(collective)
    found = ALIASES.get((collective, name), name)
    if found not in known:
        others = [alias for of, alias in ALIASES if of == collective and alias not in known]
        raise unknown(f"{collective} algorithm", name, [*known, *others])
    return found


def ranks_per_node(options: argparse.Namespace) -> int:
    """As given, else the largest divisor up to 8 that leaves two nodes."""
    given: int | None = options.ranks_per_node
    divisors = (width for width in (8, 7, 6, 5, 4, 3, 2) if options.ranks % width == 0)
    return given or next((width for width in divisors if width < options.ranks), 1)


def trace_options(options: argparse.Namespace, algorithm: str) -> dict[str, int | str]:
    """What was given beside the number of ranks, as keywords of `trace`."""
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
    """[rank][chunk] → the ranks whose contributions are in it."""
    return [[sorted(chunk) for chunk in rank] for rank in state]


def _drawn(found: Trace) -> list[str]:
    """Messages of each step; for a few ranks, also what all hold after it, as sums of ranks."""
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


def _convert(options: argparse.Namespace) -> Answer:
    name = BUS_FACTOR[options.collective]
    ranks = {} if name == "algorithm_bandwidth" else {"ranks": options.ranks}
    measured = [options.bytes is not None and options.time is not None]
    ways = measured + [given is not None for given in (options.algbw, options.busbw)]
    if sum(ways) != 1 or (not measured[0] and (options.bytes or options.time)):
        raise InputError("convert busbw", expected="--bytes and --time, or --algbw, or --busbw")
    if measured[0]:
        seconds = quantity(options.time, "s", "--time")
        sizes = {"message_bytes": quantity(options.bytes, "B", "--bytes"), "time_s": seconds}
        algbw = evaluate("algorithm_bandwidth", **sizes).value
    elif options.algbw is not None:
        algbw = quantity(options.algbw, "B/s", "--algbw")
    else:
        per_algbw = evaluate(name, **ranks, message_bytes=1, time_s=1).value
        algbw = quantity(options.busbw, "B/s", "--busbw") / per_algbw
    busbw = evaluate(name, **ranks, message_bytes=algbw, time_s=1).value
    data = {
        "algbw_bytes_per_s": algbw,
        "busbw_bytes_per_s": busbw,
        "line_rate_bits_per_s": 8 * busbw,
    }
    shown = [format_quantity(value, "B/s", "si.4") for value in (algbw, busbw)]
    rate = format_number(8 * busbw / 1e9, 4)
    return Answer(data, f"algbw {shown[0]}\nbusbw {shown[1]}\nline rate {rate} Gb/s")
