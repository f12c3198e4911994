"""Select the GPUs of a layout that a grid of limited size shows, and their coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from figgen.errors import InputError
from figgen.models.machine.layout import ParallelLayout
from figgen.models.machine.mesh import IntArray, RankMesh, coordinate_array, group_array

LARGEST_GRID = 512
"""The most GPUs for which a grid is drawn whole."""


@dataclass(frozen=True, slots=True)
class Block:
    """The ranks that a grid shows, in whole nodes, and the number of such blocks in the world."""

    ranks: IntArray
    multiplicity: int
    words: str


def shown_communicators(parallel: ParallelLayout) -> tuple[str, ...]:
    """Return the communicators by which a grid can be colored."""
    names = ["tp", "cp", "dp", "pp"]
    names += ["ep", "edp"] if parallel.has_experts else []
    names += ["dp-cp"] if parallel.cp > 1 else []
    return tuple(names)


def whole_world(parallel: ParallelLayout) -> Block:
    """Return all ranks as one block."""
    world = parallel.world_size
    return Block(np.arange(world), 1, f"all {world:,} GPUs")


def block_of(parallel: ParallelLayout, most: int = LARGEST_GRID) -> Block:
    """Return all ranks of a small world, or the nodes of one model replica, or of less.

    Raises InputError if no part of the layout with at most `most` GPUs repeats over the nodes.
    """
    world = parallel.world_size
    if world <= most:
        return whole_world(parallel)
    choices = (
        (("tp", "cp", "pp"), "one model replica", "model replicas"),
        (("tp", "pp"), "one pipeline", "pipelines"),
        (("tp", "cp"), "one pipeline stage of one replica", "pipeline stages"),
        (("tp",), "one tensor-parallel group", "tensor-parallel groups"),
    )
    for axes, one, several in choices:
        found = _repeating(parallel, axes, most)
        if found is not None:
            nodes = len(found.ranks) // parallel.gpus_per_node
            held = len(found.ranks) // group_array(parallel.dense, axes).shape[1]
            what = one if held == 1 else f"{held} {several}"
            return Block(found.ranks, found.multiplicity, f"{what} on {nodes} nodes")
    raise InputError(
        "a grid of this layout", expected=f"at most {most} GPUs", got=world, key="most"
    )


def _repeating(parallel: ParallelLayout, axes: tuple[str, ...], most: int) -> Block | None:
    """Return the nodes of the first group along `axes`; None unless such sets tile the cluster."""
    width = parallel.gpus_per_node
    rows = group_array(parallel.dense, axes)
    sets = {tuple(sorted(set(row))) for row in (rows // width).tolist()}
    size = max(map(len, sets))
    if size * width > most or any(len(nodes) != size for nodes in sets):
        return None
    if len(sets) * size != parallel.nodes:
        return None
    first = np.array(min(sets))
    ranks = (first[:, None] * width + np.arange(width)).ravel()
    return Block(ranks, len(sets), "")


def coordinates(parallel: ParallelLayout, ranks: IntArray) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of all axes of both meshes, and the ranks' indices along them."""
    axes: tuple[str, ...] = ("tp", "cp", "dp", "pp")
    points = _columns(parallel.dense, axes, ranks)
    if not parallel.has_experts:
        return axes, points
    own = ("etp", "ep", "edp")
    return (*axes, *own), np.hstack([points, _columns(parallel.expert, own, ranks)])


def _columns(mesh: RankMesh, axes: tuple[str, ...], ranks: IntArray) -> IntArray:
    return coordinate_array(mesh, ranks)[:, [mesh.names.index(axis) for axis in axes]]
