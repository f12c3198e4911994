"""A measured file as an entry of the catalog of machines, to paste into a pull request."""

from __future__ import annotations

import json
import re

from figgen.catalog.measured_file import MeasuredFile
from figgen.errors import InputError
from figgen.scenarios.runs.machine_rates import rates_of


def machine_name(file: MeasuredFile) -> str:
    """The entry's name: device, ranks and day, such as `nvidia-h100-80gb-hbm3-1-2026-11-27`."""
    device = re.sub(r"[^a-z0-9]+", "-", file.device.lower()).strip("-")
    return f"{device}-{file.ranks}-{file.date}"


def machine_entry(file: MeasuredFile, accelerator: str) -> str:
    """The entry as TOML; its source has the entry's own name."""
    name, (year, month, *_) = machine_name(file), file.date.split("-")
    many = f", {file.ranks} ranks on {file.nodes} nodes" if file.ranks > 1 else ""
    told = {
        "title": f"{file.device}{many}",
        "device": file.device,
        **({"accelerator": accelerator} if accelerator else {}),
        "torch": file.torch,
        "ranks": file.ranks,
        "nodes": file.nodes,
        "measured": rates_of(file).text,
        "source": name,
        "seen": f"{year}-{month}",
        "confidence": "read",
    }
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in told.items()]
    return "\n".join([f"[{name}]", *lines, ""])


def machine_source(file: MeasuredFile, address: str) -> str:
    """The source as TOML.  Raises InputError for what is no address of a public file."""
    if not re.fullmatch(r"https://[^\s\"]+", address):
        expected = "the https:// address of the file, or of the pull request that has it"
        raise InputError("--row", expected=expected, got=address)
    title = json.dumps(f"{file.device} measured with measure.py, {file.date}", ensure_ascii=False)
    return f'[{machine_name(file)}]\ntitle = {title}\nurl = "{address}"\n'
