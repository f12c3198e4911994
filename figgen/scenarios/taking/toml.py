"""Reads the TOML that configurations of training jobs use: tables, values, lists and comments."""

from __future__ import annotations

from figgen.errors import InputError
from figgen.scenarios.taking.yaml import uncommented
from figgen.scenarios.texts.entry import Entry, entry
from figgen.scenarios.texts.flow import open_brackets, read_flow, scalar_text

LONG_QUOTES = ('"""', "'''")


def read_toml(text: str) -> list[Entry]:
    """Return all settings of a document, in order, under dotted names.

    Raises InputError for a line that is neither a table nor a setting.
    """
    entries: list[Entry] = []
    table = ""
    numbers: dict[str, int] = {}
    raw = text.replace("\r\n", "\n").split("\n")
    at = 0
    while at < len(raw):
        said = uncommented(raw[at]).strip()
        at += 1
        if not said:
            continue
        if said.startswith("["):
            table = _plain_key(said.strip("[] "))
            if said.startswith("[["):
                number = numbers.get(table, 0)
                numbers[table] = number + 1
                table = table + "." + str(number)
            continue
        key, sign, value = said.partition("=")
        if not sign:
            raise InputError(f"line {at} of the TOML", expected="a key and =", got=said[:60])
        name = _plain_key(key)
        path = table + "." + name if table else name
        value = value.strip()
        if value.startswith(LONG_QUOTES):
            quotes = value[:3]
            while quotes not in value[3:] and at < len(raw):
                value += "\n" + raw[at]
                at += 1
            entries.append(entry(path, value[3:].partition(quotes)[0], "config"))
        elif value[:1] in ("[", "{"):
            while open_brackets(value) > 0 and at < len(raw):
                value += "\n" + uncommented(raw[at])
                at += 1
            entries.extend(read_flow(value, path)[0])
        else:
            entries.append(entry(path, _number(scalar_text(value)), "config"))
    return entries


def _plain_key(key: str) -> str:
    return ".".join([scalar_text(part) for part in key.strip().split(".")])


def _number(text: str) -> str:
    """Return a number without the underscores that group its digits."""
    plain = text.replace("_", "")
    return plain if plain.isdigit() else text
