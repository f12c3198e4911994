"""Checks whether text fits the boxes of a diagram."""

from __future__ import annotations

from figgen.charts import Diagram
from figgen.renderers.markup import text_width, wrapped
from figgen.renderers.svg_diagram import LINE, unit


def overflows(chart: Diagram) -> tuple[str, ...]:
    """Return names of boxes whose text probably overflows."""
    scale, found = unit(chart), []
    for box in chart.boxes:
        width, lines, wide = box.width * scale, box.lines, False
        if box.role:
            heads = not box.frame and len(lines) > 1
            widths = (text_width(line, bold=heads and not at) for at, line in enumerate(lines))
            wide = any(each > width - 6 for each in widths)
        else:  # the renderer breaks these lines
            lines = tuple(part for line in lines for part in wrapped(line, width))
        if wide or len(lines) * LINE > box.height * scale:
            found.append(box.name)
    return tuple(found)
