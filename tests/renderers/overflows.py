"""Checks whether text fits the boxes of a diagram."""

from __future__ import annotations

from figgen.charts import Diagram
from figgen.renderers.markup import text_width
from figgen.renderers.svg_diagram import LINE, unit


def overflows(chart: Diagram) -> tuple[str, ...]:
    """Return names of boxes whose text probably overflows."""
    scale, found = unit(chart), []
    for box in chart.boxes:
        room = box.width * scale - 6
        heads = not box.frame and len(box.lines) > 1
        wide = any(
            text_width(line, bold=heads and not at) > room for at, line in enumerate(box.lines)
        )
        if wide or len(box.lines) * LINE > box.height * scale:
            found.append(box.name)
    return tuple(found)
