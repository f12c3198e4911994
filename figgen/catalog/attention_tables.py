"""Published tables of the time of the attention core, by chip, format, mask and length."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from figgen.catalog import load
from figgen.catalog.hardware import Accelerator
from figgen.errors import unknown
from figgen.lookups import remembered

FILE = "attention-tables.json"
HEADS, HEAD_DIM = 64, 128
"""Heads and head width of all tables, which are those of Llama 3.1 70B."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionPass:
    """A row: a pass in seconds, and the rate in FLOP/s that the source prints for it."""

    format: str
    causal: bool
    batch: int
    sequence: int
    way: str
    deterministic: bool
    seconds: float
    printed_flops_per_s: float

    @property
    def flops(self) -> float:
        """FLOPs of the core's matmuls without the masked half, 2.5 times as many in backward."""
        forward = 4.0 * self.batch * HEADS * HEAD_DIM * self.sequence**2
        return forward * (0.5 if self.causal else 1.0) * (1.0 if self.way == "forward" else 2.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionTable:
    """A table as its source prints it: `where` in its repository, and the software that ran it."""

    accelerator: Accelerator
    where: str
    software: str
    source: str
    passes: tuple[AttentionPass, ...]


@remembered(1)
def attention_tables() -> Mapping[str, AttentionTable]:
    """Return the tables by the catalog's name of their chip."""
    held = json.loads(load.content(FILE))
    source = load.sources()[held["source"]]
    return {
        chip: AttentionTable(
            accelerator=load.accelerators()[chip],
            where=table["where"],
            software=table["software"],
            source=source,
            passes=tuple(_pass(row) for row in table["rows"]),
        )
        for chip, table in held["tables"].items()
    }


def attention_table(chip: str) -> AttentionTable:
    """Return the table of a chip. Raises InputError, with the nearest names, for an unknown one."""
    if chip not in attention_tables():
        raise unknown("table of attention", chip, attention_tables())
    return attention_tables()[chip]


def _pass(row: list[str | int | float | bool]) -> AttentionPass:
    name, mask, batch, sequence, way, deterministic, ms, printed = row
    return AttentionPass(
        format=str(name),
        causal=mask == "causal",
        batch=int(batch),
        sequence=int(sequence),
        way=str(way),
        deterministic=bool(deterministic),
        seconds=float(ms) / 1e3,
        printed_flops_per_s=float(printed) * 1e12,
    )
