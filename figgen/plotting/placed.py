"""Boxes of diagrams and films by corner and size, and columns of tables that share a unit."""

from __future__ import annotations

from figgen.charts import Box, Column, Thing

Pair = tuple[float, float]


def box_at(
    name: str,
    lines: tuple[str, ...],
    at: Pair,
    size: Pair,
    role: str = "neutral",
    frame: bool = False,
) -> Box:
    """Return a box of a diagram with its upper left corner at (x, y), in grid units."""
    (x, y), (width, height) = at, size
    return Box(name=name, lines=lines, x=x, y=y, width=width, height=height, role=role, frame=frame)


def thing_at(
    name: str,
    at: Pair,
    size: Pair,
    text: str = "",
    role: str = "",
    origin: Pair | None = None,
    strong: bool = False,
) -> Thing:
    """Return a box of a scene with its upper left corner at (x, y), in px."""
    (x, y), (width, height) = at, size
    return Thing(
        name=name,
        x=x,
        y=y,
        width=width,
        height=height,
        text=text,
        role=role,
        origin=origin,
        strong=strong,
    )


def headings(*labels: str, unit: str = "", spec: str = "") -> tuple[Column, ...]:
    """Return neighboring columns of a table whose numbers have the same unit and format."""
    return tuple(Column(label=label, unit=unit, spec=spec) for label in labels)
