"""Which GPUs of a layout a grid of limited size shows, and where they are along its axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from figgen.errors import InputError
from figgen.models.machine.layout import ParallelLayout
from figgen.models.machine.mesh import IntArray, RankMesh, coordinate_array, group_array

LARGEST_GRID = 512
"""GPUs up to which a grid is drawn whole."""


@dataclass(frozen=True, slots=True)
class Block:
    """The ranks that a grid shows, whole nodes, and how many such blocks make up the world."""

    ranks: IntArray
    multiplicity: int
    words: str


def shown_communicators(parallel: ParallelLayout) -> tuple[str, ...]:
    """The communicators that a grid can be coloured by."""
    names = ["tp", "cp", "dp", "pp"]
    names += ["ep", "edp"] if parallel.has_experts else []
    names += ["dp-cp"] if parallel.cp > 1 else []
    return tuple(names)


def whole_world(parallel: ParallelLayout) -> Block:
    """Every rank."""
    world = parallel.world_size
    return Block(np.arange(world), 1, f"all {world:,} GPUs")


def block_of(parallel: ParallelLayout, most: int = LARGEST_GRID) -> Block:
    """All ranks of a small world; of a large one the nodes of one model replica, or of less.

    Raises InputError when no part of the layout up to `most` GPUs repeats over the nodes.
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
    """The nodes of the first group along `axes`, if such sets of nodes tile the cluster."""
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
    """Names of all axes of both meshes, each once, and the ranks' indices along them."""
    axes: tuple[str, ...] = ("tp", "cp", "dp", "pp")
    points = _columns(parallel.dense, axes, ranks)
    if not parallel.has_experts:
        return axes, points
    own = ("etp", "ep", "edp")
    return (*axes, *own), np.hstack([points, _columns(parallel.expert, own, ranks)])


def _columns(mesh: RankMesh, axes: tuple[str, ...], ranks: IntArray) -> IntArray:
    return coordinate_array(mesh, ranks)[:, [mesh.names.index(axis) for axis in axes]]
