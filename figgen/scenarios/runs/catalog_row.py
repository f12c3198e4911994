"""Entries of the catalog as TOML, with their source, to paste into a pull request."""

from __future__ import annotations

import re

from figgen.errors import InputError


def quoted(text: str) -> str:
    """A text as TOML has it; letters that cannot be seen become blanks."""
    plain = re.sub(r"[\x00-\x1f\x7f]", " ", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'


def source_entry(name: str, title: str, address: str, what: str) -> str:
    """A source as TOML; `what` is published there.

    Raises InputError for what is no address of something public.
    """
    if re.fullmatch(r"https://[^\s\"\\]+", address) is None:
        expected = f"the https:// address of {what}, or of the pull request that has it"
        raise InputError("the address", expected=expected, got=address)
    return f'[{name}]\ntitle = {quoted(title)}\nurl = "{address}"\n'


def pasted(file: str, entry: str, source: str) -> str:
    """Entry and source with the files of the catalog that they go into."""
    return f"# figgen/catalog/{file}\n{entry}\n# figgen/catalog/sources.toml\n{source}"
