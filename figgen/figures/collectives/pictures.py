"""Collectives as pictures: before and after, send and receive, and how they combine."""

from __future__ import annotations

from figgen.charts import Box, Diagram, DiagramLink, Named
from figgen.errors import check_between
from figgen.models.collectives import (
    CONTRACTS,
    CollectiveTrace,
    bytes_sent_per_rank,
    final_state,
    trace,
)
from figgen.models.collectives.exchanges import pair_of_chunk
from figgen.models.collectives.traces import destinations, origins
from figgen.plotting.placed import box_at
from figgen.registry import figure

SHOWN: dict[str, tuple[str, dict[str, int]]] = {
    "all-reduce": ("ring", {}),
    "reduce-scatter": ("ring", {}),
    "reduce": ("reduce-scatter-gather", {}),
    "all-gather": ("ring", {}),
    "broadcast": ("scatter-all-gather", {}),
    "scatter": ("binomial-tree", {}),
    "gather": ("binomial-tree", {}),
    "all-to-all": ("pairwise", {}),
}
"""Collective → an algorithm that cuts its buffer into one chunk per rank."""

PITCH, FRAME, CELL, ROW, HEAD = 0.57, 0.48, 0.38, 0.38, 0.33
"""Grid units: from rank to rank, a rank's column, a cell, from row to row, headings."""


def shown_trace(collective: str, ranks: int) -> CollectiveTrace:
    """Return the proven trace from which figures of a collective are made."""
    algorithm, options = SHOWN.get(collective, ("", {}))
    return trace(collective, algorithm, ranks, **options)


def place(run: CollectiveTrace, chunk: int, before: bool) -> int:
    """Return the row of a chunk in a rank's buffer.

    An all-to-all sorts by receiver, then by sender.
    """
    if run.collective != "all-to-all":
        return chunk
    sender, addressee = pair_of_chunk(chunk, run.ranks)
    return addressee if before else sender


def _label(run: CollectiveTrace, chunk: int, content: frozenset[int]) -> str:
    """Return a letter for the source rank and a number for the part; Σ for the sum of all ranks."""
    part = place(run, chunk, before=True)
    if len(content) > 1:
        return f"Σ{part}"
    (source,) = content
    alone = CONTRACTS[run.collective][0] == "owner"
    return chr(ord("A") + source) + ("" if alone else str(part))


Filled = dict[tuple[int, int], str]
"""(rank, row) → the content of the cell."""


def before_and_after(run: CollectiveTrace) -> tuple[Filled, Filled]:
    """Return the cells with input and those with the required output, with their labels."""
    before, after, ends = Filled(), Filled(), final_state(run)
    for chunk in range(run.chunk_count):
        for rank in origins(run, chunk):
            before[rank, place(run, chunk, True)] = _label(run, chunk, frozenset({rank}))
        for rank in destinations(run, chunk):
            after[rank, place(run, chunk, False)] = _label(run, chunk, ends[rank][chunk])
    return before, after


def _side(name: str, filled: Filled, ranks: int, left: float) -> list[Box]:
    """Return a frame around a column of cells per rank; empty cells stay blank."""
    boxes: list[Box] = []
    for rank in range(ranks):
        x = left + rank * PITCH
        boxes.append(
            box_at(
                f"{name}, rank {rank}",
                (f"r{rank}",),
                (x, 0.0),
                (FRAME, ranks * ROW + HEAD),
                frame=True,
            )
        )
        for row in range(ranks):
            label = filled.get((rank, row))
            boxes.append(
                box_at(
                    f"{name}, rank {rank}, part {row}",
                    (label,) if label else (),
                    (x + (FRAME - CELL) / 2, HEAD + row * ROW),
                    (CELL, ROW - 0.06),
                    _role(label),
                )
            )
    return boxes


def _role(label: str | None) -> str:
    if label is None:
        return "idle"
    return "series-1" if label.startswith("Σ") else "neutral"


