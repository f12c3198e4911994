"""Collectives, diagrams and tables as interactive figures."""

from __future__ import annotations

from itertools import pairwise

from figgen.charts import Box, Diagram, Frame, Steps, Table, Transfer
from figgen.renderers.explore import (
    GRID,
    INK,
    MARGIN,
    MUTED,
    PAPER,
    Explored,
    Json,
    arrow,
    layout,
    lines,
    rows,
    text,
)
from figgen.renderers.markup import text_width
from figgen.renderers.svg_chunks import final_values
from figgen.renderers.svg_diagram import arranged, unit
from figgen.renderers.table import shown
from figgen.theme import colour, soft

LISTED = 4
"""The most contributions that a cell lists; for more it shows their number."""


def steps(chart: Steps) -> Explored:
    """Return a square per rank and chunk, arrows for messages, and a slider through the steps."""
    final = final_values(chart)
    frames = [
        {
            "name": str(number),
            "data": [_state(chart, frame, final)],
            "layout": {"annotations": _notes(chart, frame)},
        }
        for number, frame in enumerate(chart.frames)
    ]
    ranks = [f"rank {rank}" for rank in range(chart.ranks)]
    chunks = [f"chunk {chunk}" for chunk in range(chart.chunk_count)]
    across = {**rows(ranks, {}), "range": [-0.9, chart.ranks - 0.1], "side": "top"}
    made = layout(
        190 + 42 * chart.chunk_count,
        {
            "xaxis": across,
            "yaxis": rows(chunks, {}),
            "sliders": [_slider(chart)],
            "annotations": _notes(chart, chart.frames[0]),
            "margin": {**MARGIN, "t": 80},
        },
    )
    return Explored([_state(chart, chart.frames[0], final)], made, frames)


def _state(chart: Steps, frame: Frame, final: tuple[frozenset[int], ...]) -> Json:
    """Return 0 for nothing yet, 1 for a part of the sum, 2 for the final value."""
    held = [
        [frame.contents[rank][chunk] for rank in range(chart.ranks)]
        for chunk in range(chart.chunk_count)
    ]
    levels = [
        [2 if who and set(who) == final[chunk] else 1 if who else 0 for who in line]
        for chunk, line in enumerate(held)
    ]
    inks = (PAPER, soft("reference"), colour("series-1"))
    scale = [[place / 3, ink] for level, ink in enumerate(inks) for place in (level, level + 1)]
    return {
        "type": "heatmap",
        "z": levels,
        "zmin": -0.5,
        "zmax": 2.5,
        "xgap": 22,
        "ygap": 8,
        "showscale": False,
        "colorscale": scale,
        "text": [[_written(who) for who in line] for line in held],
        # Plotly writes in black or white, as the square needs.
        "texttemplate": "%{text}",
        "hovertext": [
            [lines(f"rank {rank}, chunk {chunk}", _holds(who)) for rank, who in enumerate(line)]
            for chunk, line in enumerate(held)
        ],
        "hoverinfo": "text",
    }


def _written(who: tuple[int, ...]) -> str:
    return "+".join(map(str, who)) if len(who) <= LISTED else f"{len(who)} ranks"


def _holds(who: tuple[int, ...]) -> str:
    return f"holds the contributions of {', '.join(map(str, who))}" if who else "holds nothing"


def _notes(chart: Steps, frame: Frame) -> list[Json]:
    """Return the title of a step and an arrow for every chunk that it sends."""
    said = f"{frame.title} ({frame.phase})" if frame.phase else frame.title
    head = _note(
        f"<b>{text(said)}</b>", 0, 1, xref="paper", yref="paper", xanchor="left", yanchor="bottom"
    )
    head["yshift"] = 36
    return [head, *(piece for move in frame.transfers for piece in _arrows(chart, move))]


def _arrows(chart: Steps, move: Transfer) -> list[Json]:
    """Return an arrow per chunk, bold if added; rings leave on the right, enter on the left."""
    last, source, target = chart.ranks - 1, move.source, move.target
    inset = 0.36 if target > source else -0.36
    ends = [(source + inset, target - inset)]
    if chart.ranks > 2 and {source, target} == {0, last}:
        out, back = (last + 0.36, last + 0.75), (-0.75, -0.36)
        ends = [out, back] if source == last else [back[::-1], out[::-1]]
    width = 3 if move.reduces else 1.2
    return [
        arrow((start, chunk), (tip, chunk), "ink", arrowwidth=width)
        for chunk in move.chunks
        for start, tip in ends
    ]


