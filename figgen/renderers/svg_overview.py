"""A whole job in one picture: its ranks in their nodes, around the lanes of a step.

Each drawing has one path per color, so that 512 GPUs and 320 slots are some dozen elements.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from figgen.charts import Overview, RankCell, Slot
from figgen.errors import InputError
from figgen.renderers.fluid import NARROW, Drawing, fluid
from figgen.renderers.markup import COLUMN, element, number, row, text_width, words
from figgen.theme import WORK, colour, label, soft

HEAD, LANE, LANE_GAP, FUNNEL, AXIS, KEY = 20.0, 38.0, 5.0, 16.0, 26.0, 18.0
GPU, GPU_GAP, NODE_GAP, ROW_GAP, EDGE = 13.0, 1.5, 9.0, 6.0, 2.0
LEAST_GPU = 8.0
"""Width in px of a GPU, which determines the number of nodes side by side."""

Spot = tuple[float, float]


class _Block(NamedTuple):
    """The positions of one stage's nodes, in px; from `base`, rows go up or `down`."""

    nodes: tuple[int, ...]
    across: int
    wide: float
    base: float
    head: float
    down: bool

    def corner(self, node: int) -> Spot:
        """Return the top left corner of a node."""
        line, column = divmod(self.nodes.index(node), self.across)
        y = self.base + line * (GPU + ROW_GAP) if self.down else self.base - line * (GPU + ROW_GAP)
        return EDGE + column * (self.wide + NODE_GAP), y if self.down else y - GPU


def render_overview(chart: Overview) -> str:
    """Draw half of the stages above the lanes and half below, with marked ranks next to theirs.

    Raises InputError for a node with ranks of two stages.
    """
    wide, narrow = (_drawing(chart, width) for width in (COLUMN, NARROW))
    return fluid("overview", wide, narrow)


def _drawing(chart: Overview, width: float) -> Drawing:
    blocks, lanes, height = _places(chart, width)
    heads = []
    for stage, block in enumerate(blocks):
        says = f"{chart.step.lanes[stage]}: nodes {block.nodes[0]} to {block.nodes[-1]}"
        heads.append(words(EDGE, block.head, says, fill=colour("muted")))
    drawn = [
        *_funnels(chart, blocks, lanes, width),
        *_ranks(chart, blocks),
        *_marks(chart, blocks),
        *heads,
        _step(chart, lanes, width),
    ]
    key, height = _key(chart, height + 6, width)
    return Drawing(width, height, "".join(drawn) + key)


