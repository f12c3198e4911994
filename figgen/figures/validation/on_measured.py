"""Errors of predicted steps with the datasheet's rates and with those measured on such a chip."""

from __future__ import annotations

from figgen import catalog
from figgen.charts import Column, Named, Table
from figgen.registry import figure
from figgen.scenarios.evidence.on_measured import measured_errors


@figure("validation-measured-rates")
def validation_measured_rates() -> Table:
    """Mean errors of published runs without and with the rates measured on a chip of their kind.

    Each is a mean of publishers' mean errors.
    """
    found = measured_errors()
    rows, values = [], {}
    for one in found:
        chip = catalog.accelerator(one.machine.accelerator)
        part = "fitted" if one.fitted else "not fitted"
        rows.append(
            (
                chip.title,
                part,
                one.publishers,
                one.runs,
                one.datasheet,
                one.matmuls,
                one.measured,
                one.machine.source,
            )
        )
        if not one.fitted:
            name = chip.name.partition("-")[0]
            values[f"{name}_datasheet"] = Named(one.datasheet)
            values[f"{name}_measured"] = Named(one.measured)
    others = [one for one in found if not one.fitted]
    better = sum(one.measured < one.datasheet for one in others)
    return Table(
        columns=(
            Column(label="chip"),
            Column(label="publishers"),
            Column(label="number", spec=",d"),
            Column(label="runs", spec=",d"),
            Column(label="datasheet", spec=".1%"),
            Column(label="with measured matmuls", spec=".1%"),
            Column(label="with all measured rates", spec=".1%"),
            Column(label="measured by"),
        ),
        rows=tuple(rows),
        values=values | {"better": Named(better), "chips": Named(len(others))},
    )
