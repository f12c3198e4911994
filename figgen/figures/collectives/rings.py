"""Collectives step by step: the ring, and what its trace proves."""

from __future__ import annotations

from figgen.charts import (
    Column,
    Diagram,
    DiagramLink,
    Frame,
    Named,
    Scalar,
    Steps,
    Table,
    Transfer,
)
from figgen.errors import InputError, check_between
from figgen.models.collectives import (
    CollectiveTrace,
    State,
    bytes_per_link,
    bytes_sent_per_rank,
    states,
    trace,
)
from figgen.plotting.placed import box_at, headings
from figgen.registry import figure

MOST_PROVED, MOST_CELLS = 128, 2**18
"""Ranks of a proof, and cells of all frames of an animation, that a reader can still use."""


@figure("ring-diagram")
def ring_diagram(*, ranks: int = 8) -> Diagram:
    """Ranks in two rows, each with an arrow to the next rank of the ring."""
    check_between("ranks", ranks, 4, MOST_PROVED)
    if ranks % 2:
        raise InputError("ranks", expected="an even number", got=ranks)
    half = ranks // 2
    boxes = tuple(
        box_at(
            f"rank {rank}",
            (f"rank {rank}",),
            (1.36 * (rank if rank < half else ranks - 1 - rank), 0.0 if rank < half else 1.4),
            (1.0, 0.6),
        )
        for rank in range(ranks)
    )
    used = bytes_per_link(trace("all-reduce", "ring", ranks), 1.0)
    links = tuple(DiagramLink(source=f"rank {a}", target=f"rank {b}") for a, b in used)
    values = {"ranks": Named(ranks), "links": Named(len(links))}
    return Diagram(boxes=boxes, links=links, width=1.36 * half - 0.36, height=2.0, values=values)


def _frame(run: CollectiveTrace, held: State, step: int) -> Frame:
    """The state before `step`, with its messages; the final state has none."""
    last = step == len(run.steps)
    sends = () if last else run.steps[step]
    return Frame(
        title="result" if last else f"step {step + 1} of {len(run.steps)}",
        phase="" if last else run.phases[step],
        transfers=tuple(
            Transfer(source=s.source, target=s.target, chunks=s.chunks, reduces=s.reduces)
            for s in sends
        ),
        contents=tuple(tuple(tuple(sorted(chunk)) for chunk in rank) for rank in held),
    )


@figure("collective-steps")
def collective_steps(
    *,
    collective: str,
    algorithm: str,
    ranks: int,
    schedule: str | None = None,
    ranks_per_node: int | None = None,
    segments: int | None = None,
) -> Steps:
    """A proven trace, one frame per step: who sends which chunk, and what every rank holds.

    `schedule` is for rings: "nccl" (the default) or "textbook"; `ranks_per_node` for hierarchical
    algorithms; `segments` for pipelined ones.
    """
    check_between("ranks", ranks, 2, MOST_PROVED)
    given = {"schedule": schedule, "ranks_per_node": ranks_per_node, "segments": segments}
    options = {name: value for name, value in given.items() if value is not None}
    run = trace(collective, algorithm, ranks, **options)
    cells = (len(run.steps) + 1) * ranks * run.chunk_count
    check_between("frames · ranks · chunks", cells, 0, MOST_CELLS)
    frames = tuple(_frame(run, held, step) for step, held in enumerate(states(run)))
    return Steps(
        ranks=ranks,
        chunk_count=run.chunk_count,
        frames=frames,
        values={
            "ranks": Named(ranks),
            "chunks": Named(run.chunk_count),
            "steps": Named(len(run.steps)),
            "reduce_steps": Named(sum(any(s.reduces for s in sends) for sends in run.steps)),
            "messages": Named(sum(map(len, run.steps))),
            "sent_share": Named(max(bytes_sent_per_rank(run, 1.0))),
            **_first_owner(run),
        },
    )


def _first_owner(run: CollectiveTrace) -> dict[str, Named]:
    """The chunk that rank 0 owns and the one it sends first; for algorithms with owners."""
    if not run.owners:
        return {}
    first = next((s.chunks[0] for s in run.steps[0] if s.source == 0), "nothing")
    return {"owned_by_rank_0": Named(run.owners.index(0)), "first_sent": Named(first)}


@figure("ring-proof-by-step")
def ring_proof_by_step(*, ranks: int = 4) -> Table:
    """The messages of each step of the checked trace, and the number of final cells after it.

    A cell is one chunk on one rank; it is final once it holds every rank's contribution.
    """
    check_between("ranks", ranks, 2, MOST_PROVED)
    run = trace("all-reduce", "ring", ranks)
    held = tuple(states(run))
    rows: list[tuple[Scalar, ...]] = []
    for step, sends in enumerate(run.steps):
        (carried,) = {len(held[step][s.source][chunk]) for s in sends for chunk in s.chunks}
        final = sum(len(chunk) == ranks for rank in held[step + 1] for chunk in rank)
        moved = (step + 1) * len(sends[0].chunks) / run.message_chunks
        rows.append((run.phases[step], step + 1, len(sends), carried, final, moved))
    columns = (
        *headings(
            "phase", "step", "messages", "contributions in each", f"final cells of {ranks * ranks}"
        ),
        Column(label="sent so far per rank, in S", spec=".3f"),
    )
    values = {
        "steps": Named(len(run.steps)),
        "messages": Named(sum(map(len, run.steps))),
        "cells": Named(ranks * ranks),
        "final_halfway": Named(rows[ranks - 2][4]),
        "sent_share": Named(rows[-1][5]),
    }
    return Table(columns=columns, rows=tuple(rows), values=values)
