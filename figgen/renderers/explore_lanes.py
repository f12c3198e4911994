"""Timelines and rank grids as interactive figures."""

from __future__ import annotations

from collections.abc import Sequence

from figgen.charts import CommunicatorView, RankGrid, Slot, Timeline
from figgen.quantity_shown import shown
from figgen.renderers.explore import (
    INK,
    MARGIN,
    MUTED,
    Explored,
    Json,
    bare,
    layout,
    lines,
    rows,
    text,
)
from figgen.renderers.svg_grid import describe
from figgen.renderers.svg_timeline import shares, slots_of
from figgen.theme import COMMUNICATORS, CYCLE, WORK, colour, label, soft


def timeline(chart: Timeline) -> Explored:
    """Return one trace per role, so that the key can hide roles; uncovered time is idle."""
    placed = [
        (slot, offset - 0.5, part)
        for lane in range(len(chart.lanes))
        for slot, (offset, part) in zip(
            slots_of(chart, lane), shares(slots_of(chart, lane)), strict=True
        )
    ]
    present = {slot.role for slot, _, _ in placed}
    roles = [role for role in WORK if role in present]
    roles += sorted(role for role in present if role not in WORK)
    data = [_role(chart, role, [p for p in placed if p[0].role == role]) for role in roles]
    unit = "" if chart.time_unit == "1" else f" ({chart.time_unit})"
    made = layout(
        110 + 36 * len(chart.lanes),
        {
            "barmode": "overlay",
            "bargap": 0.1,
            "xaxis": bare(
                {"title": {"text": text(chart.time_label + unit)}, "range": [0, chart.end]}
            ),
            "yaxis": rows(chart.lanes, {"fixedrange": True}),
        },
    )
    return Explored(data, made)


def _role(chart: Timeline, role: str, placed: Sequence[tuple[Slot, float, float]]) -> Json:
    levels = max(slot.chunk for slot in chart.slots) or 1
    return {
        "type": "bar",
        "orientation": "h",
        "name": text(label(role)),
        "y": [slot.lane for slot, _, _ in placed],
        "base": [slot.start for slot, _, _ in placed],
        "x": [slot.end - slot.start for slot, _, _ in placed],
        "offset": [0.9 * offset for _, offset, _ in placed],
        "width": [0.9 * part for _, _, part in placed],
        "marker": {
            "color": soft(role),
            "line": {"color": colour(role), "width": 1},
            # Later virtual stages are paler, as in the static picture.
            "opacity": [1 - 0.6 * slot.chunk / levels for slot, _, _ in placed],
        },
        "text": [text(slot.label) for slot, _, _ in placed],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "constraintext": "none",
        "textfont": {"color": INK},
        "hovertext": [_hover_text(chart, slot) for slot, _, _ in placed],
        "hoverinfo": "text",
    }


def _hover_text(chart: Timeline, slot: Slot) -> str:
    if slot.detail:
        return lines(slot.detail)
    start, end = (
        shown(time, chart.time_unit, "time") if chart.time_unit == "s" else f"{time:g}"
        for time in (slot.start, slot.end)
    )
    name = f"{label(slot.role)} {slot.label}"
    return lines(chart.lanes[slot.lane], name, f"from {start} to {end}")


def grid(chart: RankGrid) -> Explored:
    """Return one square per GPU, colored by its group, with a button for every communicator."""
    nodes = sorted({cell.node for cell in chart.cells})
    columns = range(chart.gpus_per_node)
    at = {(cell.node, cell.local_rank): index for index, cell in enumerate(chart.cells)}
    table = [[at.get((node, column)) for column in columns] for node in nodes]
    hover = [[None if index is None else _cell(chart, index) for index in line] for line in table]
    first = chart.communicators[0]
    data: Json = {
        "type": "heatmap",
        "x": list(columns),
        "y": list(range(len(nodes))),
        "xgap": 4,
        "ygap": 4,
        "zmin": -0.5,
        "zmax": CYCLE - 0.5,
        "showscale": False,
        "hovertext": hover,
        "hoverinfo": "text",
        "texttemplate": "%{text}",
        "textfont": {"color": INK},
        **_coloured(chart, first, table),
    }
    made = layout(
        150 + 40 * len(nodes),
        {
            "xaxis": bare(
                {
                    "title": {"text": "GPU of the node"},
                    "dtick": 1,
                    "side": "bottom",
                    "showgrid": False,
                }
            ),
            "yaxis": rows([f"node {node}" for node in nodes], {}),
            "updatemenus": [_buttons(chart, table)],
            "annotations": [_note(chart)],
            "margin": {**MARGIN, "t": 90},
        },
    )
    return Explored([data], made)


def _cell(chart: RankGrid, index: int) -> str:
    groups = [
        f"{view.label} group {view.group_of_cell[index]} of {view.group_count:,}"
        for view in chart.communicators
    ]
    return lines(describe(chart, chart.cells[index]), *groups)


def _coloured(
    chart: RankGrid, view: CommunicatorView, table: Sequence[Sequence[int | None]]
) -> Json:
    """Return shade and text of every square for one communicator: rank, and group below."""
    axis = COMMUNICATORS[view.name]
    scale: list[list[float | str]] = []
    for shade in range(CYCLE):
        ink = f"var(--fig-{axis}-{shade})"
        scale += [[shade / CYCLE, ink], [(shade + 1) / CYCLE, ink]]

    def written(index: int) -> str:
        return f"<b>{chart.cells[index].rank}</b><br>{view.group_of_cell[index]}"

    return {
        "colorscale": scale,
        "z": [
            [None if index is None else view.group_of_cell[index] % CYCLE for index in line]
            for line in table
        ],
        "text": [["" if index is None else written(index) for index in line] for line in table],
    }


def _buttons(chart: RankGrid, table: Sequence[Sequence[int | None]]) -> Json:
    buttons = []
    for view in chart.communicators:
        changed = {key: [value] for key, value in _coloured(chart, view, table).items()}
        buttons.append({"label": text(view.label), "method": "restyle", "args": [changed]})
    return {
        "type": "buttons", "direction": "right", "buttons": buttons, "showactive": True,
        "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom", "pad": {"b": 24},
        "bgcolor": "rgba(0,0,0,0)", "bordercolor": MUTED, "font": {"color": INK},
    }  # fmt: skip


def _note(chart: RankGrid) -> Json:
    said = "In each square: the GPU’s rank, and below it the number of its group."
    if chart.multiplicity > 1:
        said += f" One of {chart.multiplicity:,} equal blocks of {chart.world_size:,} GPUs."
    return {
        "x": 0,
        "y": 1,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "text": text(said),
        "showarrow": False,
        "font": {"color": MUTED},
    }