@figure("collective-before-after")
def collective_before_after(*, collective: str, ranks: int = 4) -> Diagram:
    """What every rank holds before and after a collective, from a proven trace of it.

    A column is a rank, a cell one part of its buffer: A0 is part 0 of rank 0's input, Σ0 the sum of
    all parts 0. Cells that the collective leaves undefined are blank.
    """
    check_between("ranks", ranks, 2, 8)
    run = shown_trace(collective, ranks)
    before, after = before_and_after(run)
    apart = ranks * PITCH + 0.36
    boxes = [*_side("before", before, ranks, 0.0), *_side("after", after, ranks, apart)]
    most = run.message_chunks
    sent = bytes_sent_per_rank(run, 1.0)
    return Diagram(
        boxes=tuple(boxes),
        links=(DiagramLink(source=f"before, rank {ranks - 1}", target="after, rank 0"),),
        width=apart + ranks * PITCH - (PITCH - FRAME),
        height=ranks * ROW + HEAD,
        values={
            "ranks": Named(ranks),
            "filled_before": Named(len(before)),
            "filled_after": Named(len(after)),
            "cells": Named(ranks * ranks),
            "input_share": Named(_largest(before, ranks) / most),
            "output_share": Named(_largest(after, ranks) / most),
            "least_sent": Named(min(sent)),
            "most_sent": Named(max(sent)),
        },
    )


def _largest(filled: Filled, ranks: int) -> int:
    return max(sum(at == rank for at, _ in filled) for rank in range(ranks))


@figure("send-recv")
def send_recv(*, stages: int = 3) -> Diagram:
    """Neighboring pipeline stages: activations one way, their gradients the other."""
    check_between("stages", stages, 2, 8)
    boxes = tuple(
        box_at(f"stage {k}", (f"stage {k}", f"rank {k}"), (1.95 * k, 0.2), (1.05, 0.8), "pp")
        for k in range(stages)
    )
    links: list[DiagramLink] = []
    for k in range(stages - 1):
        here, there = f"stage {k}", f"stage {k + 1}"
        links.append(DiagramLink(source=here, target=there, label="activation", role="forward"))
        links.append(DiagramLink(source=there, target=here, label="gradient", role="backward"))
    return Diagram(
        boxes=boxes,
        links=tuple(links),
        width=1.95 * (stages - 1) + 1.05,
        height=1.2,
        values={
            "stages": Named(stages),
            "boundaries": Named(stages - 1),
            "pairs": Named(len(links)),
        },
    )


STATES = {
    "summands": ("a summand on every rank", "whole vectors, not yet added"),
    "root": ("the sum", "on one rank"),
    "shards": ("a part of the sum", "on each rank"),
    "replicas": ("the sum on every rank", "whole vectors, all equal"),
}
"""Where the sum of all vectors can be; collectives lead from one to the next."""

MOVES = {
    "reduce": ("summands", "root"),
    "reduce-scatter": ("summands", "shards"),
    "scatter": ("root", "shards"),
    "gather": ("shards", "root"),
    "broadcast": ("root", "replicas"),
    "all-gather": ("shards", "replicas"),
    "all-reduce": ("summands", "replicas"),
}
"""Collective → its initial state and its final state."""

PLACES = {
    "summands": (0.0, 0.0, 4.6),
    "root": (0.0, 1.65, 1.15),
    "shards": (1.95, 1.65, 1.65),
    "replicas": (0.0, 3.3, 4.6),
}
"""State → x, y and width of its box, in grid units."""


@figure("collective-family")
def collective_family() -> Diagram:
    """Four places where a sum can be, and the collectives that move it between them."""
    boxes = tuple(
        box_at(name, STATES[name], (x, y), (width, 0.75)) for name, (x, y, width) in PLACES.items()
    )
    links = tuple(
        DiagramLink(source=source, target=target, label=name)
        for name, (source, target) in MOVES.items()
    )
    values = {"states": Named(len(STATES)), "moves": Named(len(MOVES))}
    return Diagram(boxes=boxes, links=links, width=5.25, height=4.06, values=values)
