"""Rates that measure.py measured on a machine of the catalog, next to the datasheet."""

from __future__ import annotations

import re

from figgen import catalog
from figgen.catalog import load
from figgen.catalog.measured_file import read_measured
from figgen.charts import Column, Named, Table
from figgen.registry import figure
from figgen.scenarios.runs.measured_rates import rates_of
from figgen.scenarios.runs.own_rates import chip_of, rates
from figgen.units import format_quantity

DASH = "–"


@figure("measured-machine")
def measured_machine(*, file: str = "measured-h100.json") -> Table:
    """The best rate of each kind in a measured file, with the datasheet's and the share of it.

    `taken` is the line of numbers that the modeler, the planner and the command line take.
    """
    machine = read_measured(load.content(file))
    name = chip_of(machine)
    chip = catalog.accelerator(name) if name else None
    found = rates(machine, chip)
    rows = tuple(
        (
            rate.name,
            format_quantity(rate.value, rate.unit),
            DASH if rate.peak is None else format_quantity(rate.peak, rate.unit),
            DASH if rate.share is None else rate.share,
        )
        for rate in found
    )
    values = {f"{_key(rate.name)}_share": Named(rate.share) for rate in found if rate.share}
    return Table(
        columns=(
            Column(label="what"),
            Column(label="measured"),
            Column(label="datasheet"),
            Column(label="share", spec=".1%"),
        ),
        rows=rows,
        values=values
        | {
            "device": Named(machine.device),
            "torch": Named(machine.torch),
            "date": Named(machine.date),
            "memory": Named(machine.memory_bytes, "B"),
            "taken": Named(rates_of(machine).text),
        },
    )


def _key(name: str) -> str:
    """`a_layer_forward_and_backward` of `a layer, forward and backward`."""
    return re.sub(r"\W+", "_", name.lower())
