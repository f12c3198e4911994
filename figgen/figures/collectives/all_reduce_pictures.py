"""Pictures of all-reduce algorithms: loads, trees, exchanges, switches, any number of ranks."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum

from figgen.charts import Axis, Bars, Box, Column, Diagram, DiagramLink, Named, Scalar, Table
from figgen.errors import check_between
from figgen.formulas.collectives import all_reduce_bytes_sent, switch_all_reduce_bytes_sent
from figgen.models.collectives import (
    CollectiveTrace,
    bytes_sent_per_rank,
    largest_message_per_step,
    trace,
)
from figgen.models.collectives.double_tree import Parents, double_binary_tree
from figgen.models.collectives.exchanges import recursive_halving_doubling_all_reduce
from figgen.models.collectives.folding import folded_all_reduce
from figgen.models.collectives.traces import Send
from figgen.plotting.placed import box_at, headings
from figgen.plotting.series import segments
from figgen.registry import figure

MOST_DRAWN = 16


@figure("root-against-ring")
def root_against_ring(*, ranks: int = 8) -> Bars:
    """What each rank sends in an all-reduce, through one root and around a ring, in S."""
    check_between("ranks", ranks, 2, MOST_DRAWN)
    sent = {
        name: bytes_sent_per_rank(trace("all-reduce", algorithm, ranks), 1.0)
        for name, algorithm in (("one root, in turn", "naive"), ("ring", "ring"))
    }
    root, others = sent["one root, in turn"][0], sent["one root, in turn"][1]
    return Bars(
        labels=tuple(f"rank {rank}" for rank in range(ranks)),
        segments=segments(sent, ("series-2", "series-1")),
        axis=Axis(label="sent, in S", low=0.0, spec=".3g"),
        stacked=False,
        values={
            "ranks": Named(ranks),
            "root": Named(root),
            "others": Named(others),
            "ring": Named(max(sent["ring"])),
            "total_root": Named(sum(sent["one root, in turn"])),
            "total_ring": Named(sum(sent["ring"])),
        },
    )


def _depth(parents: Parents, rank: int) -> int:
    above = parents[rank]
    return 0 if above is None else 1 + _depth(parents, above)


def _tree(parents: Parents, name: str, top: float) -> tuple[list[Box], list[DiagramLink], float]:
    """Boxes with the rank as x and the depth as y, links both ways, and where the tree ends."""
    boxes = [
        box_at(
            f"{name}, rank {rank}",
            (f"r{rank}",),
            (0.57 * rank, top + 0.72 * _depth(parents, rank)),
            (0.44, 0.36),
        )
        for rank in range(len(parents))
    ]
    links = [
        DiagramLink(source=f"{name}, rank {rank}", target=f"{name}, rank {parent}", both_ways=True)
        for rank, parent in enumerate(parents)
        if parent is not None
    ]
    return boxes, links, max(box.y for box in boxes) + 0.36


def _leaves(parents: Parents) -> frozenset[int]:
    return frozenset(range(len(parents))) - {p for p in parents if p is not None}


@figure("double-binary-tree")
def double_tree(*, ranks: int = 8) -> Diagram:
    """NCCL's two trees over the same ranks, each for half of the vector."""
    check_between("ranks", ranks, 2, MOST_DRAWN)
    first, second = double_binary_tree(ranks)
    boxes, links, bottom = _tree(first, "first half", 0.0)
    more, joins, end = _tree(second, "second half", bottom + 0.5)
    run = trace("all-reduce", "double-binary-tree", ranks, segments=16)
    return Diagram(
        boxes=(*boxes, *more),
        links=(*links, *joins),
        width=0.57 * (ranks - 1) + 0.44,
        height=end,
        values={
            "ranks": Named(ranks),
            "depth": Named(max(_depth(first, rank) for rank in range(ranks))),
            "leaves": Named(len(_leaves(first))),
            "both_leaves": Named(len(_leaves(first) & _leaves(second))),
            "most_sent": Named(max(bytes_sent_per_rank(run, 1.0))),
            "least_sent": Named(min(bytes_sent_per_rank(run, 1.0))),
        },
    )


def _distance(sends: Iterable[Send]) -> int:
    (distance,) = {abs(send.source - send.target) for send in sends}
    return distance


