"""Charts as interactive Plotly figures."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from figgen import theme
from figgen.charts import (
    Bars,
    Chart,
    Curves,
    Diagram,
    Film,
    Overview,
    RankGrid,
    Steps,
    Table,
    Timeline,
)
from figgen.errors import InputError
from figgen.renderers import explore_lanes, explore_plots, explore_states
from figgen.renderers.explore import Explored, Json
from figgen.renderers.markup import escape

# Plotly's template "none"; layouts refer to it by name, pages contain it.
NO_TEMPLATE: Json = {"data": {"scatter": [{"type": "scatter"}]}}
CONFIG = {
    "displaylogo": False,
    "modeBarButtonsToRemove": ["lasso2d", "select2d", "sendDataToCloud", "autoScale2d"],
}


def render(chart: Chart) -> str:
    """Return the figure as JSON: `data`, `layout`, `frames`, `config`; equal data, equal text.

    A test checks that Plotly's package would write the same. Its own objects, which check every
    name and value, would take twice as long.
    """
    explored = _explored(chart)
    layout = {name: value for name, value in explored.layout.items() if value not in ([], {})}
    frames = {"frames": list(explored.frames)} if explored.frames else {}
    made: Json = {
        "data": explored.data,
        "layout": {**layout, "template": NO_TEMPLATE},
        **frames,
        "config": CONFIG,
    }
    return json.dumps(
        _finite(made), sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )


def light(chart: Chart) -> str:
    """Return the figure as JSON in the light palette, which `plotly.io.from_json` reads too.

    Raises InputError for a film or an overview, which Plotly cannot draw.
    """
    if isinstance(chart, Film | Overview):
        raise InputError("a figure", expected="a chart", got=f"a {type(chart).__name__.lower()}")
    inks = theme.variables()
    return re.sub(r"var\((--[\w-]+)\)", lambda found: inks[found[1]].light, render(chart))


def document(chart: Chart, title: str) -> str:
    """Return the figure as one HTML file with Plotly in it, in the light palette.

    Plotly's package writes it. Raises InputError for a film or an overview, which Plotly cannot
    draw.
    """
    import plotly.graph_objects as go

    made = json.loads(light(chart))
    figure = go.Figure(
        data=made["data"], layout={**made["layout"], "template": "none"}, frames=made.get("frames")
    )
    page: str = figure.to_html(config=made["config"], include_plotlyjs=True, div_id=title)
    head = f'<title>{escape(title)}</title><meta name="viewport" content="width=device-width">'
    return page.replace("</head>", f"{head}</head>", 1)


def _finite(part: Any) -> Any:
    """Return a copy of a part with null for NaN and infinities, which JSON cannot represent."""
    match part:
        case float():
            return part if math.isfinite(part) else None
        case dict():
            return {name: _finite(value) for name, value in part.items()}
        case list() | tuple():
            return [_finite(value) for value in part]
    return part


def _explored(chart: Chart) -> Explored:
    match chart:
        case Curves():
            return explore_plots.curves(chart)
        case Bars():
            return explore_plots.bars(chart)
        case Timeline():
            return explore_lanes.timeline(chart)
        case RankGrid():
            return explore_lanes.grid(chart)
        case Steps():
            return explore_states.steps(chart)
        case Diagram():
            return explore_states.diagram(chart)
        case Table():
            return explore_states.table(chart)
    raise TypeError(f"no interactive figure for {type(chart).__name__}")
