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
from figgen.plotting.placed import box_at
from figgen.registry import figure

WIDTH = 10.0


@figure("fat-tree-wiring")
def fat_tree_wiring() -> Diagram:
    """Two tiers of switches with four ports: eight endpoints, every leaf joined to every spine."""
    ports, leaves, spines = 4, 4, 2
    wide = WIDTH / leaves
    boxes = [
        box_at(f"spine {s}", (f"spine {s}",), (1.6 + s * 4.6, 0), (2.2, 0.55), "series-2")
        for s in range(spines)
    ]
    links = []
    for leaf in range(leaves):
        x = leaf * wide
        boxes.append(
            box_at(
                f"leaf {leaf}", (f"leaf {leaf}",), (x + 0.1, 1.9), (wide - 0.2, 0.55), "series-1"
            )
        )
        links += [
            DiagramLink(source=f"spine {s}", target=f"leaf {leaf}", both_ways=True)
            for s in range(spines)
        ]
        for at in range(ports // 2):
            gpu = leaf * (ports // 2) + at
            boxes.append(box_at(f"gpu {gpu}", (f"{gpu}",), (x + 0.2 + at * 1.1, 3.2), (1.0, 0.5)))
            links.append(DiagramLink(source=f"leaf {leaf}", target=f"gpu {gpu}", both_ways=True))
    endpoints = leaves * ports // 2
    values = {
        "endpoints": Named(endpoints),
        "switches": Named(leaves + spines),
        "cut": Named(int(fat_tree_bisection_links(endpoints, 1))),
    }
    return Diagram(boxes=tuple(boxes), links=tuple(links), width=WIDTH, height=3.7, values=values)


SIDE, STEP = 4, 1.75
"""Endpoints per row of the torus, and their distance."""


def _row_stubs(row: int) -> list[Box]:
    """Return stubs at both ends of a row, each labeled with the other end."""
    y, first, right = 0.9 + row * 1.05, row * SIDE, 1.2 + SIDE * STEP - 0.4
    last = f"to {first + SIDE - 1}"
    return [
        box_at(f"left {row}", (last,), (0, y), (0.75, 0.5)),
        box_at(f"right {row}", (f"to {first}",), (right, y), (0.75, 0.5)),
    ]


def _column_stubs(column: int) -> list[Box]:
    """Return stubs at both ends of a column, each labeled with the other end."""
    x, last, foot = 1.2 + column * STEP, SIDE * (SIDE - 1) + column, 0.9 + SIDE * 1.05 - 0.15
    return [
        box_at(f"top {column}", (f"to {last}",), (x, 0), (0.9, 0.45)),
        box_at(f"foot {column}", (f"to {column}",), (x, foot), (0.9, 0.45)),
    ]


def _stub_links(start: str, end: str, first: int, last: int) -> list[DiagramLink]:
    return [
        DiagramLink(source=start, target=f"{first}", both_ways=True),
        DiagramLink(source=f"{last}", target=end, both_ways=True),
    ]


@figure("torus-wiring")
def torus_wiring() -> Diagram:
    """A torus of four by four, with the ends of each row and column joined."""
    side, step = SIDE, STEP
    boxes, links = list[Box](), list[DiagramLink]()
    for row in range(side):
        for column in range(side):
            name = f"{row * side + column}"
            x, y = 1.2 + column * step, 0.9 + row * 1.05
            boxes.append(box_at(name, (name,), (x, y), (0.9, 0.5), "series-1"))
            at = row * side + column
            before = [at - 1] * (column > 0) + [at - side] * (row > 0)
            links += [DiagramLink(source=f"{one}", target=name, both_ways=True) for one in before]
        boxes += _row_stubs(row)
        links += _stub_links(f"left {row}", f"right {row}", row * side, row * side + side - 1)
    for column in range(side):
        boxes += _column_stubs(column)
        last = side * (side - 1) + column
        links += _stub_links(f"top {column}", f"foot {column}", column, last)
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
            box_at(
                f"group {group}", (f"group {group}",), (x + 0.1, 0.7), (wide - 0.2, 2.3), frame=True
            )
        )
        for at in range(2):
            router, gpu = f"router {group}.{at}", f"{2 * group + at}"
            left = x + 0.3 + at * 1.5
            boxes += [
                box_at(router, ("router",), (left, 1.25), (1.2, 0.5), "series-1"),
                box_at(gpu, (gpu,), (left, 2.25), (1.2, 0.5)),
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
