"""Placement: the cube of three axes, the tree of its groups, rails, and jobs on nodes."""

from __future__ import annotations

from figgen.charts import Box, Diagram, DiagramLink, Named, Scalar
from figgen.errors import InputError, check_between, check_equal_lengths
from figgen.models.machine.layout import ParallelLayout, mesh_of
from figgen.models.machine.mesh import axis_size, coordinates_of, groups, rank_of
from figgen.models.machine.placement import communicator
from figgen.plotting.placed import box_at
from figgen.plotting.words import hue, identifier, label_of, ranks_words
from figgen.registry import figure
from figgen.scenarios.options.resolve import parallel_layout
from figgen.scenarios.options.written import written_layout

WIDTH, HEIGHT, ROW = 0.86, 0.86, 1.2
CUBE_LEFT, CUBE_STEP = 1.0, WIDTH + 0.22
LEAVES_LEFT, LEAF = 0.8, 0.54
MOST_ACROSS = 5
FULL = 10.0
"""Grid units of the column's width."""


def _place(parallel: ParallelLayout, **indices: int) -> int:
    """Return the rank at the given indices, 0 along all other axes."""
    return rank_of(parallel.dense, {name: indices.get(name, 0) for name in parallel.dense.names})


def order_words(parallel: ParallelLayout) -> str:
    """Return the dense axes larger than 1, fastest first: "TP DP PP"."""
    mesh = parallel.dense
    return " ".join(axis.upper() for axis in mesh.names if axis_size(mesh, axis) > 1)


def _axis_values(parallel: ParallelLayout) -> dict[str, Named]:
    values: dict[str, Scalar] = {"world_size": parallel.world_size, "nodes": parallel.nodes}
    for axis in ("tp", "dp", "pp"):
        found = communicator(parallel, axis)
        values |= {
            axis: found.size,
            f"{axis}_groups": found.group_count,
            f"{axis}_stride": found.stride or 0,
            f"{axis}_nodes": found.nodes_touched_max,
            f"{axis}_first": ranks_words(groups(parallel.dense, axis)[0]),
        }
    return {name: Named(value) for name, value in values.items()}


@figure("parallel-cube")
def parallel_cube(*, sizes: str, order: str = "megatron") -> Diagram:
    """Stages across, replicas down, and in every box the tensor-parallel group as depth.

    Raises InputError for more than five stages or replicas, and for a context axis.
    """
    parallel = written_layout(sizes=sizes, order=order)
    check_between("pp", parallel.pp, 1, MOST_ACROSS)
    check_between("dp", parallel.dp, 1, MOST_ACROSS)
    check_between("cp", parallel.cp, 1, 1)
    cells = [(d, p) for d in range(parallel.dp) for p in range(parallel.pp)]
    links: list[DiagramLink] = []
    for d, p in cells:
        if p:
            links.append(DiagramLink(source=f"{d}.{p - 1}", target=f"{d}.{p}", role="pp"))
        if d:
            links.append(
                DiagramLink(source=f"{d - 1}.{p}", target=f"{d}.{p}", role="dp", both_ways=True)
            )
    return Diagram(
        boxes=(*_heads(parallel), *(_tensor_group(parallel, d, p) for d, p in cells)),
        links=tuple(links),
        width=CUBE_LEFT + parallel.pp * CUBE_STEP - 0.22,
        height=0.75 + parallel.dp * ROW - (ROW - HEIGHT),
        values=_axis_values(parallel),
    )


def _heads(parallel: ParallelLayout) -> list[Box]:
    """Return the titles of the rows, which are replicas, and of the columns, which are stages."""
    return [
        box_at(f"replica {d}", (f"replica {d}",), (0, 0.75 + d * ROW), (0.85, HEIGHT), "dp")
        for d in range(parallel.dp)
    ] + [
        box_at(f"stage {p}", (f"stage {p}",), (CUBE_LEFT + p * CUBE_STEP, 0), (WIDTH, 0.45), "pp")
        for p in range(parallel.pp)
    ]


def _tensor_group(parallel: ParallelLayout, d: int, p: int) -> Box:
    """Return the box of the tensor-parallel group in replica `d` and stage `p`."""
    first, last = (_place(parallel, tp=t, dp=d, pp=p) for t in (0, parallel.tp - 1))
    return box_at(
        f"{d}.{p}",
        ("ranks", f"{first}–{last}", f"node {first // parallel.gpus_per_node}"),
        (CUBE_LEFT + p * CUBE_STEP, 0.75 + d * ROW),
        (WIDTH, HEIGHT),
        "tp",
    )


