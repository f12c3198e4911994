"""A chart as inline SVG for a page, or as a standalone file."""

from __future__ import annotations

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
from figgen.renderers import (
    svg_bars,
    svg_diagram,
    svg_film,
    svg_grid,
    svg_overview,
    svg_steps,
    svg_table,
    svg_timeline,
)
from figgen.renderers.fluid import only_wide

FONTS = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"


def render(chart: Chart, figure_id: str) -> str:
    """The chart as one `<svg>` element; equal data and id give equal bytes.

    Every id in it starts with `figure_id`.  Its colors and its communicator switch are in
    `figgen.theme.stylesheet()`, its name and its description are the page's to give.
    """
    match chart:
        case RankGrid():
            return svg_grid.render_grid(chart)
        case Timeline():
            return svg_timeline.render_timeline(chart, figure_id)
        case Steps():
            return svg_steps.render_steps(chart)
        case Diagram():
            return svg_diagram.render_diagram(chart)
        case Table():
            return svg_table.render_table(chart)
        case Bars():
            return svg_bars.render_bars(chart, figure_id)
        case Film():
            return svg_film.render_film(chart)
        case Overview():
            return svg_overview.render_overview(chart)
        case Curves():
            # Only these need matplotlib, which a build with all pictures cached does not import.
            from figgen.renderers.svg_plot import render_curves

            return render_curves(chart, figure_id)
    raise TypeError(f"no renderer for {type(chart).__name__}")


def standalone(svg: str) -> str:
    """A rendered figure as a file: with its colors in light and dark, and fonts to look for.

    A rank grid shows its tensor-parallel groups, as on paper.
    """
    style = f"svg{{background:var(--fig-paper);font-family:{FONTS}}}{theme.embedded(svg)}"
    head, body = only_wide(svg).split(">", 1)
    namespaced = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return f"{namespaced}><style>{style}</style>{body}\n".replace(" xlink:href=", " href=")
