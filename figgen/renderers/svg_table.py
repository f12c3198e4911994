"""A table as a drawing, for the download; the page shows HTML."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from figgen.charts import Table
from figgen.renderers.markup import element, figure, number, text_width, words
from figgen.renderers.table import Shown, shown
from figgen.theme import colour

LINE, PAD = 24, 20


def render_table(chart: Table) -> str:
    """Draw a header, a rule, and one line per row; numbers to the right, words to the left."""
    table = shown(chart)
    edges = [0.0, *accumulate(width + PAD for width in _widths(table))]
    head = _line(table, edges, table.headings, 15, "600")
    width = edges[-1] - PAD
    rule = element("path", d=f"M0 22.5H{number(width)}", stroke=colour("muted"))
    body = "".join(
        _line(table, edges, cells, 17 + LINE * at) for at, cells in enumerate(table.rows, 1)
    )
    return figure("table", width, LINE * (len(table.rows) + 1) + 4, head + rule + body)


def _widths(table: Shown) -> list[float]:
    columns = zip(table.headings, *table.rows, strict=True)
    return [
        max([text_width(heading, bold=True), *map(text_width, cells)])
        for heading, *cells in columns
    ]


def _line(
    table: Shown, edges: Sequence[float], cells: Sequence[str], y: float, weight: str | None = None
) -> str:
    return "".join(
        words(
            edges[at + 1] - PAD if right else edges[at],
            y,
            cell,
            font_weight=weight,
            text_anchor="end" if right else None,
        )
        for at, (cell, right) in enumerate(zip(cells, table.right, strict=True))
    )
