"""A measured file as an entry of the catalog of machines, to paste into a pull request."""

from __future__ import annotations

import re

from figgen.catalog.measured_file import MeasuredFile
from figgen.errors import InputError
from figgen.scenarios.runs.machine_rates import rates_of


def machine_name(file: MeasuredFile) -> str:
    """The entry's name: device, ranks and day, such as `nvidia-h100-80gb-hbm3-1-2026-11-27`."""
    words = re.sub(r"[^a-z0-9]+", " ", file.device.lower()).split()
    return f"{'-'.join(words)}-{file.ranks}-{file.date}"


def machine_entry(file: MeasuredFile, accelerator: str) -> str:
    """The entry as TOML; its source has the entry's own name."""
    name = machine_name(file)
    many = f", {file.ranks} ranks on {file.nodes} nodes" if file.ranks > 1 else ""
    lines = [
        f"[{name}]",
        f"title = {_quoted(file.device + many)}",
        f"device = {_quoted(file.device)}",
        *([f"accelerator = {_quoted(accelerator)}"] if accelerator else []),
        f"torch = {_quoted(file.torch)}",
        f"ranks = {file.ranks}",
        f"nodes = {file.nodes}",
        f"measured = {_quoted(rates_of(file).text)}",
        f"source = {_quoted(name)}",
        f"seen = {_quoted(file.date[:7])}",
        'confidence = "read"',
        "",
    ]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """A text as TOML has it; letters that cannot be seen become blanks."""
    plain = re.sub(r"[\x00-\x1f\x7f]", " ", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'


def machine_source(file: MeasuredFile, address: str) -> str:
    """The source as TOML.  Raises InputError for what is no address of a public file."""
    if re.fullmatch(r"https://[^\s\"\\]+", address) is None:
        expected = "the https:// address of the file, or of the pull request that has it"
        raise InputError("the address", expected=expected, got=address)
    title = _quoted(f"{file.device} measured with measure.py, {file.date}")
    return f'[{machine_name(file)}]\ntitle = {title}\nurl = "{address}"\n'


def machine_row(file: MeasuredFile, accelerator: str, address: str) -> str:
    """Entry and source with the files that they go into, to paste into a pull request."""
    entry, source = machine_entry(file, accelerator), machine_source(file, address)
    return f"# figgen/catalog/machines.toml\n{entry}\n# figgen/catalog/sources.toml\n{source}"
