"""measured: show the rates in a file of measure.py next to those of the datasheet."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from figgen import catalog
from figgen.catalog.measured_file import MeasuredFile, Row, read_measured
from figgen.commands import Answer, Verbs, add_verb, file_text
from figgen.commands.training import aligned
from figgen.scenarios.runs.machine_answer import machine_sentence
from figgen.scenarios.runs.machine_entry import machine_entry, machine_row, machine_source
from figgen.scenarios.runs.machine_rates import MeasuredRates, rates_of
from figgen.scenarios.runs.own_rates import Rate, chip_of, layer_parts_s, rates, sheet_of
from figgen.units import format_quantity

LARGEST_FILE = 2**24


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "measured",
        _measured,
        "show the rates that measure.py measured, as shares of the datasheet",
        "measured.json",
        "measured.json --accelerator h100-sxm-80gb --json",
        "measured.json --row https://github.com/me/cluster/blob/3f2a/measured.json",
    )
    parser.add_argument("file", help="the file that docs/tools/measure/measure.py wrote")
    parser.add_argument(
        "--row",
        metavar="ADDRESS",
        help="print the machine's catalog entry for a pull request; give the address of the file",
    )
    parser.add_argument(
        "--accelerator", help="the chip, if its name in the file does not identify it"
    )


def _measured(options: argparse.Namespace) -> Answer:
    file = read_measured(file_text(options.file, "measured file", LARGEST_FILE))
    name = options.accelerator or chip_of(file)
    chip = catalog.accelerator(name) if name else None
    if options.row is not None:
        entry, source = machine_entry(file, name or ""), machine_source(file, options.row)
        shown = machine_row(file, name or "", options.row)
        return Answer({"entry": entry, "source": source}, shown)
    found = rates(file, chip)
    taken = rates_of(file)
    head = [machine_sentence(file.device, taken.known, sheet_of(chip) if chip else None)]
    head += [f"{file.device}, {file.ranks} ranks on {file.nodes} nodes, PyTorch {file.torch}"]
    head += [
        f"compared with the datasheet of {chip.title}" if chip else "not a chip of the catalog"
    ]
    rows = [["", "measured", "datasheet", "share"], *(_row(rate) for rate in found)]
    checks = _checks(file, taken)
    last = [
        *(line for line, _ in checks),
        "rates for plan, step and the tools, as --measured:",
        taken.text,
    ]
    data = {
        "answer": head[0],
        "device": file.device,
        "accelerator": name,
        "rates": [asdict(rate) | {"share": rate.share} for rate in found],
        "measured": taken.text,
        "checks": [data for _, data in checks],
    }
    return Answer(data, "\n".join([*head, *aligned(rows, left=1), *last]))


def _checks(file: MeasuredFile, taken: MeasuredRates) -> list[tuple[str, dict[str, float]]]:
    """Return what isn't a rate, as lines and as data: layers, steps, host, optimizer, loss."""
    found = []
    for row in file.tables["layers"]:
        parts_s = layer_parts_s(row, taken)
        if parts_s is not None:
            measured, parts = (format_quantity(s, "s", "time") for s in (row["both_s"], parts_s))
            share = row["both_s"] / parts_s
            line = f"a layer takes {measured}, {share:.2f} times its parts at these rates ({parts})"
            found.append((line, {"layer_s": row["both_s"], "parts_s": parts_s}))
    for row in file.tables["steps"]:
        line = f"a step of {row['layers']:,.0f} layers holds {_memory(row)}"
        found.append((line, {key: row[key] for key in MEMORY}))
    for row in file.tables["training"]:
        line = (
            f"a step of {row['layers']:,.0f} layers, {row['mode']}, {STATES[row['state']]}: "
            f"{format_quantity(row['seconds'], 's', 'time')}"
        )
        line += f", {_memory(row)}" if row["peak_allocated_bytes"] else ""
        found.append((line, {"step_s": row["seconds"]} | {key: row[key] for key in MEMORY}))
    found += _costs(file)
    return found


MEMORY = ("state_bytes", "peak_allocated_bytes", "peak_reserved_bytes")
STATES = {"autocast": "weights in FP32 under autocast", "bf16": "all in BF16"}
HOST = {
    "forward": "the host launches a kernel every {} forward",
    "both": "the host launches a kernel every {} forward and backward",
    "gap": "a tiny kernel and the gap after it take {} on the device",
}


def _memory(row: Row) -> str:
    state, peak, reserved = (format_quantity(row[key], "B", "bytes") for key in MEMORY)
    return f"peak {peak}, of which {state} is state; {reserved} reserved"


def _costs(file: MeasuredFile) -> list[tuple[str, dict[str, float]]]:
    """Return the time per kernel, of the update per parameter, and of the loss per logit."""
    found = []
    for row in file.tables["host"]:
        each = row["seconds"] / row["kernels"]
        line = HOST[row["what"]].format(format_quantity(each, "s", "time"))
        found.append((line, {f"{row['what']}_kernel_s": each}))
    for row in file.tables["optimizer"]:
        each = (row["update_s"] + row["clip_s"]) / row["parameters"]
        line = (
            f"Adam in {row['format'].upper()} with clipping takes "
            f"{each * 1e12:.3g} ps per parameter"
        )
        found.append((line, {f"{row['format']}_update_s_per_parameter": each}))
    for row in file.tables["loss"]:
        each = row["seconds"] / row["tokens"] / row["vocab"]
        line = (
            f"the loss over {row['vocab']:,.0f} tokens, {row['mode']}, takes "
            f"{each * 1e12:.3g} ps per logit, forward and backward"
        )
        found.append((line, {f"{row['mode']}_{row['vocab']:.0f}_loss_s_per_logit": each}))
    return found


def _row(rate: Rate) -> list[str]:
    peak, share = ("–", "–")
    if rate.peak:
        peak, share = format_quantity(rate.peak, rate.unit), f"{rate.share:.1%}"
    return [rate.name, format_quantity(rate.value, rate.unit), peak, share]