def _slider(chart: Steps) -> Json:
    still = {"mode": "immediate", "frame": {"duration": 0, "redraw": True},
             "transition": {"duration": 0}}  # fmt: skip
    stops = [
        {
            "label": str(number + 1),
            "method": "animate",
            "args": [[str(number)], still],
        }
        for number in range(len(chart.frames))
    ]
    return {
        "steps": stops, "active": 0, "pad": {"t": 30}, "currentvalue": {"visible": False},
        "font": {"color": INK}, "bgcolor": GRID, "activebgcolor": MUTED, "bordercolor": MUTED,
        "tickcolor": MUTED,
    }  # fmt: skip


def diagram(chart: Diagram) -> Explored:
    """Return boxes and arrows at the places of the static picture."""
    places, routes = arranged(chart, unit(chart))
    width = max([place.right for place in places.values()] + [x for r in routes for x, _ in r])
    height = max([place.bottom for place in places.values()] + [y for r in routes for _, y in r])
    shapes, notes = [], []
    for box in sorted(chart.boxes, key=lambda box: not box.frame):
        left, top, right, bottom = places[box.name]
        shapes.append(_rectangle(box, left, top, right, bottom))
        notes.append(_words(box, (left + right) / 2, top if box.frame else (top + bottom) / 2))
    for link, corners in zip(chart.links, routes, strict=True):
        path = "M" + "L".join(f"{x:.6g},{y:.6g}" for x, y in corners)
        line = {"color": colour(link.role), "width": 1.5}
        shapes.append({"type": "path", "path": path, "line": line})
        notes.append(arrow(corners[-2], corners[-1], link.role))
        if link.both_ways:
            notes.append(arrow(corners[1], corners[0], link.role))
        if link.label:
            (x0, y0), (x1, y1) = max(pairwise(corners), key=lambda p: abs(p[0][0] - p[1][0]))
            notes.append(_note(text(link.label), (x0 + x1) / 2, (y0 + y1) / 2, yanchor="bottom"))
    hidden = {"visible": False, "fixedrange": True}
    made = layout(
        height + 40,
        {
            "xaxis": {**hidden, "range": [-8, width + 8]},
            "yaxis": {**hidden, "range": [height + 8, -8], "scaleanchor": "x"},
            "shapes": shapes,
            "annotations": notes,
        },
    )
    nothing: Json = {"type": "scatter", "x": [], "y": [], "showlegend": False}
    return Explored([nothing], made)


def _rectangle(box: Box, left: float, top: float, right: float, bottom: float) -> Json:
    role = box.role or "neutral"
    fill = "rgba(0,0,0,0)" if box.frame or not box.role else soft(role)
    dash = "dash" if box.frame else "solid"
    line = {"color": colour(role), "width": int(bool(box.role)), "dash": dash}
    return {
        "type": "rect", "x0": left, "x1": right, "y0": top, "y1": bottom,
        "fillcolor": fill, "line": line,
    }  # fmt: skip


def _words(box: Box, x: float, y: float) -> Json:
    written = [text(line) for line in box.lines]
    if len(written) > 1 and not box.frame:
        written[0] = f"<b>{written[0]}</b>"
    return _note("<br>".join(written), x, y, yanchor="top" if box.frame else "middle")


def _note(said: str, x: float, y: float, **more: str) -> Json:
    return {"x": x, "y": y, "text": said, "showarrow": False, "font": {"color": INK}, **more}


def table(chart: Table) -> Explored:
    """Return the table, with headings that stay visible."""
    made = shown(chart)
    align = ["right" if right else "left" for right in made.right]
    look = {"fill": {"color": PAPER}, "font": {"color": INK}, "align": align}
    widths = [
        max([text_width(cell) for cell in column] + [text_width(heading, bold=True) / 2]) + 24
        for heading, *column in zip(made.headings, *made.rows, strict=True)
    ]
    data: Json = {
        "type": "table",
        "columnwidth": [round(width) for width in widths],
        "header": {
            "values": [f"<b>{text(heading)}</b>" for heading in made.headings],
            "line": {"color": MUTED},
            "height": 42,
            **look,
        },
        "cells": {
            "values": [[text(cell) for cell in column] for column in zip(*made.rows, strict=True)],
            "line": {"color": GRID},
            "height": 26,
            **look,
        },
    }
    return Explored([data], layout(min(640, 110 + 26 * len(made.rows)), {}))
