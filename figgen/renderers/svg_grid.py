"""GPUs by node; the class names of a cell let the page's stylesheet color it by communicator."""

from __future__ import annotations

import math
from collections import defaultdict

from figgen.charts import CommunicatorView, RankCell, RankGrid
from figgen.errors import InputError, unknown
from figgen.renderers.fluid import moved, reflowing
from figgen.renderers.markup import (
    COLUMN,
    TEXT,
    element,
    escape,
    figure,
    row,
    text_width,
    title,
    words,
)
from figgen.theme import COMMUNICATORS, CYCLE, colour

CELL_HEIGHT, GAP, PAD, BETWEEN = 32, 2, 5, 8
PER_ROW = 8
NARROW_GRID = 350
TALL = 460
"""Height in px up to which nodes stay in one column, which a phone can show without scrolling."""


def render_grid(chart: RankGrid) -> str:
    """Draw a rounded box per node, a titled `<rect>` per GPU, its rank and group number inside.

    Raises InputError for a communicator without a hue in `figgen.theme.COMMUNICATORS`.
    """
    _check(chart)
    nodes: defaultdict[int, list[int]] = defaultdict(list)
    for index, cell in enumerate(chart.cells):
        nodes[cell.node].append(index)
    place = _Layout(chart)
    wide, narrow = (place.rows(len(nodes), limit) for limit in (COLUMN, NARROW_GRID))
    drawn = [
        moved(
            _node(chart, node, members, place),
            place.node(position, wide),
            place.node(position, narrow),
            class_="node",
        )
        for position, (node, members) in enumerate(sorted(nodes.items()))
    ]
    lines = _notes(chart)
    muted = "".join(
        words(0, TEXT + 16 * line, text, fill=colour("muted")) for line, text in enumerate(lines)
    )
    notes = moved(muted, (0, wide * place.pitch), (0, narrow * place.pitch))
    least = max(text_width(line) for line in lines)
    below = TEXT + 16 * len(lines) - 10
    size, slim = (
        (max(place.width(len(nodes), rows), least), rows * place.pitch + below)
        for rows in (wide, narrow)
    )
    body = "".join([*drawn, notes])
    return figure("grid", *size, body) if wide == narrow else reflowing("grid", size, slim, body)


