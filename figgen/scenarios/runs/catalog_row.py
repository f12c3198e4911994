"""Entries of the catalog as TOML, with their source, to paste into a pull request."""

from __future__ import annotations

import re

from figgen.errors import InputError


def quoted(text: str) -> str:
    """Return a text as a TOML string, with blanks in place of invisible characters."""
    plain = re.sub(r"[\x00-\x1f\x7f]", " ", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'


def source_entry(name: str, title: str, address: str, what: str) -> str:
    """Return a source as TOML; `what` is published there.

    Raises InputError unless `address` is public.
    """
    if re.fullmatch(r"https://[^\s\"\\]+", address) is None:
        expected = f"the https:// address of {what}, or of the pull request that contains it"
        raise InputError("the address", expected=expected, got=address)
    return f'[{name}]\ntitle = {quoted(title)}\nurl = "{address}"\n'


def pasted(file: str, entry: str, source: str) -> str:
    """Return entry and source, each below the name of the catalog file it belongs in."""
    return f"# figgen/catalog/{file}\n{entry}\n# figgen/catalog/sources.toml\n{source}"
