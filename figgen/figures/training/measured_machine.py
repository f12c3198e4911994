"""Rates that measure.py measured on a machine of the catalog, next to the datasheet."""

from __future__ import annotations

import re
from collections.abc import Mapping

from figgen import catalog
from figgen.catalog import load
from figgen.catalog.machines import machines
from figgen.catalog.measured_file import read_measured
from figgen.charts import Column, Named, Scalar, Table
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.runs.machine_answer import KINDS, rate_text
from figgen.scenarios.runs.machine_rates import rates_of
from figgen.scenarios.runs.measured_rates import read_line
from figgen.scenarios.runs.own_rates import chip_of, rates
from figgen.units import format_quantity

DASH = "–"


@figure("measured-machine")
def measured_machine(*, file: str = "measured-h100.json") -> Table:
    """The best rate of each kind in a measured file, next to the datasheet's.

    `taken` is the line of numbers that the modeler, the planner and the command line accept.
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
            *headings("what", "measured", "datasheet"),
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


BESIDE = (
    *("bf16", "attention", "masked", "contiguous", "broadcast", "strided"),
    *("loss", "adam32", "adam16"),
)
"""Parts of two measured files that are shown next to each other."""


@figure("measured-machines")
def measured_machines() -> Table:
    """What one program measured on an H100 and an H200, which differ only in their memory."""
    known = [
        rates_of(read_measured(load.content(f"measured-{name}.json"))).known
        for name in ("h100", "h200")
    ]
    chips = [catalog.accelerator(name) for name in ("h100-sxm-80gb", "h200-sxm-141gb")]
    h100, h200 = (chip.hbm_bandwidth_bytes_per_s for chip in chips)
    rows: list[tuple[Scalar, ...]] = [
        (
            "memory bandwidth, datasheet",
            *(rate_text(one, "B/s") for one in (h100, h200)),
            h200 / h100,
        )
    ]
    values = {"datasheet": Named(h200 / h100)}
    for part, title, unit in KINDS:
        if part not in BESIDE:
            continue
        ours, theirs = (one[part][0] for one in known)
        rows.append((title, rate_text(ours, unit), rate_text(theirs, unit), theirs / ours))
        values[part] = Named(theirs / ours)
    return Table(
        columns=(
            *headings("what", "H100", "H200"),
            Column(label="H200 over H100", spec=".2f"),
        ),
        rows=tuple(rows),
        values=values,
    )


def _key(name: str) -> str:
    """Return `a_layer_forward_and_backward` for `a layer, forward and backward`."""
    return re.sub(r"\W+", "_", name.lower())


@figure("measured-by-readers")
def measured_by_readers() -> Table:
    """The rates of every measured machine of the catalog, with sources."""
    rows: list[tuple[Scalar, ...]] = []
    for row in machines().values():
        known = read_line(row.measured)
        chip = catalog.accelerator(row.accelerator) if row.accelerator else None
        dtype = "bf16" if "bf16" in known else "fp16"
        peak = chip.peak_flops_per_s(dtype) if chip else None
        rows.append(
            (
                row.title,
                row.torch,
                row.seen,
                *(
                    _known(known, dtype if part == "bf16" else part, unit)
                    for part, unit in READERS.values()
                ),
                known[dtype][0] / peak if peak and dtype in known else DASH,
                row.source,
            )
        )
    return Table(
        columns=(
            *headings("machine", "PyTorch", "measured in"),
            *(Column(label=label) for label in READERS),
            Column(label="matmuls over the datasheet", spec=".1%"),
            Column(label="source"),
        ),
        rows=tuple(rows),
        values={"machines": Named(len(rows))},
    )


READERS = {
    "matmuls in 16 bits": ("bf16", "FLOP/s"),
    "attention": ("attention", "FLOP/s"),
    "memory": ("contiguous", "B/s"),
    "in the node": ("near", "B/s"),
    "between nodes": ("far", "B/s"),
}
"""What the table of machines shows of each, by heading."""


def _known(known: Mapping[str, tuple[float, ...]], part: str, unit: str) -> str:
    return rate_text(known[part][0], unit) if part in known else DASH
