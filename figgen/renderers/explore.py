"""The common parts of interactive figures, as plain data for Plotly.

Colors are written as `var(--fig-role)`; the page's script replaces them with those of the current
palette.  Limits and ticks are those of the static picture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from figgen.renderers.scale import ScaledAxis
from figgen.theme import colour

Json: TypeAlias = dict[str, Any]

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK, MUTED, GRID, PAPER = (colour(role) for role in ("ink", "muted", "grid", "paper"))


LEGEND: Json = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
MARGIN: Json = {"l": 10, "r": 10, "t": 40, "b": 10}


class Explored(NamedTuple):
    """The traces, the layout and the frames of an interactive figure."""

    data: list[Json]
    layout: Json
    frames: Sequence[Json] = ()


def text(raw: str) -> str:
    """Escape text for Plotly, which interprets text as HTML."""
    return raw.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def lines(*raw: str) -> str:
    """Join lines of text for Plotly."""
    return "<br>".join(text(line) for line in raw if line)


def layout(height: float, more: Json) -> Json:
    """Return a plain layout: no background, no frame, a key above, margins that fit labels."""
    return {
        "template": "none",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": INK, "family": FONTS, "size": 12},
        "height": math.ceil(height),
        "hoverlabel": {"bgcolor": PAPER, "bordercolor": MUTED, "font": {"color": INK}},
        "legend": LEGEND,
        "margin": MARGIN,
        **more,
    }


def axis(scaled: ScaledAxis) -> Json:
    """Return a numeric axis with the limits and ticks of the static picture."""
    ends = [scaled.low, scaled.high]
    return {
        "type": "log" if scaled.logarithmic else "linear",
        "range": [math.log10(end) for end in ends] if scaled.logarithmic else ends,
        "tickvals": [value for value, _ in scaled.ticks],
        "ticktext": [text(shown) for _, shown in scaled.ticks],
        "title": {"text": text(scaled.label)},
        **bare({}),
    }


def bare(more: Json) -> Json:
    """Return an axis with labels and light grid lines only."""
    return {
        "zeroline": False,
        "showline": False,
        "automargin": True,
        "gridcolor": GRID,
        "ticks": "",
        "color": MUTED,
        **more,
    }


def rows(names: Sequence[str], more: Json) -> Json:
    """Return an axis of names from the top, at 0, 1, 2 …, so that equal names stay distinct."""
    return bare(
        {
            "tickvals": list(range(len(names))),
            "ticktext": [text(name) for name in names],
            "range": [len(names) - 0.5, -0.5],
            "showgrid": False,
            **more,
        }
    )


def rule(at: float, upright: bool, role: str, label: str) -> Json:
    """Return a dashed reference line across the plot with its label."""
    ends: Mapping[str, Any] = {"x0": 0, "x1": 1, "xref": "paper", "y0": at, "y1": at}
    if upright:
        ends = {"y0": 0, "y1": 1, "yref": "paper", "x0": at, "x1": at}
    # At the top of a vertical line, above the right end of a horizontal one.
    place = {"textposition": "end", "textangle": 0, "yanchor": "bottom"}
    return {
        "type": "line",
        **ends,
        "line": {"color": colour(role), "dash": "dash", "width": 1.2},
        "label": {"text": text(label), "font": {"color": INK}, **place},
    }


def arrow(start: Sequence[float], tip: Sequence[float], role: str, **more: Any) -> Json:
    """Return an arrow between two points of the data."""
    return {
        "x": tip[0],
        "y": tip[1],
        "ax": start[0],
        "ay": start[1],
        "xref": "x",
        "yref": "y",
        "axref": "x",
        "ayref": "y",
        "text": "",
        "showarrow": True,
        "arrowhead": 2,
        "arrowwidth": 1.5,
        "arrowcolor": colour(role),
        **more,
    }