@figure("exchange-distances")
def exchange_distances(*, ranks: int = 8, message_bytes: float = 1e9) -> Table:
    """Recursive halving and doubling: each rank's partner and message size at every step.

    The largest messages go farthest here; the distance of the other order is next to it.
    """
    check_between("ranks", ranks, 2, MOST_DRAWN)
    run = recursive_halving_doubling_all_reduce(ranks)
    other = recursive_halving_doubling_all_reduce(ranks, nearest_first=True)
    largest = largest_message_per_step(run, message_bytes)
    rows: list[tuple[Scalar, ...]] = []
    for step, sends in enumerate(run.steps):
        partner = {s.source: s.target for s in sends}
        rows.append(
            (
                run.phases[step],
                _distance(sends),
                _distance(other.steps[step]),
                largest[step],
                *(partner[r] for r in range(ranks)),
            )
        )
    columns = (
        *headings("phase", "distance", "nearest first"),
        Column(label="each sends", unit="B", spec="bytes"),
        *(Column(label=f"r{rank}") for rank in range(ranks)),
    )
    values = {
        "ranks": Named(ranks),
        "steps": Named(len(rows)),
        "first": Named(largest[0], "B"),
        "smallest": Named(min(largest), "B"),
        "sent": Named(sum(largest), "B"),
        "farthest": Named(rows[0][1]),
        "nearest_sent": Named(largest_message_per_step(other, message_bytes)[0], "B"),
        "nearest_farthest": Named(min(largest_message_per_step(other, message_bytes)), "B"),
    }
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("switch-adds")
def switch_adds(*, ranks: int = 4) -> Diagram:
    """Every rank sends its vector up to a switch once, and gets the sum back once."""
    check_between("ranks", ranks, 2, 8)
    pitch, width = 1.2, 0.95
    total = pitch * (ranks - 1) + width
    lines = ("switch", "adds what comes up, sends the sum down")
    boxes = [box_at("switch", lines, (0.0, 0.0), (total, 0.75))]
    links: list[DiagramLink] = []
    for rank in range(ranks):
        name = f"rank {rank}"
        boxes.append(box_at(name, (name,), (pitch * rank, 1.55), (width, 0.5)))
        links += [
            DiagramLink(source=name, target="switch"),
            DiagramLink(source="switch", target=name),
        ]
    values = {
        "ranks": Named(ranks),
        "links": Named(len(links)),
        "switch": Named(float(switch_all_reduce_bytes_sent(ranks, 1.0))),
        "ring": Named(float(all_reduce_bytes_sent(ranks, 1.0))),
    }
    return Diagram(boxes=tuple(boxes), links=tuple(links), width=total, height=2.05, values=values)


def _counted(run: CollectiveTrace) -> tuple[int, float]:
    """Return the steps k and the sum x of their largest messages, in S.

    The time of the algorithm is kα + x · S/B.
    """
    return len(run.steps), fsum(largest_message_per_step(run, 1.0))


@figure("all-reduce-any-ranks")
def all_reduce_any_ranks(*, ranks: tuple[int, ...] = (6, 8, 12, 16, 24)) -> Table:
    """Steps and transfer of each algorithm for any number of ranks, counted in proven traces.

    Exchanges need a power of two; otherwise surplus ranks are folded in before and after.
    """
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for n in ranks:
        check_between("ranks", n, 2, 64)
        runs = (
            ("ring", trace("all-reduce", "ring", n)),
            ("tree", trace("all-reduce", "binomial-tree", n)),
            ("doubling", folded_all_reduce(n, "recursive-doubling")),
            ("halving", folded_all_reduce(n, "recursive-halving-doubling")),
        )
        cells: list[Scalar] = []
        for name, run in runs:
            steps, transfer = _counted(run)
            cells += [steps, transfer]
            values |= {f"{name}_{n}_steps": Named(steps), f"{name}_{n}": Named(transfer)}
        rows.append((n, *cells))
    names = ("ring", "binomial tree", "recursive doubling", "halving-doubling")
    columns = [Column(label="ranks")]
    for name in names:
        columns += [Column(label=f"{name}: steps"), Column(label="transfer, S/B", spec=".2f")]
    return Table(columns=tuple(columns), rows=tuple(rows), values=values)
