"""Collectives in tables: worked numbers, buffer sizes, and duals."""

from __future__ import annotations

from collections.abc import Callable

from figgen.charts import Column, Named, Scalar, Table
from figgen.errors import InputError
from figgen.figures.collectives.pictures import place, shown_trace
from figgen.models.collectives import (
    CONTRACTS,
    CollectiveTrace,
    algorithms,
    bytes_received_per_rank,
    bytes_sent_per_rank,
    trace,
)
from figgen.models.collectives.numbers import carry_out
from figgen.models.collectives.traces import destinations, origins
from figgen.plotting.placed import headings
from figgen.plotting.words import identifier
from figgen.quantity_shown import NBSP
from figgen.registry import figure

ORDER = (
    "broadcast", "reduce", "scatter", "gather", "all-gather", "reduce-scatter", "all-reduce",
    "all-to-all",
)  # fmt: skip
"""Collectives in the order in which the guide explains them."""


def _inputs(run: CollectiveTrace, vectors: tuple[tuple[int, ...], ...]) -> list[dict[int, float]]:
    """Return each rank's vector; it contributes the parts that the collective takes as input."""
    return [
        {
            chunk: float(vectors[rank][place(run, chunk, before=True)])
            for chunk in range(run.chunk_count)
            if rank in origins(run, chunk)
        }
        for rank in range(run.ranks)
    ]


def _written(run: CollectiveTrace, held: dict[int, float], before: bool) -> str:
    rows = {place(run, chunk, before): value for chunk, value in held.items()}
    return NBSP.join(f"{rows[row]:g}" for row in sorted(rows)) or "–"


@figure("collective-numbers")
def collective_numbers(
    *, vectors: tuple[tuple[int, ...], ...] = ((1, 2, 3), (4, 5, 6), (5, 13, 21))
) -> Table:
    """Every collective run on the same numbers, by the messages of a proven trace.

    There is one vector per rank, with as many numbers as ranks. A collective that starts from parts
    takes the number at place r from rank r.
    """
    ranks = len(vectors)
    if ranks < 2 or {len(vector) for vector in vectors} != {ranks}:
        raise InputError("vectors", expected="n ≥ 2 vectors of n numbers", got=vectors)
    rows: list[tuple[Scalar, ...]] = []
    for name in ORDER:
        run = shown_trace(name, ranks)
        given = _inputs(run, vectors)
        ends = [dict(held) for held in carry_out(run, given)]
        rows.append(
            (
                name,
                *(_written(run, held, True) for held in given),
                *(_written(run, held, False) for held in ends),
            )
        )
    columns = (
        Column(label="collective"),
        *(Column(label=f"r{rank} before") for rank in range(ranks)),
        *(Column(label=f"r{rank} after") for rank in range(ranks)),
    )
    sums = " ".join(f"{sum(column):g}" for column in zip(*vectors, strict=True))
    return Table(
        columns=columns,
        rows=tuple(rows),
        values={"ranks": Named(ranks), "sums": Named(sums), "collectives": Named(len(rows))},
    )


SIZED = {
    "broadcast": "the vector", "reduce": "the vector", "scatter": "the root’s send buffer",
    "gather": "the root’s receive buffer", "all-gather": "the gathered output",
    "reduce-scatter": "the whole input", "all-reduce": "the vector",
    "all-to-all": "one rank’s send buffer",
}  # fmt: skip


def _most(run: CollectiveTrace, ends: Callable[[CollectiveTrace, int], tuple[int, ...]]) -> float:
    """Return the largest part of a buffer that is any rank's input or output, in S."""
    held = [0] * run.ranks
    for chunk in range(run.chunk_count):
        for rank in ends(run, chunk):
            held[rank] += 1
    return max(held) / run.message_chunks


def _busiest_port(run: CollectiveTrace) -> float:
    sent, received = bytes_sent_per_rank(run, 1.0), bytes_received_per_rank(run, 1.0)
    return max(*sent, *received)


@figure("collective-sizes")
def collective_sizes(*, ranks: int = 8, message_bytes: float = 1e9) -> Table:
    """The meaning of S for every collective, its buffers, and its busiest port's least bytes.

    Bytes are counted in proven traces. A rank's port carries what it sends or what it receives,
    whichever is more; the least is over all flat algorithms. Some of them need a power of two
    `ranks`.
    """
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"ranks": Named(ranks), "message_bytes": Named(message_bytes, "B")}
    for name in ORDER:
        run = shown_trace(name, ranks)
        flat = [each for each in algorithms(name) if not each.startswith("hierarchical")]
        least = min(_busiest_port(trace(name, each, ranks)) for each in flat)
        given, taken = (_most(run, ends) * message_bytes for ends in (origins, destinations))
        rows.append((name, SIZED[name], given, taken, least * message_bytes, least))
        values[f"{identifier(name)}_share"] = Named(least)
    columns = (
        *headings("collective", "S is"),
        *headings(
            "largest input", "largest output", "busiest port, at least", unit="B", spec="bytes"
        ),
        Column(label="in S", spec=".3f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


WHERE = {
    "every": "every rank", "owner": "its owner", "root": "the root", "sender": "its sender",
    "addressee": "its addressee",
}  # fmt: skip


def dual(collective: str) -> str:
    """Return the collective that runs the other way and starts where this one ends."""
    start, end = CONTRACTS[collective]
    if collective == "all-to-all":
        return collective
    return next(name for name, contract in CONTRACTS.items() if contract == (end, start))


@figure("collective-duality")
def collective_duality() -> Table:
    """Where each part of the data starts and ends, and the collective that runs backwards."""
    rows = tuple(
        (
            name,
            WHERE[CONTRACTS[name][0]],
            WHERE[CONTRACTS[name][1]],
            "yes" if CONTRACTS[name][0] == "every" else "no",
            dual(name),
        )
        for name in ORDER
    )
    columns = headings("collective", "a part starts on", "must end on", "adds", "dual")
    own = sum(row[0] == row[-1] for row in rows)
    values = {"collectives": Named(len(rows)), "own_duals": Named(own)}
    return Table(columns=columns, rows=rows, values=values)
