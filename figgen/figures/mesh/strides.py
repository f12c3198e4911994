"""A rank as a nested loop: one row of blocks per axis, each a part of the row above."""

from __future__ import annotations

from typing import Literal

from figgen.charts import Box, Diagram, DiagramLink, Named
from figgen.models.machine.layout import ParallelLayout
from figgen.models.machine.mesh import RankMesh, axis_size, axis_stride, coordinates_of
from figgen.plotting.placed import box_at
from figgen.plotting.words import hue
from figgen.registry import figure
from figgen.scenarios.options.written import written_layout

ROW, HEIGHT, LEFT, ACROSS = 1.15, 0.7, 1.1, 4.0
"""In grid units; names and blocks together are as wide as a phone shows."""
MOST_BOXES = 8
DOTS = 0.4
"""Width of the mark for several blocks, in blocks."""


@figure("rank-strides", about=written_layout)
def rank_strides(
    parallel: ParallelLayout,
    *,
    rank: int,
    grid: Literal["dense", "expert"] = "dense",
) -> Diagram:
    """How a rank is computed: each index times its stride, the slowest axis first."""
    mesh = parallel.expert if grid == "expert" else parallel.dense
    place = coordinates_of(mesh, rank)
    axes = [axis for axis in reversed(mesh.names) if axis_size(mesh, axis) > 1]
    boxes: list[Box] = []
    links: list[DiagramLink] = []
    start = 0
    for row, axis in enumerate(axes):
        boxes += _row(mesh, axis, place[axis], start, row)
        start += place[axis] * axis_stride(mesh, axis)
        if row:
            above = axes[row - 1]
            links.append(_step(f"{above} {place[above]}", f"{axis} {place[axis]}", axis))
    boxes.append(_sum(mesh, axes, place, rank))
    links.append(_step(f"{axes[-1]} {place[axes[-1]]}", "sum", axes[-1]))
    values = {"rank": Named(rank), "world_size": Named(mesh.world_size)}
    values |= {f"{axis}_index": Named(index) for axis, index in place.items()}
    values |= {f"{axis}_stride": Named(axis_stride(mesh, axis)) for axis in mesh.names}
    height = ROW * len(axes) + HEIGHT
    return Diagram(
        boxes=tuple(boxes), links=tuple(links), width=LEFT + ACROSS, height=height, values=values
    )


def _step(source: str, target: str, axis: str) -> DiagramLink:
    return DiagramLink(source=source, target=target, role=hue(axis))


def _row(mesh: RankMesh, axis: str, index: int, start: int, row: int) -> list[Box]:
    """Return the name of an axis and its blocks of ranks, with the block at `index` selected."""
    size, stride = axis_size(mesh, axis), axis_stride(mesh, axis)
    shown = _shown(size, index)
    each = ACROSS / sum(DOTS if at is None else 1.0 for at in shown)
    y = row * ROW
    blocks = [
        box_at(
            axis,
            (f"{axis} 0–{size - 1}", f"stride {stride}"),
            (0, y),
            (LEFT - 0.1, HEIGHT),
            hue(axis),
        )
    ]
    x = LEFT
    for place, at in enumerate(shown):
        width = each * (DOTS if at is None else 1.0)
        blocks.append(
            box_at(
                f"{axis} {at}" if at is not None else f"{axis} …{place}",
                _lines(axis, at, start, stride, across=len(shown)),
                (x, y),
                (width - 0.06, HEIGHT),
                hue(axis) if at == index else "neutral",
            )
        )
        x += width
    return blocks


def _lines(axis: str, at: int | None, start: int, stride: int, *, across: int) -> tuple[str, ...]:
    """Return the index and the ranks of a block, abbreviated if there are many blocks."""
    if at is None:
        return ("…",)
    low, high = start + at * stride, start + (at + 1) * stride - 1
    ranks = f"{low}" if low == high else f"{low}–{high}"
    index = f"{axis} {at}" if across < MOST_BOXES else f"{at}"
    return (index, f"ranks {ranks}" if across <= MOST_BOXES // 4 and low != high else ranks)


def _shown(size: int, index: int) -> list[int | None]:
    """Return the indices to draw; a long axis has its ends, the selected index, and dots."""
    if size <= MOST_BOXES:
        return list(range(size))
    kept = sorted({0, index, size - 1})
    shown: list[int | None] = []
    for at in kept:
        if shown and at - 1 not in shown:
            shown.append(None)
        shown.append(at)
    return shown


def _sum(mesh: RankMesh, axes: list[str], place: dict[str, int], rank: int) -> Box:
    terms = " + ".join(f"{place[axis]}·{axis_stride(mesh, axis)}" for axis in reversed(axes))
    names = " + ".join(f"{axis}·{axis_stride(mesh, axis)}" for axis in reversed(axes))
    return box_at(
        "sum",
        (f"rank = {names}", f"{terms} = {rank}"),
        (LEFT, len(axes) * ROW),
        (ACROSS - 0.06, HEIGHT),
        "neutral",
    )
