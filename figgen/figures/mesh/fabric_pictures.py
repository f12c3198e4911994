"""The wiring of small fabrics: a fat tree, a torus, a dragonfly."""

from __future__ import annotations

from figgen.charts import Box, Diagram, DiagramLink, Named
from figgen.formulas.topology import (
    dragonfly_bisection_links,
    dragonfly_endpoints,
    fat_tree_bisection_links,
    torus_bisection_links,
    torus_diameter,
)
from figgen.registry import figure

WIDTH = 10.0


@figure("fat-tree-wiring")
def fat_tree_wiring() -> Diagram:
    """Two tiers of switches with four ports: eight endpoints, every leaf joined to every spine."""
    ports, leaves, spines = 4, 4, 2
    wide = WIDTH / leaves
    boxes = [
        Box(
            name=f"spine {s}",
            lines=(f"spine {s}",),
            x=1.6 + s * 4.6,
            y=0,
            width=2.2,
            height=0.55,
            role="series-2",
        )
        for s in range(spines)
    ]
    links = []
    for leaf in range(leaves):
        x = leaf * wide
        boxes.append(
            Box(
                name=f"leaf {leaf}",
                lines=(f"leaf {leaf}",),
                x=x + 0.1,
                y=1.9,
                width=wide - 0.2,
                height=0.55,
                role="series-1",
            )
        )
        links += [
            DiagramLink(source=f"spine {s}", target=f"leaf {leaf}", both_ways=True)
            for s in range(spines)
        ]
        for at in range(ports // 2):
            gpu = leaf * (ports // 2) + at
            boxes.append(
                Box(
                    name=f"gpu {gpu}",
                    lines=(f"{gpu}",),
                    x=x + 0.2 + at * 1.1,
                    y=3.2,
                    width=1.0,
                    height=0.5,
                )
            )
            links.append(DiagramLink(source=f"leaf {leaf}", target=f"gpu {gpu}", both_ways=True))
    endpoints = leaves * ports // 2
    values = {
        "endpoints": Named(endpoints),
        "switches": Named(leaves + spines),
        "cut": Named(int(fat_tree_bisection_links(endpoints, 1))),
    }
    return Diagram(boxes=tuple(boxes), links=tuple(links), width=WIDTH, height=3.7, values=values)


@figure("torus-wiring")
def torus_wiring() -> Diagram:
    """A torus of four by four: neighbours are joined, and the ends of every row and column too."""
    side, step = 4, 1.75
    boxes = []
    links = []
    for row in range(side):
        for column in range(side):
            name = f"{row * side + column}"
            boxes.append(
                Box(
                    name=name,
                    lines=(name,),
                    x=1.2 + column * step,
                    y=0.9 + row * 1.05,
                    width=0.9,
                    height=0.5,
                    role="series-1",
                )
            )
            if column:
                links.append(
                    DiagramLink(source=f"{row * side + column - 1}", target=name, both_ways=True)
                )
            if row:
                links.append(
                    DiagramLink(source=f"{(row - 1) * side + column}", target=name, both_ways=True)
                )
        # What leaves a row at its end comes back at its start: a stub with the other end's name.
        y = 0.9 + row * 1.05
        first, last = row * side, row * side + side - 1
        boxes += [
            Box(name=f"left {row}", lines=(f"to {last}",), x=0, y=y, width=0.75, height=0.5),
            Box(
                name=f"right {row}",
                lines=(f"to {first}",),
                x=1.2 + side * step - 0.4,
                y=y,
                width=0.75,
                height=0.5,
            ),
        ]
        links += [
            DiagramLink(source=f"left {row}", target=f"{first}", both_ways=True),
            DiagramLink(source=f"{last}", target=f"right {row}", both_ways=True),
        ]
    for column in range(side):
        x = 1.2 + column * step
        first, last = column, side * (side - 1) + column
        boxes += [
            Box(name=f"top {column}", lines=(f"to {last}",), x=x, y=0, width=0.9, height=0.45),
            Box(
                name=f"foot {column}",
                lines=(f"to {first}",),
                x=x,
                y=0.9 + side * 1.05 - 0.15,
                width=0.9,
                height=0.45,
            ),
        ]
        links += [
            DiagramLink(source=f"top {column}", target=f"{first}", both_ways=True),
            DiagramLink(source=f"{last}", target=f"foot {column}", both_ways=True),
        ]
    values = {
        "endpoints": Named(side * side),
        "cut": Named(int(torus_bisection_links(side, 2))),
        "hops": Named(int(torus_diameter(side, 2))),
    }
    return Diagram(
        boxes=tuple(boxes),
        links=tuple(links),
        width=1.2 + side * step + 0.35,
        height=0.9 + side * 1.05 + 0.3,
        values=values,
    )


@figure("dragonfly-wiring")
def dragonfly_wiring() -> Diagram:
    """The smallest dragonfly: groups of two routers with an endpoint and a far link each."""
    groups = 3
    wide = WIDTH / groups
    boxes = []
    links = []
    for group in range(groups):
        x = group * wide
        boxes.append(
            Box(
                name=f"group {group}",
                lines=(f"group {group}",),
                x=x + 0.1,
                y=0.7,
                width=wide - 0.2,
                height=2.3,
                frame=True,
            )
        )
        for at in range(2):
            router, gpu = f"router {group}.{at}", f"{2 * group + at}"
            left = x + 0.3 + at * 1.5
            boxes += [
                Box(
                    name=router,
                    lines=("router",),
                    x=left,
                    y=1.25,
                    width=1.2,
                    height=0.5,
                    role="series-1",
                ),
                Box(name=gpu, lines=(gpu,), x=left, y=2.25, width=1.2, height=0.5),
            ]
            links.append(DiagramLink(source=router, target=gpu, both_ways=True))
        links.append(
            DiagramLink(source=f"router {group}.0", target=f"router {group}.1", both_ways=True)
        )
        if group:
            links.append(
                DiagramLink(
                    source=f"router {group - 1}.1",
                    target=f"router {group}.0",
                    both_ways=True,
                    role="series-2",
                )
            )
    links.append(
        DiagramLink(source="router 0.0", target="router 2.1", both_ways=True, role="series-2")
    )
    values = {
        "endpoints": Named(int(dragonfly_endpoints(1, 2, 1))),
        "groups": Named(groups),
        "cut": Named(int(dragonfly_bisection_links(2, 1))),
    }
    return Diagram(boxes=tuple(boxes), links=tuple(links), width=WIDTH, height=3.1, values=values)
