"""measured: what a file of measure.py says, beside the data sheet."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from figgen import catalog
from figgen.catalog.measured_file import read_measured
from figgen.commands import Answer, add_verb, file_text
from figgen.commands.training import aligned
from figgen.scenarios.measured import Rate, chip_of, own_hardware, rates
from figgen.units import format_quantity

if TYPE_CHECKING:
    from figgen.commands import Verbs

LARGEST_FILE = 2**24


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "measured",
        _measured,
        "rates that measure.py measured, as shares of the data sheet",
        "measured.json",
        "measured.json --accelerator h100-sxm-80gb --json",
    )
    parser.add_argument("file", help="as docs/tools/measure/measure.py writes it")
    parser.add_argument("--accelerator", help="the chip, where its name does not say")


def _measured(options: argparse.Namespace) -> Answer:
    file = read_measured(file_text(options.file, "measured file", LARGEST_FILE))
    name = options.accelerator or chip_of(file)
    chip = catalog.accelerator(name) if name else None
    found = rates(file, chip)
    own = own_hardware(file, chip)
    head = [f"{file.device}, {file.ranks} ranks on {file.nodes} nodes, PyTorch {file.torch}"]
    head += [f"beside the data sheet of {chip.title}" if chip else "no chip of the catalog"]
    rows = [["", "measured", "data sheet", "share"], *(_row(rate) for rate in found)]
    last = f"as the modeler's own numbers: {own.compute_efficiency:.1%} of the peak"
    data = {
        "device": file.device,
        "accelerator": name,
        "rates": [asdict(rate) | {"share": rate.share} for rate in found],
        "own": asdict(own),
    }
    return Answer(data, "\n".join([*head, *aligned(rows, left=1), last]))


def _row(rate: Rate) -> list[str]:
    peak, share = ("–", "–")
    if rate.peak:
        peak, share = format_quantity(rate.peak, rate.unit), f"{rate.share:.1%}"
    return [rate.name, format_quantity(rate.value, rate.unit), peak, share]
