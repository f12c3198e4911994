"""Steps that readers measured, next to the prediction of the same job."""

from __future__ import annotations

from figgen.charts import Column, Named, Table
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.evidence.logged_steps import logged_steps

DASH = "–"


@figure("logged-steps")
def logged_steps_table() -> Table:
    """Every measured step of the catalog: its time over the predicted one, and its source."""
    found = logged_steps()
    return Table(
        columns=(
            *headings("job", "steps timed"),
            *headings("measured", "predicted", unit="s", spec="time"),
            Column(label="measured over predicted", spec=".2f"),
            Column(label="peak memory", unit="B", spec="bytes"),
            *headings("entered in", "source"),
        ),
        rows=tuple(
            (
                one.title,
                one.steps or DASH,
                one.step_time_s,
                float(one.asked.predicted.step_time_s),
                one.ratio,
                DASH if one.peak_memory_bytes is None else one.peak_memory_bytes,
                one.seen,
                one.source,
            )
            for one in found
        ),
        values={"jobs": Named(len(found))},
    )
