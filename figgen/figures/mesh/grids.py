"""Rank maps: coordinates and process groups of every GPU."""

from __future__ import annotations

import numpy as np

from figgen.charts import (
    Column,
    CommunicatorView,
    Named,
    RankCell,
    RankGrid,
    Scalar,
    Table,
)
from figgen.errors import InputError, check_between
from figgen.models.machine.layout import ParallelLayout, mesh_of
from figgen.models.machine.mesh import IntArray, RankMesh, coordinate_array, group_index, groups
from figgen.models.machine.placement import Communicator, communicator
from figgen.plotting.blocks import (
    LARGEST_GRID,
    Block,
    block_of,
    coordinates,
    shown_communicators,
    whole_world,
)
from figgen.plotting.words import identifier, label_of, ranks_words
from figgen.quantity_shown import NBSP
from figgen.registry import figure
from figgen.scenarios.options.written import written_layout


@figure("rank-grid", about=written_layout, explorable=True)
def rank_grid(
    parallel: ParallelLayout,
    *,
    first: str = "tp",
    communicators: tuple[str, ...] = (),
    most: int = LARGEST_GRID,
    whole: bool = False,
) -> RankGrid:
    """Every GPU by node, with all its coordinates, colored by the groups of one communicator.

    Above `most` GPUs one block of whole nodes represents the others, unless the `whole` world is
    asked for, as in the download. `first` is the communicator shown until a reader chooses another
    from `communicators` (default: all).
    """
    names = communicators or shown_communicators(parallel)
    if first not in names:
        raise InputError("first", expected=f"one of {', '.join(names)}", got=first)
    check_between("most", most, 8, LARGEST_GRID)
    block = whole_world(parallel) if whole else block_of(parallel, most)
    axes, indices = coordinates(parallel, block.ranks)
    width = parallel.gpus_per_node
    cells = tuple(
        RankCell(rank=rank, node=rank // width, local_rank=rank % width, coordinates=tuple(point))
        for rank, point in zip(block.ranks.tolist(), indices.tolist(), strict=True)
    )
    chosen = (first, *(name for name in names if name != first))
    return RankGrid(
        axes=axes,
        cells=cells,
        communicators=tuple(_view(parallel, name, block) for name in chosen),
        gpus_per_node=width,
        world_size=parallel.world_size,
        multiplicity=block.multiplicity,
        values=_layout_values(parallel, names, block),
    )


def _view(parallel: ParallelLayout, name: str, block: Block) -> CommunicatorView:
    summary = communicator(parallel, name)
    index = group_index(mesh_of(parallel, name), name)[block.ranks]
    return CommunicatorView(
        name=name,
        label=label_of(name),
        size=summary.size,
        group_count=summary.group_count,
        group_of_cell=tuple(index.tolist()),
        note=_note(summary),
    )


def _note(summary: Communicator) -> str:
    """Return the rank distance between neighbors of a group, and its nodes, in words."""
    if summary.size == 1:
        return "groups of one GPU"
    stride = "no single stride" if summary.stride is None else f"stride {summary.stride}"
    low, high = summary.nodes_touched_min, summary.nodes_touched_max
    span = f"{high}" if low == high else f"{low} to {high}"
    return f"{stride}, {span} node{'s' if high > 1 else ''} per group"


def _layout_values(
    parallel: ParallelLayout, names: tuple[str, ...], block: Block
) -> dict[str, Named]:
    values: dict[str, Scalar] = {
        "world_size": parallel.world_size,
        "nodes": parallel.nodes,
        "gpus_per_node": parallel.gpus_per_node,
        "multiplicity": block.multiplicity,
        "shown": len(block.ranks),
        "block": block.words,
        **{axis: getattr(parallel, axis) for axis in ("tp", "cp", "dp", "pp")},
    }
    if parallel.has_experts:
        values |= {axis: getattr(parallel, axis) for axis in ("ep", "etp", "edp")}
    for name in names:
        summary, key = communicator(parallel, name), identifier(name)
        values |= {f"{key}_groups": summary.group_count, f"{key}_nodes": summary.nodes_touched_max}
        if summary.stride is not None:
            values[f"{key}_stride"] = summary.stride
    return {name: Named(value) for name, value in values.items()}


@figure("two-grids", about=written_layout)
def two_grids(parallel: ParallelLayout, *, most: int = 16) -> Table:
    """Coordinates on both grids of the first `most` ranks, with their CP and EP groups."""
    ranks = np.arange(min(most, parallel.world_size))
    dense = _written(parallel.dense, ranks)
    expert = _written(parallel.expert, ranks)
    cp, ep = (_group_of_each(parallel, name) for name in ("cp", "ep"))
    rows = tuple((r, dense[r], expert[r], cp[r], ep[r]) for r in ranks.tolist())
    heads = (
        "rank",
        f"({', '.join(parallel.dense.names)})",
        f"({', '.join(parallel.expert.names)})",
        "CP group",
        "EP group",
    )
    same = sum(row[3] == row[4] for row in rows)
    values = {"world_size": parallel.world_size, "rows": len(rows), "same": same}
    return Table(
        columns=tuple(Column(label=head) for head in heads),
        rows=rows,
        values={name: Named(value) for name, value in values.items()},
    )


def _group_of_each(parallel: ParallelLayout, name: str) -> list[str]:
    """Return the group of every rank in one communicator."""
    mesh = mesh_of(parallel, name)
    listed = [ranks_words(group) for group in groups(mesh, name)]
    return [listed[row] for row in group_index(mesh, name).tolist()]


def _written(mesh: RankMesh, ranks: IntArray) -> list[str]:
    points = coordinate_array(mesh, ranks).tolist()
    return [f"({f',{NBSP}'.join(map(str, point))})" for point in points]


@figure("rank-groups", about=written_layout)
def rank_groups(
    parallel: ParallelLayout,
    *,
    communicators: tuple[str, ...] = (),
    most: int = 3,
) -> Table:
    """Process groups by communicator: number, size, stride, and the first `most`."""
    names = communicators or shown_communicators(parallel)
    rows = []
    values = {"world_size": Named(parallel.world_size)}
    for name in names:
        summary = communicator(parallel, name)
        members = groups(mesh_of(parallel, name), name)
        listed = " ".join(map(ranks_words, members[:most]))
        more = " …" if len(members) > most else ""
        grid = "dense" if mesh_of(parallel, name) == parallel.dense else "expert"
        stride = "–" if summary.size == 1 or summary.stride is None else summary.stride
        rows.append(
            (label_of(name), grid, summary.group_count, summary.size, stride, listed + more)
        )
        values[f"{identifier(name)}_groups"] = Named(summary.group_count)
    heads = ("groups of", "grid", "groups", "GPUs each", "stride", "ranks")
    return Table(
        columns=tuple(Column(label=head) for head in heads), rows=tuple(rows), values=values
    )
