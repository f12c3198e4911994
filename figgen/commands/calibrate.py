"""calibrate: fit the constants of the model of time on the calibration runs."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from math import log

from figgen.catalog.load import FOLDER, content
from figgen.catalog.rates import LEFT_OUT_FILE, constants, left_out_constants
from figgen.commands import Answer, Verbs, add_verb
from figgen.commands.training import aligned
from figgen.scenarios.evidence.calibrate import (
    calibrated,
    decided_by,
    device_residuals,
    left_out,
)
from figgen.scenarios.evidence.class_intervals import class_residuals
from figgen.scenarios.evidence.publishers import judged_publishers

ENTRY = re.compile(
    r"^([\w.-]+) = \{ value = [^,]+, (start = [^,}]+(?:, spread = [^,} ]+)?)[^}]*\}", re.MULTILINE
)


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "calibrate",
        _calibrate,
        "fit the constants of the model of time on the calibration runs",
        "--json",
    )
    parser.add_argument(
        "--write", action="store_true", help="write the result to rates.toml and residuals.toml"
    )
    parser.add_argument(
        "--leave-out",
        action="store_true",
        help="fit without each group of publishers in turn, and write rates-left-out.json",
    )


def _calibrate(options: argparse.Namespace) -> Answer:
    if options.leave_out:
        return _without_each_house()
    found, known = calibrated(), constants()
    if options.write:
        (FOLDER / "rates.toml").write_text(
            rewritten(content("rates.toml"), found, decided_by(found))
        )
        constants.cache_clear()
        (FOLDER / "residuals.toml").write_text(residual_text())
    head = ["constant", "fitted", "before", "guess", "moved by"]
    rows = [head] + [
        [
            name,
            f"{value:.4g}",
            f"{known[name].value:.4g}",
            f"{known[name].start:.4g}",
            f"{log(value / known[name].start) / known[name].spread:+.1f} spreads",
        ]
        for name, value in found.items()
        if known[name].spread
    ]
    return Answer(found, "\n".join(aligned(rows, left=1)))


def _without_each_house() -> Answer:
    found = left_out()
    (FOLDER / LEFT_OUT_FILE).write_text(json.dumps(found, indent=0) + "\n")
    left_out_constants.cache_clear()
    return Answer(found, f"fitted without each of {len(found)} publishers: {', '.join(found)}")


def rewritten(
    text: str, values: Mapping[str, float], decided: Mapping[str, tuple[int, float]]
) -> str:
    """Return the text of `rates.toml` with other values, and with the runs that `decided` them."""
    parts = re.split(r"^\[(\w+)\]$", text, flags=re.MULTILINE)
    lines = [parts[0]]
    for group, body in zip(parts[1::2], parts[2::2], strict=True):

        def entry(at: re.Match[str], group: str = group) -> str:
            name = f"{group}.{at[1]}"
            runs, known = decided.get(name, (0, 0.0))
            by = f", runs = {runs}, known = {known:.2g}" if name in decided else ""
            return f"{at[1]} = {{ value = {values[name]:.4g}, {at[2].strip()}{by} }}"

        lines.append(f"[{group}]{ENTRY.sub(entry, body)}")
    return "".join(lines)


def residual_text() -> str:
    """Return the text of `residuals.toml` for the constants of the catalog."""
    lines = [
        "# Measured over predicted step times by class: eight in ten runs of a publisher who had",
        "# no part in it lie between low and high. By `python -m figgen calibrate --write`.",
    ]
    for entry in [*class_residuals(judged_publishers()), device_residuals()]:
        lines += [
            f'\n["{entry.name}"]',
            f"publishers = {entry.publishers}",
            f"runs = {entry.runs}",
            f"low = {entry.low}",
            f"high = {entry.high}",
        ]
    return "\n".join(lines) + "\n"
