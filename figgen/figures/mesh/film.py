"""A film of ranks filling a machine room, one axis after the other, then rank 0's groups."""

from __future__ import annotations

import math
from dataclasses import replace

from figgen.charts import Film, Named, Question, Scene, Thing
from figgen.errors import InputError, check_between
from figgen.models.machine.layout import ParallelLayout
from figgen.models.machine.mesh import RankMesh, axis_stride, groups
from figgen.plotting.placed import thing_at
from figgen.registry import figure
from figgen.scenarios.options.written import written_layout

CELL, HIGH, TOP, NODE, GAP = 25.0, 18.0, 18.0, 24.0, 8.0
NODES_HIGH, MOST_NODES = 8, 16
WORDS = {
    "tp": "the parts of a layer",
    "cp": "the parts of a sequence",
    "dp": "the replicas",
    "pp": "the stages of the pipeline",
}


def _axis_scenes(room: _Room, mesh: RankMesh, at: int, gpus_per_node: int) -> list[Scene]:
    """Return scenes in which the ranks of an axis are placed: index 1, then all others."""
    name, size = mesh.axes[at]
    stride = axis_stride(mesh, name)
    told = f"ranks {stride} to {2 * stride - 1}" if stride > 1 else "rank 1"
    begun = Scene(
        says=f"{name.upper()} {size}: {WORDS[name]}. Index 1 goes to {told}, "
        f"{stride} place{'s' * (stride > 1)} on.",
        things=room.at(mesh, 2 * stride, new=stride, stride=stride),
        asks=_next(mesh, at, gpus_per_node) if at else None,
    )
    full = Scene(
        says=f"{name.upper()} is full with {size * stride} ranks.",
        things=room.at(mesh, size * stride, new=2 * stride, stride=stride),
    )
    return [begun, full] if size > 2 else [begun]