@figure("rank-cube")
def rank_cube(*, orders: tuple[str, ...] = ("megatron", "megatron-tp-pp-dp")) -> Diagram:
    """Eight GPUs as TP 2 · DP 2 · PP 2, one cube for each order: TP across, PP down, DP back."""
    check_between("number of orders", len(orders), 1, 2)
    boxes: list[Box] = []
    links: list[DiagramLink] = []
    values: dict[str, Named] = {}
    for at, order in enumerate(orders):
        parallel = parallel_layout(nodes=1, gpus_per_node=8, tp=2, pp=2, order=order)
        left = at * 5.3
        title = f"{order_words(parallel)}, fastest first"
        boxes.append(box_at(f"order {at}", (title,), (left, 0), (4.7, 4.0), frame=True))
        for rank in range(8):
            place = coordinates_of(parallel.dense, rank)
            boxes.append(
                box_at(
                    f"{at}.{rank}",
                    (f"rank {rank}",),
                    (_across(left, place), 0.5 + 1.95 * place["pp"] + 0.85 * (1 - place["dp"])),
                    (0.98, 0.5),
                )
            )
        for axis in ("tp", "pp", "dp"):
            members = groups(parallel.dense, axis)
            links += [
                DiagramLink(
                    source=f"{at}.{low}", target=f"{at}.{high}", role=axis, both_ways=axis != "pp"
                )
                for low, high in members
            ]
            key = f"{axis}_{at}"
            values[key] = Named(" ".join(ranks_words(group) for group in members))
    return Diagram(
        boxes=tuple(boxes),
        links=tuple(links),
        width=len(orders) * 5.3 - 0.6,
        height=4.0,
        values=values,
    )


def _across(left: float, place: dict[str, int]) -> float:
    return left + 0.15 + 2.35 * place["tp"] + 1.15 * place["dp"]


@figure("group-tree")
def group_tree(
    *,
    sizes: str,
    order: str = "megatron",
    communicators: tuple[str, ...] = ("tp", "cp", "dp", "pp", "tp-pp"),
) -> Diagram:
    """The process groups that a framework makes, and the groups of rank 0."""
    check_between("number of communicators", len(communicators), 1, MOST_ACROSS)
    parallel = written_layout(sizes=sizes, order=order)
    wide = FULL / len(communicators)
    boxes = [
        box_at(
            "world",
            (f"world: {parallel.world_size} ranks", order_words(parallel)),
            (FULL / 2 - 1.8, 0),
            (3.6, 0.75),
        )
    ]
    links = []
    values = {"world_size": Named(parallel.world_size)}
    for at, name in enumerate(communicators):
        found = communicator(parallel, name)
        stride = "alone" if found.size == 1 else f"stride {found.stride or 'varies'}"
        members = groups(mesh_of(parallel, name), name)[0]
        several = "node" if found.nodes_touched_max == 1 else "nodes"
        counted = f"{found.group_count} groups of {found.size}"
        own = (ranks_words(members), f"{found.nodes_touched_max} {several}")
        for row, (key, lines) in enumerate(
            ((name, (label_of(name), counted, stride)), (f"{name} of 0", ("with rank 0", *own)))
        ):
            boxes.append(
                box_at(
                    key, lines, (at * wide + 0.06, 1.3 + row * 1.55), (wide - 0.12, 1.05), hue(name)
                )
            )
        links += [
            DiagramLink(source="world", target=name, role=hue(name)),
            DiagramLink(source=name, target=f"{name} of 0", role=hue(name)),
        ]
        said = identifier(name)
        values |= {
            f"{said}_groups": Named(found.group_count),
            f"{said}_size": Named(found.size),
            f"{said}_nodes": Named(found.nodes_touched_max),
            f"{said}_first": Named(ranks_words(members)),
        }
    return Diagram(boxes=tuple(boxes), links=tuple(links), width=FULL, height=3.9, values=values)


