"""Whether the text of a diagram's boxes has room in them."""

from __future__ import annotations

from figgen.charts import Diagram
from figgen.renderers.markup import text_width
from figgen.renderers.svg_diagram import LINE, unit


def overflows(chart: Diagram) -> tuple[str, ...]:
    """Names of boxes whose text is likely to stick out."""
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