@figure("room-film", about=written_layout)
def room_film(parallel: ParallelLayout) -> Film:
    """Global ranks take their places in the nodes, fastest axis first; then the groups of rank 0.

    A color is a rank's place along the fastest axis, so equal colors hold equal slices.
    """
    check_between("nodes", parallel.nodes, 2, MOST_NODES)
    check_between("gpus_per_node", parallel.gpus_per_node, 2, 8)
    axes = tuple((name, size) for name, size in parallel.dense.axes if size > 1)
    if len(axes) < 2:
        raise InputError("axes of the film", expected="two or more larger than 1", got=axes)
    mesh, room = RankMesh(axes), _Room(parallel.nodes, parallel.gpus_per_node)
    scenes = [
        Scene(
            says=f"{parallel.nodes} nodes of {parallel.gpus_per_node} GPUs. In a row NVLink, "
            "between rows the network.",
            things=room.at(mesh, 0),
        )
    ]
    for at in range(len(axes)):
        scenes += _axis_scenes(room, mesh, at, parallel.gpus_per_node)
    touched = {}
    for at, (name, _) in enumerate(axes):
        group = groups(mesh, name)[0]
        touched[name] = len({rank // parallel.gpus_per_node for rank in group})
        scenes.append(
            Scene(
                says=f"{name.upper()} of rank 0: ranks {_listed(group)}, {_nodes(touched[name])}.",
                things=room.at(mesh, mesh.world_size, strong=frozenset(group)),
                asks=_group(mesh, name, touched[name]) if at == 1 else None,
            )
        )
    overview = len(scenes)
    told = ", ".join(f"{name.upper()} {_nodes(count)}" for name, count in touched.items())
    scenes.append(Scene(says=f"The groups of rank 0: {told}.", things=room.of_groups(mesh)))
    first, other = axes[0][0], next((a for a in axes[1:] if a[0] == "dp"), axes[-1])
    turned = RankMesh((other, *(axis for axis in axes if axis != other)))
    spread = groups(turned, first)[0]
    scattered = len({rank // parallel.gpus_per_node for rank in spread})
    scenes.append(
        Scene(
            says=f"With {other[0].upper()} before {first.upper()}, the {first.upper()} group of "
            f"rank 0 would be in {_nodes(scattered).removeprefix('in ')}.",
            things=room.at(turned, mesh.world_size, strong=frozenset(spread), lead=first),
        )
    )
    values = {
        "world_size": Named(mesh.world_size),
        "nodes": Named(parallel.nodes),
        "scattered": Named(scattered),
    }
    values |= {f"{name}_nodes": Named(count) for name, count in touched.items()}
    values |= {f"{name}_stride": Named(axis_stride(mesh, name)) for name, _ in axes}
    return Film(
        width=room.width,
        height=room.height,
        scenes=tuple(scenes),
        stills=(overview,),
        opens=overview,
        values=values,
    )


def _listed(group: tuple[int, ...]) -> str:
    step = group[1] - group[0]
    if len(group) <= 3:
        return " and ".join(map(str, group))
    return f"{group[0]} to {group[-1]}" + (f" in steps of {step}" if step > 1 else "")


def _nodes(count: int) -> str:
    return "in one node" if count == 1 else f"in {count} nodes"


def _next(mesh: RankMesh, at: int, per_node: int) -> Question:
    name, _ = mesh.axes[at]
    stride = axis_stride(mesh, name)
    before = mesh.axes[at - 1][0].upper()
    node = f"node {stride // per_node}" if stride % per_node == 0 else "the middle of a node"
    return Question(
        text=f"{before} is full. With which rank does index 1 of {name.upper()} begin?",
        choices=tuple(map(str, sorted({1, stride, mesh.sizes[at] + stride}))),
        right=sorted({1, stride, mesh.sizes[at] + stride}).index(stride),
        because=f"The faster axes take {stride} ranks, 0 to {stride - 1}; so it begins in {node}.",
    )


def _group(mesh: RankMesh, name: str, touched: int) -> Question:
    size = dict(mesh.axes)[name]
    choices = sorted({1, 2, size, touched})
    return Question(
        text=f"The {name.upper()} group of rank 0 has {size} ranks. In how many nodes are they?",
        choices=tuple(map(str, choices)),
        right=choices.index(touched),
        because=f"They are {axis_stride(mesh, name)} ranks apart.",
    )


class _Room:
    """Nodes below each other in columns of eight, each a row of GPUs."""

    def __init__(self, nodes: int, per_node: int) -> None:
        self.nodes, self.per_node = nodes, per_node
        columns = math.ceil(nodes / NODES_HIGH)
        self.column = per_node * CELL + GAP
        self.width = columns * self.column - GAP + 1
        self.height = TOP + min(nodes, NODES_HIGH) * NODE

    def place(self, rank: int) -> tuple[float, float]:
        node, local = divmod(rank, self.per_node)
        column, row = divmod(node, NODES_HIGH)
        return column * self.column + local * CELL, TOP + row * NODE

    def at(
        self,
        mesh: RankMesh,
        filled: int,
        new: int | None = None,
        stride: int = 1,
        strong: frozenset[int] = frozenset(),
        lead: str = "",
    ) -> tuple[Thing, ...]:
        """Return the first `filled` ranks; those from `new` on move from `stride` ranks before.

        Colors are indices along the axis `lead`, or along the fastest.
        """
        lead = lead or mesh.names[0]
        apart, size = axis_stride(mesh, lead), dict(mesh.axes)[lead]
        things = self._heads()
        for rank in range(self.nodes * self.per_node):
            x, y = self.place(rank)
            there = rank < filled
            comes = new is not None and new <= rank < filled
            faded = strong and rank not in strong
            things.append(
                thing_at(
                    f"g{rank}",
                    (x, y),
                    (CELL - 1, HIGH),
                    str(rank) if there else "",
                    "idle" if not there or faded else f"rank-{rank // apart % size % 8}",
                    origin=self.place(rank - stride) if comes else None,
                    strong=rank in strong,
                )
            )
        return tuple(things)

    def of_groups(self, mesh: RankMesh) -> tuple[Thing, ...]:
        """Return rank 0 and the members of its groups in the colors of their axes, others pale."""
        axis_of = {rank: name for name in mesh.names for rank in groups(mesh, name)[0] if rank}
        things = self._heads()
        for rank in range(self.nodes * self.per_node):
            x, y = self.place(rank)
            axis = axis_of.get(rank)
            things.append(
                thing_at(
                    f"g{rank}",
                    (x, y),
                    (CELL - 1, HIGH),
                    f"{rank}" if axis or rank == 0 else "",
                    "neutral" if rank == 0 else axis or "idle",
                    strong=rank == 0,
                )
            )
        # The first member of each group names its axis.
        for name in mesh.names:
            member = groups(mesh, name)[0][1]
            things = [
                replace(thing, text=name.upper()) if thing.name == f"g{member}" else thing
                for thing in things
            ]
        return tuple(things)

    def _heads(self) -> list[Thing]:
        """Return the numbers of the nodes above each column."""
        return [
            thing_at(
                f"column {column}",
                (column * self.column, 0),
                (90, 14),
                f"nodes {first} to {min(self.nodes, first + NODES_HIGH) - 1}",
            )
            for column, first in enumerate(range(0, self.nodes, NODES_HIGH))
        ]
