"""Steps that readers measured, next to the prediction of the same job."""

from __future__ import annotations

from figgen.charts import Column, Named, Table
from figgen.registry import figure
from figgen.scenarios.evidence.logged_steps import logged_steps

DASH = "–"


@figure("logged-steps")
def logged_steps_table() -> Table:
    """Every measured step of the catalog: its time over the predicted one, and its source."""
    found = logged_steps()
    return Table(
        columns=(
            Column(label="job"),
            Column(label="steps timed"),
            Column(label="measured", unit="s", spec="time"),
            Column(label="predicted", unit="s", spec="time"),
            Column(label="measured over predicted", spec=".2f"),
            Column(label="peak memory", unit="B", spec="bytes"),
            Column(label="entered in"),
            Column(label="source"),
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
