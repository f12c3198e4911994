"""A hook for MkDocs: this site's own build, with `drawing.py` instead of its renderers.

It runs after the plug-in, which imports figgen again for each build.
"""

from __future__ import annotations

from typing import Any

from figgen.charts import Chart, payload


def draw(chart: Chart, figure_id: str) -> str:
    """Replaces `figgen.pictures.draw`; tables have no matplotlib picture."""
    if type(chart).__name__ == "Table":
        from figgen.renderers import svg

        return svg.render(chart, figure_id)
    from tests.benchmarks import drawing

    return drawing.svg(payload(chart), figure_id)


def on_config(config: Any) -> None:
    from figgen import pictures

    pictures.draw = draw
