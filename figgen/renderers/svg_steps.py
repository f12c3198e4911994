"""A collective as small multiples: ranks are columns, chunks are rows, one frame per step."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from figgen.charts import Frame, Steps, Transfer
from figgen.renderers.fluid import NARROW, Point, moved, reflowing
from figgen.renderers.markup import COLUMN, arrow, element, figure, number, text_width, title, words
from figgen.renderers.markup import row as text_row
from figgen.renderers.svg_chunks import (
    TITLE,
    ChunkSizes,
    arrows,
    box_path,
    cells,
    final_values,
    key,
    outline,
)
from figgen.theme import colour

GUTTER, HEADING = 16, 26


def render_steps(chart: Steps) -> str:
    """Draw a `<g class="frame" data-step>` per frame, in rows below the name of their phase.

    A cell shows whose contributions are summed in it, with one mark per rank; a tick marks the
    final value.
    """
    ring = all(_is_hop(t, chart.ranks) for frame in chart.frames for t in frame.transfers)
    sizes, final = _sizes(chart, ring), final_values(chart)
    wide, narrow = (_flow(chart, sizes, limit) for limit in (COLUMN, NARROW))
    parts = []
    for step, frame in enumerate(chart.frames):
        if step in wide.headings:
            heading = words(0, 14, frame.phase, font_weight="600", class_="phase")
            tops = (0.0, wide.headings[step]), (0.0, narrow.headings[step])
            parts.append(moved(heading, *tops))
        # A row without arrows needs no room for them.
        alone = not frame.transfers and wide.frames[step][0] == 0
        drawn = _frame(chart, frame, replace(sizes, arcs=0) if alone else sizes, final, ring)
        at = wide.frames[step], narrow.frames[step]
        parts.append(moved(drawn, *at, class_="frame", data_step=step))
    last_alone = alone * sizes.arcs
    marks, bottoms = key(
        chart, final, (wide.bottom - last_alone, narrow.bottom), (wide.width, narrow.width)
    )
    body = "".join(parts) + marks
    if wide.width <= NARROW:
        return figure("steps", wide.width, bottoms[0], body)
    return reflowing("steps", (wide.width, bottoms[0]), (narrow.width, bottoms[1]), body)


class _Flow(NamedTuple):
    """The positions of frames and phase names, by step, and the total size."""

    frames: list[Point]
    headings: dict[int, float]
    width: float
    bottom: float


def _flow(chart: Steps, sizes: ChunkSizes, limit: float) -> _Flow:
    """Return frames in rows of as many as fit `limit` px; each phase begins a row."""
    wanted = max([sizes.width, *(text_width(frame.title) for frame in chart.frames)])
    across = max(1, int((limit + GUTTER) // (wanted + GUTTER)))
    frames: list[Point] = []
    headings: dict[int, float] = {}
    column, y = 0, 0.0
    for step in range(len(chart.frames)):
        heading = _starts_phase(chart, step)
        if step and (heading or column == across):
            column, y = 0, y + sizes.frame_height
        if heading:
            headings[step] = y
            y += HEADING
        frames.append((column * (wanted + GUTTER), y))
        column += 1
    width = max(x for x, _ in frames) + wanted
    return _Flow(frames, headings, max(width, min(limit, NARROW)), y + sizes.frame_height + 8)


def _is_hop(transfer: Transfer, ranks: int) -> bool:
    return (transfer.target - transfer.source) % ranks in (1, ranks - 1)


def _sizes(chart: Steps, ring: bool) -> ChunkSizes:
    cell, height, gap = (20, 18, 14) if chart.ranks <= 4 else (16, 15, 9)
    moves = [abs(t.target - t.source) for frame in chart.frames for t in frame.transfers]
    longest = 0 if ring else max(moves)
    return ChunkSizes(
        cell=cell,
        height=height,
        gap=gap,
        label=text_width(f"c{chart.chunk_count - 1}") + 4,
        stub=10 if ring else 2,
        arcs=min(30, 8 + 4 * longest) if longest else 0,
        ranks=chart.ranks,
        chunks=chart.chunk_count,
    )


def _starts_phase(chart: Steps, step: int) -> bool:
    """Return whether a new phase is named above a frame; the result belongs to the last phase."""
    frame = chart.frames[step]
    named = bool(frame.phase) and (bool(frame.transfers) or step == 0)
    return named and (step == 0 or frame.phase != chart.frames[step - 1].phase)


def _frame(
    chart: Steps, frame: Frame, sizes: ChunkSizes, final: tuple[frozenset[int], ...], ring: bool
) -> str:
    names = [(sizes.x(rank) + sizes.cell / 2, f"r{rank}") for rank in range(chart.ranks)]
    chunks = "".join(
        words(0, sizes.y(chunk) + sizes.height / 2 + 4, f"c{chunk}")
        for chunk in range(chart.chunk_count)
    )
    sent = {(t.source, chunk) for t in frame.transfers for chunk in t.chunks}
    draw = _hop if ring else _arc
    moves = "".join(
        element(
            "g",
            title(_tooltip(t)) + draw(t, sizes),
            class_="transfer",
            data_source=t.source,
            data_target=t.target,
            data_chunks=" ".join(map(str, t.chunks)),
        )
        for t in frame.transfers
    )
    head = text_row(TITLE + sizes.arcs + 13, names) + chunks
    return (
        words(0, 13, frame.title)
        + element("g", head, fill=colour("muted"))
        + cells(frame, sizes, final)
        + outline([box_path(sizes, *cell) for cell in sorted(sent)], "ink", 2)
        + moves
    )


def _tooltip(transfer: Transfer) -> str:
    chunks = ", ".join(map(str, transfer.chunks))
    verb = "added" if transfer.reduces else "copied"
    many = "chunks" if len(transfer.chunks) > 1 else "chunk"
    return f"rank {transfer.source} → rank {transfer.target}: {many} {chunks}, {verb}"


def _hop(transfer: Transfer, sizes: ChunkSizes) -> str:
    """Draw arrows between neighboring columns; at the ends of a ring, one leaves and one enters."""
    source, target = transfer.source, transfer.target
    right = (target - source) % sizes.ranks == 1
    ahead = 1 if right else -1
    lines, heads = [], []
    for chunk in transfer.chunks:
        y = sizes.y(chunk) + sizes.height / 2
        start = sizes.x(source) + (sizes.cell if right else 0)
        end = sizes.x(target) + (0 if right else sizes.cell)
        reach = sizes.gap if target == source + ahead else sizes.stub
        pieces = [(start, start + ahead * reach), (end - ahead * reach, end)]
        if target == source + ahead:
            pieces = [(start, end)]
        for begin, tip in pieces:
            lines.append(f"M{number(begin)} {number(y)}H{number(tip - ahead * 5)}")
            heads.append(arrow(begin, y, tip, y))
    return arrows(lines, heads, transfer.reduces)


def _arc(transfer: Transfer, sizes: ChunkSizes) -> str:
    """Draw an arrow over the heads of the columns; outlines below show the chunks it carries."""
    begin = sizes.x(transfer.source) + sizes.cell / 2
    tip = sizes.x(transfer.target) + sizes.cell / 2
    y = TITLE + sizes.arcs
    rise = min(sizes.arcs, 8 + 4 * abs(transfer.target - transfer.source))
    middle = (begin + tip) / 2
    line = f"M{number(begin)} {number(y)}Q{number(middle)} {number(y - 2 * rise + 6)} "
    line += f"{number(tip)} {number(y)}"
    head = arrow(middle + (tip - middle) * 0.4, y - 0.8 * rise, tip, y)
    return arrows([line], [head], transfer.reduces)