class _Layout:
    """The positions of nodes and cells in px."""

    __slots__ = ("across", "cell", "label", "node_width", "pitch")

    def __init__(self, chart: RankGrid) -> None:
        longest = max(text_width(str(cell.rank)) for cell in chart.cells)
        self.cell = max(34.0, math.ceil(longest + 8))
        self.label = math.ceil(max(text_width(f"node {cell.node}") for cell in chart.cells)) + 8
        self.across = min(PER_ROW, chart.gpus_per_node)
        self.node_width = self.label + self.across * (self.cell + GAP) - GAP + PAD
        deep = math.ceil(chart.gpus_per_node / self.across)
        self.pitch = deep * (CELL_HEIGHT + GAP) - GAP + 2 * PAD + 6

    def rows(self, nodes: int, limit: float) -> int:
        """Return the nodes per column: all, or as few as fit `limit` px side by side."""
        fitting = max(1, int((limit + BETWEEN) // (self.node_width + BETWEEN)))
        columns = min(fitting, max(1, math.ceil(nodes * self.pitch / TALL)))
        return math.ceil(nodes / columns)

    def width(self, nodes: int, rows: int) -> float:
        return math.ceil(nodes / rows) * (self.node_width + BETWEEN) - BETWEEN

    def node(self, position: int, rows: int) -> tuple[float, float]:
        """Top left corner of a node: down the first column, then the next, as in a rack."""
        column, line = divmod(position, rows)
        return column * (self.node_width + BETWEEN), line * self.pitch

    def within(self, local_rank: int) -> tuple[float, float]:
        """Return the top left corner of a cell in its node."""
        line, column = divmod(local_rank, self.across)
        return self.label + column * (self.cell + GAP), PAD + line * (CELL_HEIGHT + GAP)


def _node(chart: RankGrid, node: int, members: list[int], place: _Layout) -> str:
    height = place.pitch - 6
    box = element(
        "rect",
        x=0.5,
        y=0.5,
        width=place.node_width - 1,
        height=height - 1,
        rx=6,
        fill="none",
        stroke=colour("grid"),
    )
    name = words(6, PAD + 20, f"node {node}", fill=colour("muted"))
    cells = "".join(_cell(chart, index, place) for index in members)
    parts = [box, name, element("g", cells, class_="cells")]
    lines: defaultdict[int, list[int]] = defaultdict(list)
    for index in members:
        lines[chart.cells[index].local_rank // place.across].append(index)
    for line in lines.values():
        parts += _numbers(chart, line, place)
    return "".join(parts)


def _cell(chart: RankGrid, index: int, place: _Layout) -> str:
    cell = chart.cells[index]
    x, y = place.within(cell.local_rank)
    classes = " ".join(
        f"{view.name}-{view.group_of_cell[index] % CYCLE}" for view in chart.communicators
    )
    return element(
        "rect",
        title(describe(chart, cell)),
        class_=classes,
        x=x + 0.5,
        y=y + 0.5,
        width=place.cell - 1,
        height=CELL_HEIGHT - 1,
        rx=4,
    )


def describe(chart: RankGrid, cell: RankCell) -> str:
    """Return a cell in words: its rank, its place and its coordinates."""
    pairs = zip(chart.axes, cell.coordinates, strict=True)
    where = [f"rank {cell.rank}", f"node {cell.node}", f"GPU {cell.local_rank}"]
    return " · ".join([*where, *(f"{axis} {value}" for axis, value in pairs)])


def _numbers(chart: RankGrid, members: list[int], place: _Layout) -> list[str]:
    """Draw ranks, and below them each communicator's group numbers, of which one row is shown."""
    corners = [place.within(chart.cells[index].local_rank) for index in members]
    centres = [x + place.cell / 2 for x, _ in corners]
    top = corners[0][1]
    ranks = [str(chart.cells[index].rank) for index in members]
    rows = [row(top + 13.5, zip(centres, ranks, strict=True), class_="ranks", font_weight="600")]
    for view in chart.communicators:
        groups = [str(view.group_of_cell[index]) for index in members]
        rows.append(row(top + 27, zip(centres, groups, strict=True), class_=f"of of-{view.name}"))
    return rows


def _notes(chart: RankGrid) -> list[str]:
    lines = ["Upper number: rank.  Lower number: group."]
    if chart.multiplicity > 1:
        blocks, world = f"{chart.multiplicity:,}", f"{chart.world_size:,}"
        lines.append(f"× {blocks} such blocks, {world} GPUs in all.")
    return lines


def _check(chart: RankGrid) -> None:
    for view in chart.communicators:
        if view.name not in COMMUNICATORS:
            raise unknown("communicator", view.name, COMMUNICATORS)
        if len(view.group_of_cell) != len(chart.cells):
            raise InputError(
                f"groups of communicator {view.name!r}",
                expected=f"one per cell, {len(chart.cells)}",
                got=len(view.group_of_cell),
            )


def controls(chart: RankGrid, figure_id: str) -> str:
    """Return HTML radio buttons for the communicator; the stylesheet does the rest.

    They must precede the drawing's `<div class="fig-scroll">`, in the same element.
    """
    name = f"{figure_id}-comm"
    chosen = [_choice(name, view, first=not at) for at, view in enumerate(chart.communicators)]
    none = f'<label><input type="radio" name="{escape(name)}" value="none"> none'
    return (
        '<fieldset class="fig-controls"><legend>Color the groups of</legend>'
        f"{''.join(chosen)}{none}</label></fieldset>"
    )


def _choice(name: str, view: CommunicatorView, *, first: bool) -> str:
    groups = "1 group" if view.group_count == 1 else f"{view.group_count:,} groups"
    note = f' title="{escape(view.note)}"' if view.note else ""
    return (
        f'<label{note}><input type="radio" name="{escape(name)}" '
        f'value="{view.name}"{" checked" if first else ""}> '
        f"{escape(view.label)} <small>{groups} of {view.size:,}</small></label>"
    )
