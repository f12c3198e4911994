"""Every form that a chart takes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from figgen.charts import Chart
from figgen.renderers import plotly, svg, table, text
from tests.renderers.samples import SAMPLES

FORMS: dict[str, Callable[[Chart], str]] = {
    "svg": lambda chart: svg.render(chart, "fig"),
    "file": lambda chart: svg.standalone(svg.render(chart, "fig")),
    "text": text.render,
    "html": lambda chart: table.html(table.data_table(chart), "data"),
    "csv": lambda chart: table.csv(table.data_table(chart)),
    "plotly": plotly.render,
}


def digests() -> dict[str, str]:
    """Return the hash of every sample in every form."""
    return {
        f"{kind} as {form}": hashlib.sha256(render(chart).encode()).hexdigest()
        for kind, chart in SAMPLES.items()
        for form, render in FORMS.items()
    }
