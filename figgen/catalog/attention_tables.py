"""Published tables of how long the attention core took, by chip, format, mask and length."""

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
"""Of all tables: Llama 3.1 70B."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionPass:
    """One row: a pass in seconds, and the rate in FLOP/s that the source prints beside it."""

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
        """Products of the core, a mask's half left out, two and a half times as many backward."""
        forward = 4.0 * self.batch * HEADS * HEAD_DIM * self.sequence**2
        return forward * (0.5 if self.causal else 1.0) * (1.0 if self.way == "forward" else 2.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionTable:
    """A table as its source prints it: `where` in its repository, with what it was run."""

    accelerator: Accelerator
    where: str
    software: str
    source: str
    passes: tuple[AttentionPass, ...]


@remembered(1)
def attention_tables() -> Mapping[str, AttentionTable]:
    """The tables by the catalog's name of their chip."""
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
    """The table of a chip; an unknown one raises InputError with the nearest."""
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