@figure("rail-fabric")
def rail_fabric(*, nodes: int = 4, gpus_per_node: int = 8, rank: int = 2) -> Diagram:
    """A leaf switch for each local rank of all nodes; the rail of `rank` is highlighted."""
    check_between("nodes", nodes, 2, 6)
    check_between("gpus_per_node", gpus_per_node, 2, 8)
    check_between("rank", rank, 0, nodes * gpus_per_node - 1)
    rail = rank % gpus_per_node
    right, bottom = LEAVES_LEFT + gpus_per_node * LEAF, 1.75 + nodes * 0.75
    spine = box_at("spine", ("spine switches",), (LEAVES_LEFT, 0), (right - LEAVES_LEFT, 0.5))
    boxes = [spine]
    for local in range(gpus_per_node):
        boxes += _leaf(nodes, gpus_per_node, local, "dp" if local == rail else "neutral")
    boxes += [
        box_at(f"node {node}", (f"node {node}",), (0, 1.65 + node * 0.75), (LEAVES_LEFT - 0.1, 0.5))
        for node in range(nodes)
    ]
    on_rail = tuple(node * gpus_per_node + rail for node in range(nodes))
    values = {
        "rail": Named(rail),
        "ranks": Named(ranks_words(on_rail)),
        "nodes": Named(nodes),
        "rails": Named(gpus_per_node),
    }
    links = tuple(
        DiagramLink(source="spine", target=f"leaf {local}", both_ways=True)
        for local in range(gpus_per_node)
    )
    return Diagram(boxes=tuple(boxes), links=links, width=right, height=bottom, values=values)


def _leaf(nodes: int, gpus_per_node: int, local: int, role: str) -> list[Box]:
    """Return the switch of a local rank with that rank of every node in it."""
    x = LEAVES_LEFT + local * LEAF
    switch = box_at(
        f"leaf {local}",
        ("leaf", f"{local}"),
        (x, 1.0),
        (LEAF - 0.04, 0.75 + nodes * 0.75),
        role,
        frame=True,
    )
    return [
        switch,
        *(
            box_at(
                f"rank {node * gpus_per_node + local}",
                (f"{node * gpus_per_node + local}",),
                (x + 0.05, 1.65 + node * 0.75),
                (LEAF - 0.14, 0.5),
                role,
            )
            for node in range(nodes)
        ),
    ]


@figure("fragmentation")
def fragmentation(
    *, placements: tuple[str, ...], titles: tuple[str, ...], wanted: int = 4
) -> Diagram:
    """Jobs on the GPUs of equal nodes, a letter for each and a dot for a free GPU: "AA.. BBBB".

    `wanted` is the tensor-parallel group to be placed next.
    """
    check_equal_lengths(placements=placements, titles=titles)
    boxes: list[Box] = []
    values: dict[str, Named] = {"wanted": Named(wanted)}
    for row, (placement, title) in enumerate(zip(placements, titles, strict=True)):
        nodes = placement.split()
        widths = {len(node) for node in nodes}
        if len(widths) != 1 or not nodes:
            raise InputError("placement", expected="nodes of equal width", got=placement)
        y = row * 1.75
        boxes += _nodes(nodes, row, y, title)
        free = [node.count(".") for node in nodes]
        jobs = sorted(set(placement) - set(". "))
        split = [job for job in jobs if sum(job in node for node in nodes) > 1]
        values |= {
            f"free_{row}": Named(sum(free)),
            f"largest_{row}": Named(max(free)),
            f"fits_{row}": Named("fits" if max(free) >= wanted else "does not fit"),
            f"split_{row}": Named(len(split)),
        }
    return Diagram(
        boxes=tuple(boxes), links=(), width=FULL, height=len(placements) * 1.75 - 0.1, values=values
    )


def _nodes(nodes: list[str], row: int, y: float, title: str) -> list[Box]:
    """Return the frames of one placement and a box for every GPU."""
    across = FULL / len(nodes)
    cell = (across - 0.3) / len(nodes[0])
    boxes = []
    for at, node in enumerate(nodes):
        left = at * across
        head = f"{title}: node {at}"
        boxes.append(box_at(f"{row}.{at}", (head,), (left, y), (across - 0.1, 1.45), frame=True))
        boxes += [
            box_at(
                f"{row}.{at}.{gpu}",
                ("free",) if job == "." else (job,),
                (left + 0.1 + gpu * cell, y + 0.55),
                (cell - 0.05, 0.65),
                "idle" if job == "." else f"series-{ord(job) - ord('A') + 1}",
            )
            for gpu, job in enumerate(node)
        ]
    return boxes
