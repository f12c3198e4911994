"""Accelerators and links of the catalog, or of a reader's file, which is written as the catalog's.

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

What only tells people where a number is from may be left out; `scale_up` is a bandwidth of one
direction or a link's name. An entry behaves as if it stood in the catalog: the vendor and the name
say of which generation it is, and so what software reaches on it.
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

_TOLD = {"vendor": "own", "year": 2026, "topology": "own", "kind": "scale-out"}
"""What may be left out and changes nothing, with what is taken for it."""


def named_accelerator(name: str) -> catalog.Accelerator:
    """The accelerator of the catalog, or that of a file. Raises InputError for what is neither."""
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
    """What the catalog calls an accelerator that somebody spells in another way: `RTX 4090`.

    A file's name, and what is the name of nothing, stay as they are.
    """
    return name if name.endswith(ENDINGS) else named_chip(name) or name


def named_link(name: str) -> catalog.Link:
    """The link of the catalog or of a file, or one of a rate such as `400 Gb/s per GPU`.

    Raises InputError for what is none of these, and for a rate that does not say whose it is.
    """
    if name[:1].isdigit() and name not in catalog.LINKS:
        return _rated(name)
    if not name.endswith(ENDINGS):
        return catalog.link(name)
    place, table = _table(name, "a link", "bandwidth")
    return link_of(_entry(place, table, LINK_KEYS))


def _rated(text: str) -> catalog.Link:
    """A network of which somebody says the rate, of each GPU or of each node."""
    rate, _, whose = text.partition(" per ")
    per = {"gpu": "GPU", "node": "node"}.get(whose.strip().lower())
    if per is None:
        raise InputError(
            f"network {text!r}", expected=f"{rate} per GPU, or {rate} per node", got=whose or None
        )
    place = EntryPlace(file="network", entry=text)
    return link_of(_entry(place, {"bandwidth": rate.strip(), "per": per}, LINK_KEYS))


def _entry(place: EntryPlace, table: Mapping[str, Any], keys: Keys) -> CatalogEntry:
    told = {"title": place.entry, **_TOLD}
    told = {key: value for key, value in told.items() if key in keys}
    return read_entry(place, {**told, **table}, keys, sources(), cited=False)


def _table(path: str, what: str, mark: str) -> tuple[EntryPlace, dict[str, Any]]:
    """The table of a file that has the key `mark`, or the only one that there is."""
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
    """A value without its provenance, which the catalog alone can look up."""
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
