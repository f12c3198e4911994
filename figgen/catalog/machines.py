"""Machines that readers measured with `measure.py`, each as the line of rates that tools accept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from figgen.catalog import load
from figgen.entries.read import read_entries
from figgen.entries.schema import count, text

FILE = "machines.toml"
KEYS = {
    "title": text(required=True),
    "device": text(required=True),
    "accelerator": text(),
    "torch": text(required=True),
    "ranks": count(1, 1_000_000, required=True),
    "nodes": count(1, 100_000, required=True),
    "measured": text(required=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRow:
    """A measured machine;

    `accelerator` is empty if the chip is not in the catalog, and `measured` is the line of its
    rates.
    """

    name: str
    title: str
    device: str
    accelerator: str
    torch: str
    ranks: int
    nodes: int
    measured: str
    source: str
    seen: str


@cache
def machines() -> dict[str, MachineRow]:
    """Return all machines by name."""
    return read_machines(load.content(FILE), load.sources())


def read_machines(content: str, sources: Mapping[str, str]) -> dict[str, MachineRow]:
    """Return the entries of the file. Raises InputError for any mistake in it."""
    return {
        name: MachineRow(
            name=name,
            title=entry.words["title"],
            device=entry.words["device"],
            accelerator=entry.words.get("accelerator", ""),
            torch=entry.words["torch"],
            ranks=int(entry.values["ranks"].value),
            nodes=int(entry.values["nodes"].value),
            measured=entry.words["measured"],
            source=entry.source,
            seen=entry.seen,
        )
        for name, entry in read_entries(FILE, content, KEYS, sources).items()
    }