def _places(chart: Overview, width: float) -> tuple[list[_Block], list[float], float]:
    """Return the positions of each stage's nodes, each lane's y, and the total height, in px."""
    nodes = _nodes_by_stage(chart)
    least = chart.room.gpus_per_node * LEAST_GPU + NODE_GAP
    most = max(1, int((width - 2 * EDGE + NODE_GAP) // least))
    across = next(n for n in range(most, 0, -1) if len(nodes[0]) % n == 0)
    node_wide = (width - 2 * EDGE + NODE_GAP) / across - NODE_GAP
    above = math.ceil(len(nodes) / 2)
    blocks, lanes, y = [], [0.0] * len(nodes), 0.0
    for stage, members in enumerate(nodes):
        tall = math.ceil(len(members) / across) * (GPU + ROW_GAP) - ROW_GAP
        down = stage >= above
        if stage == above:
            y += FUNNEL
            for lane in range(len(nodes)):
                y += AXIS if lane == above else 0
                lanes[lane] = y
                y += LANE + (LANE_GAP if lane + 1 not in (above, len(nodes)) else 0)
            y += FUNNEL
        base = y if down else y + HEAD + tall
        head = y + tall + 16 if down else y + 13
        blocks.append(_Block(members, across, node_wide, base, head, down))
        y += HEAD + tall
    return blocks, lanes, y


def _nodes_by_stage(chart: Overview) -> list[tuple[int, ...]]:
    found: defaultdict[int, dict[int, None]] = defaultdict(dict)
    for cell, stage in zip(chart.room.cells, chart.stage_of_cell, strict=True):
        found[stage][cell.node] = None
    every = [node for members in found.values() for node in members]
    if len(every) != len(set(every)):
        raise InputError("an overview", expected="nodes of one stage each", got=sorted(every))
    return [tuple(found[stage]) for stage in sorted(found)]


def _ranks(chart: Overview, blocks: list[_Block]) -> Iterable[str]:
    """Draw all GPUs: a path for each color."""
    shapes: defaultdict[int, list[str]] = defaultdict(list)
    for cell, stage in zip(chart.room.cells, chart.stage_of_cell, strict=True):
        x, y = _place(chart, cell, blocks[stage])
        wide = number(_gpu(chart, blocks[stage]))
        box = f"M{number(x)} {number(y)}h{wide}v{number(GPU)}h-{wide}z"
        shapes[cell.coordinates[0] % 8].append(box)
    for place, boxes in sorted(shapes.items()):
        yield element("path", d="".join(boxes), class_=f"r-rank-{place}")


def _gpu(chart: Overview, block: _Block) -> float:
    return (block.wide + GPU_GAP) / chart.room.gpus_per_node - GPU_GAP


def _place(chart: Overview, cell: RankCell, block: _Block) -> Spot:
    x, y = block.corner(cell.node)
    return x + cell.local_rank * (_gpu(chart, block) + GPU_GAP), y


def _marks(chart: Overview, blocks: list[_Block]) -> Iterable[str]:
    """Draw a frame around the ranks whose step is shown."""
    for ranks, block in zip(chart.marked, blocks, strict=True):
        x, y = block.corner(chart.room.cells[ranks[0]].node)
        yield element(
            "rect",
            x=x - 2,
            y=y - 2,
            width=block.wide + 4,
            height=GPU + 4,
            rx=2,
            fill="none",
            stroke=colour("ink"),
            stroke_width=1.5,
        )


def _funnels(
    chart: Overview, blocks: list[_Block], lanes: list[float], width: float
) -> Iterable[str]:
    """Draw the connection from the marked nodes to the whole length of the lanes."""
    above = max(stage for stage, block in enumerate(blocks) if not block.down)
    for stage, edge in ((above, lanes[0]), (above + 1, lanes[-1] + LANE)):
        block = blocks[stage]
        x, y = block.corner(chart.room.cells[chart.marked[stage][0]].node)
        near = y if block.down else y + GPU
        corners = ((x, near), (x + block.wide, near), (width - EDGE, edge), (EDGE, edge))
        path = "L".join(f"{number(a)} {number(b)}" for a, b in corners)
        yield element("path", d=f"M{path}z", fill=colour("grid"))


def _step(chart: Overview, lanes: list[float], width: float) -> str:
    """Draw the lanes with their slots, a path per kind, and the axis in their middle."""
    step, scale = chart.step, (width - 2 * EDGE) / chart.step.end
    shapes: defaultdict[str, list[str]] = defaultdict(list)
    for slot in step.slots:
        shapes[slot.role].append(_slot(slot, lanes[slot.lane], scale))
    grounds = [
        element("rect", x=EDGE, y=y, width=width - 2 * EDGE, height=LANE, class_="r-idle")
        for y in lanes
    ]
    paths = [element("path", d="".join(boxes), fill=soft(role)) for role, boxes in shapes.items()]
    return "".join([*grounds, *paths]) + _axis(
        chart, lanes[math.ceil(len(lanes) / 2)] - AXIS, scale
    )


def _slot(slot: Slot, y: float, scale: float) -> str:
    wide = number((slot.end - slot.start) * scale)
    return f"M{number(EDGE + slot.start * scale)} {number(y)}h{wide}v{number(LANE)}h-{wide}z"


def _axis(chart: Overview, y: float, scale: float) -> str:
    seconds = range(int(chart.step.end) + 1)
    marks = "".join(f"M{number(EDGE + s * scale)} {number(y)}v4" for s in seconds)
    path = element("path", d=marks, stroke=colour("muted"), fill="none")
    texts = [(EDGE + s * scale, f"{s} s") for s in seconds[1:] if (chart.step.end - s) * scale > 12]
    return path + row(y + 17, texts, fill=colour("muted"))


def _key(chart: Overview, y: float, width: float) -> tuple[str, float]:
    """Draw swatches of the kinds of work and of waiting, in lines; also return where they end."""
    present = {slot.role for slot in chart.step.slots} | {"idle"}
    parts, x = [], EDGE
    for role in (role for role in WORK if role in present):
        wide = 18 + text_width(label(role))
        if x + wide > width:
            x, y = EDGE, y + KEY
        parts.append(element("rect", class_=f"r-{role}", x=x, y=y + 2, width=13, height=11))
        parts.append(words(x + 18, y + 12, label(role)))
        x += wide + 14
    return "".join(parts), y + KEY
