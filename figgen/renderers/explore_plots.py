"""Curves and bars as interactive figures."""

from __future__ import annotations

import math
from typing import Any

from figgen.charts import Bars, Curves, Series
from figgen.renderers.curve_plan import WIDE, plan
from figgen.renderers.explore import (
    INK,
    LEGEND,
    MARGIN,
    PAPER,
    Explored,
    Json,
    axis,
    layout,
    lines,
    rows,
    rule,
    text,
)
from figgen.renderers.explore_labels import spread_labels
from figgen.renderers.scale import bar_scale, bar_totals, curve_scales, value_text
from figgen.theme import colour

DASHES = {"line": "solid", "dashed": "dash", "points": "solid", "steps": "solid"}
SYMBOLS = (
    "circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "pentagon",
)  # fmt: skip
PATTERNS = ("", "/", "\\", "|", "-", "x", "+")


def curves(chart: Curves) -> Explored:
    """Return every series with hover text, marks with their labels, and rules."""
    return _curves(chart, _mark_labels(chart))


def recomputed_curves(chart: Curves) -> Explored:
    """Return curves with labels next to their marks.

    The placing of the static picture is not printed; `spread_labels` keeps labels apart.
    """
    x, y = curve_scales(chart)
    offsets = spread_labels(chart, x, y)
    notes: list[Json] = [
        {
            "x": math.log10(mark.x) if x.logarithmic else mark.x,
            "y": math.log10(mark.y) if y.logarithmic else mark.y,
            "ax": offsets[at][0],
            "ay": offsets[at][1],
            "text": text(mark.label),
            "font": {"color": INK},
            "arrowhead": 0,
            "arrowcolor": colour(mark.role),
            "standoff": 6,
        }
        for at, mark in enumerate(chart.marks)
    ]
    return _curves(chart, notes)


def _curves(chart: Curves, notes: list[Json]) -> Explored:
    x, y = curve_scales(chart)
    roles = list(dict.fromkeys(series.role for series in chart.series))
    data = [
        _series(chart, series, SYMBOLS[roles.index(series.role) % len(SYMBOLS)])
        for series in chart.series
    ]
    upright = any(r.axis == "x" for r in chart.rules)
    rules = [rule(r.at, r.axis == "x", r.role, r.label) for r in chart.rules]
    shown = layout(
        460,
        {
            "xaxis": axis(x),
            "yaxis": axis(y),
            "shapes": rules,
            "hovermode": "closest",
            "annotations": notes,
            # Above the labels of upright rules.
            "legend": {**LEGEND, "y": 1.08 if upright else 1.02},
            "margin": {**MARGIN, "t": 64 if upright else 40},
        },
    )
    return Explored(data + ([_marks(chart)] if chart.marks else []), shown)


def _series(chart: Curves, series: Series, symbol: str) -> Json:
    hover = [
        lines(series.name, _hover_text(chart, a, b))
        for a, b in zip(series.x, series.y, strict=True)
    ]
    points = series.style == "points"
    stroke = {"dash": DASHES[series.style], "shape": "hv" if series.style == "steps" else "linear"}
    return {
        "type": "scatter",
        "name": text(series.name),
        "x": series.x,
        "y": series.y,
        "mode": "markers" if points else "lines" if series.style == "steps" else "lines+markers",
        "line": {"color": colour(series.role), "width": 2, **stroke},
        "marker": {
            "color": colour(series.role),
            "symbol": symbol,
            "size": 9 if points else 7,
            "line": {"color": PAPER, "width": 1},
            "maxdisplayed": 0 if points else 14,
        },
        "hovertext": hover,
        "hoverinfo": "text",
    }


def _hover_text(chart: Curves, a: float, b: float) -> str:
    return f"{value_text(chart.x, a)}, {value_text(chart.y, b)}"


def _marks(chart: Curves) -> Json:
    marks = chart.marks
    return {
        "type": "scatter",
        "x": [mark.x for mark in marks],
        "y": [mark.y for mark in marks],
        "mode": "markers",
        "marker": {
            "color": PAPER,
            "size": 10,
            "line": {"color": [colour(mark.role) for mark in marks], "width": 2},
        },
        "hovertext": [lines(mark.label, _hover_text(chart, mark.x, mark.y)) for mark in marks],
        "hoverinfo": "text",
        "showlegend": False,
        "cliponaxis": False,
    }


def _mark_labels(chart: Curves) -> list[Json]:
    """Return labels of marks, at the same distance and side as in the static picture."""
    if not chart.marks:
        return []
    made = plan(chart, WIDE)
    labels = made.labels[len(made.labels) - len(chart.marks) :]
    notes = []
    for mark, label in zip(chart.marks, labels, strict=True):
        x, y = made.frame.pixel(mark.x, mark.y)
        notes.append(
            {
                "x": math.log10(mark.x) if made.frame.x.logarithmic else mark.x,
                "y": math.log10(mark.y) if made.frame.y.logarithmic else mark.y,
                "ax": round((label.rect.left + label.rect.right) / 2 - x),
                "ay": round((label.rect.top + label.rect.bottom) / 2 - y),
                "text": lines(*label.lines),
                "font": {"color": INK},
                "arrowhead": 0,
                "arrowcolor": colour(mark.role) if label.leader else "rgba(0,0,0,0)",
                "standoff": 6,
            }
        )
    return notes


def bars(chart: Bars) -> Explored:
    """Return bars whose segments show their value on hover, with totals next to stacked bars."""
    x = bar_scale(chart)
    several = len(chart.segments) > 1
    data = [_segment(chart, index) for index in range(len(chart.segments))]
    thick = 40 if chart.stacked else 14 + 18 * len(chart.segments)
    notes = (
        []
        if not chart.stacked
        else [_total(chart, bar, total) for bar, total in enumerate(bar_totals(chart))]
    )
    shown = layout(
        110 + thick * len(chart.labels),
        {
            "barmode": "stack" if chart.stacked else "group",
            "bargap": 0.35,
            "xaxis": axis(x),
            "yaxis": rows(chart.labels, {}),
            "shapes": [rule(r.at, True, r.role, r.label) for r in chart.rules],
            "annotations": notes,
            "showlegend": several,
            "margin": {**MARGIN, "r": 70},
            # The first segment of a group is the topmost, as in the static picture.
            "legend": {**LEGEND, "traceorder": "normal"},
        },
    )
    return Explored(data, shown)


def _segment(chart: Bars, index: int) -> Json:
    segment = chart.segments[index]
    said = [value_text(chart.axis, length) for length in segment.lengths]
    beside = {"text": said, "textposition": "outside", "cliponaxis": False}
    return {
        "type": "bar",
        "orientation": "h",
        "name": text(segment.name),
        "x": segment.lengths,
        "y": list(range(len(chart.labels))),
        "marker": {
            "color": colour(segment.role),
            "line": {"color": PAPER, "width": 1},
            "pattern": {
                "shape": PATTERNS[index % len(PATTERNS)],
                "fillmode": "overlay",
                "fgcolor": PAPER,
                "size": 8,
            },
        },
        "hovertext": [
            lines(label, segment.name, value)
            for label, value in zip(chart.labels, said, strict=True)
        ],
        "hoverinfo": "text",
        **({"textposition": "none"} if chart.stacked else beside),
    }


def _total(chart: Bars, bar: int, total: float) -> Json:
    at: Any = math.log10(total) if chart.axis.scale != "linear" and total > 0 else total
    return {
        "x": at,
        "y": bar,
        "xanchor": "left",
        "xshift": 4,
        "showarrow": False,
        "text": text(value_text(chart.axis, total)),
        "font": {"color": INK},
    }
