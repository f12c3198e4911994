"""Accelerators and links of the catalog, or of a reader's file in the catalog's format.

A file is TOML, or JSON with the same keys: a table for an accelerator, one for a link, or both.

    [my-gpu]
    hbm_capacity = "96 GB"
    hbm_bandwidth = "4 TB/s"
    bf16 = "800 TFLOP/s"
    scale_up = "600 GB/s"
    scale_up_domain = 8

    [my-network]
    bandwidth = "50 GB/s"
    per = "GPU"

Fields that only document where a number comes from may be omitted. `scale_up` is a bandwidth per
direction or the name of a link. An entry behaves as if it were in the catalog: vendor and name
determine its generation, and so what software reaches on it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from figgen import catalog
from figgen.catalog.hardware import ACCELERATOR_KEYS, LINK_KEYS, accelerator_of, link_of
from figgen.catalog.load import sources
from figgen.entries.entry import CatalogEntry
from figgen.entries.read import PROVENANCE, amount, read_entry
from figgen.entries.schema import Keys
from figgen.errors import EntryPlace, InputError
from figgen.json_text import read_json
from figgen.scenarios.runs.names import named_chip

ENDINGS = (".toml", ".json")
LARGEST = 2**20

_DEFAULTS = {"vendor": "own", "year": 2026, "topology": "own", "kind": "scale-out"}
"""Fields that may be omitted without effect, with their defaults."""


def named_accelerator(name: str) -> catalog.Accelerator:
    """Return the accelerator of the catalog or of a file. Raises InputError if it is neither."""
    if not name.endswith(ENDINGS):
        return catalog.accelerator(catalog_name(name))
    place, table = _table(name, "an accelerator", "hbm_capacity")
    links, scale_up = dict(catalog.LINKS), table.get("scale_up")
    if isinstance(scale_up, str) and scale_up[:1].isdigit():
        amount(place.at("scale_up"), scale_up, LINK_KEYS["bandwidth"])
        own = {"title": "own links", "kind": "scale-up", "per": "GPU", "bandwidth": scale_up}
        links[scale_up] = link_of(_entry(place, own, LINK_KEYS))
    return accelerator_of(_entry(place, table, ACCELERATOR_KEYS), links)


def catalog_name(name: str) -> str:
    """Return the catalog's name of an accelerator spelled differently, such as `RTX 4090`.

    The names of files, and unknown names, are returned unchanged.
    """
    return name if name.endswith(ENDINGS) else named_chip(name) or name


def named_link(name: str) -> catalog.Link:
    """Return a link of the catalog, of a file, or of a rate such as `400 Gb/s per GPU`.

    Raises InputError for anything else, and for a rate without `per GPU` or `per node`.
    """
    if name[:1].isdigit() and name not in catalog.LINKS:
        return _rated(name)
    if not name.endswith(ENDINGS):
        return catalog.link(name)
    place, table = _table(name, "a link", "bandwidth")
    return link_of(_entry(place, table, LINK_KEYS))


def _rated(text: str) -> catalog.Link:
    """Return a network with a given rate per GPU or per node."""
    rate, _, whose = text.partition(" per ")
    per = {"gpu": "GPU", "node": "node"}.get(whose.strip().lower())
    if per is None:
        raise InputError(
            f"network {text!r}", expected=f"{rate} per GPU, or {rate} per node", got=whose or None
        )
    place = EntryPlace(file="network", entry=text)
    return link_of(_entry(place, {"bandwidth": rate.strip(), "per": per}, LINK_KEYS))


def _entry(place: EntryPlace, table: Mapping[str, Any], keys: Keys) -> CatalogEntry:
    defaults = {"title": place.entry, **_DEFAULTS}
    defaults = {key: value for key, value in defaults.items() if key in keys}
    return read_entry(place, {**defaults, **table}, keys, sources(), cited=False)


def _table(path: str, what: str, mark: str) -> tuple[EntryPlace, dict[str, Any]]:
    """Return the table of a file that has the key `mark`, or its only table."""
    content = _content(path)
    tables = _tables(path, content)
    if not all(isinstance(table, dict) for table in tables.values()):
        tables = {Path(path).stem: tables}
    mine = [name for name, table in tables.items() if mark in table] or list(tables)
    if len(mine) != 1:
        raise InputError(path, expected=f"one table of {what}, with {mark}", got=", ".join(mine))
    table = {key: _bare(value) for key, value in tables[mine[0]].items() if key not in PROVENANCE}
    return EntryPlace(file=path, entry=mine[0], content=content), table


def _bare(value: object) -> object:
    """Return a value without its provenance, which only the catalog can look up."""
    if not isinstance(value, dict):
        return value
    return {key: each for key, each in value.items() if key not in PROVENANCE}


def _tables(path: str, content: str) -> dict[str, Any]:
    try:
        found = read_json(content) if path.endswith(".json") else tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(path, expected="TOML or JSON", got=str(error)) from None
    if not isinstance(found, dict) or not found:
        raise InputError(path, expected="a table with an accelerator or a link", got=content[:40])
    return found


def _content(path: str) -> str:
    file = Path(path)
    try:
        if file.stat().st_size > LARGEST:
            raise InputError(path, expected=f"at most {LARGEST:,} bytes")
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, expected="a readable text file", got=str(error)) from None
