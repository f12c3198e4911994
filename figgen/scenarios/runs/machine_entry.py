"""A measured file as an entry of the catalog of machines, to paste into a pull request."""

from __future__ import annotations

import re

from figgen.catalog.measured_file import MeasuredFile
from figgen.scenarios.runs.catalog_row import pasted, quoted, source_entry
from figgen.scenarios.runs.machine_rates import rates_of


def machine_name(file: MeasuredFile) -> str:
    """Return the entry's name, such as `nvidia-h100-80gb-hbm3-1-2026-11-27`.

    It consists of the device, the number of ranks and the day.
    """
    words = re.sub(r"[^a-z0-9]+", " ", file.device.lower()).split()
    return f"{'-'.join(words)}-{file.ranks}-{file.date}"


def machine_entry(file: MeasuredFile, accelerator: str) -> str:
    """Return the entry as TOML; its source has the same name."""
    name = machine_name(file)
    many = f", {file.ranks} ranks on {file.nodes} nodes" if file.ranks > 1 else ""
    lines = [
        f"[{name}]",
        f"title = {quoted(file.device + many)}",
        f"device = {quoted(file.device)}",
        *([f"accelerator = {quoted(accelerator)}"] if accelerator else []),
        f"torch = {quoted(file.torch)}",
        f"ranks = {file.ranks}",
        f"nodes = {file.nodes}",
        f"measured = {quoted(rates_of(file).text)}",
        f"source = {quoted(name)}",
        f"seen = {quoted(file.date[:7])}",
        'confidence = "read"',
        "",
    ]
    return "\n".join(lines)


def machine_source(file: MeasuredFile, address: str) -> str:
    """Return the source as TOML. Raises InputError unless `address` is that of a public file."""
    title = f"{file.device} measured with measure.py, {file.date}"
    return source_entry(machine_name(file), title, address, "the file")


def machine_row(file: MeasuredFile, accelerator: str, address: str) -> str:
    """Return entry and source with the files they belong in, to paste into a pull request."""
    return pasted("machines.toml", machine_entry(file, accelerator), machine_source(file, address))
