"""BLOOM's layout sweep: the same hardware under a hundred layouts, with step time and memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from figgen.catalog.entry import Entry, Place
from figgen.catalog.read import parse_file, read_entry
from figgen.catalog.schema import count, flag, quantity, text

FILE = "bloom-sweep.toml"
GPUS_PER_NODE = 8

ROW_KEYS = {
    "nodes": count(1, 100, required=True),
    "tp": count(1, 8, required=True),
    "pp": count(1, 64, required=True),
    "dp": count(1, 64),
    "microbatch": count(1, 64, required=True),
    "global_batch": count(1, 10_000, unit="sequence", required=True),
    "hidden": count(1024, 100_000),
    "layers": count(1, 1000),
    "heads": count(1, 1000),
    "zero_stage": count(0, 3),
    "memory": quantity("B", "1 GB", "80 GB"),
    "step_time": quantity("s", "10 s", "1000 s"),
    "printed_flops_rate": quantity("FLOP/s", "10 TFLOP/s", "312 TFLOP/s"),
    "out_of_memory": flag(),
    "slip": text(),
}


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One row: A100 80GB, 8 to a node, sequences of 2048 tokens, full recomputation.

    `line` is where the log has it. `memory_bytes` and `step_time_s` are measured, the FLOP
    rate is printed per GPU; a row that ran out of memory has none of the three. `slip` says
    what is wrong with a row in the log.
    """

    line: int
    nodes: int
    tp: int
    pp: int
    dp: int | None
    microbatch: int
    global_batch: int
    hidden: int | None
    layers: int | None
    heads: int | None
    zero_stage: int
    memory_bytes: float | None
    step_time_s: float | None
    printed_flops_per_s: float | None
    out_of_memory: bool
    slip: str
    source: str

    @property
    def gpus(self) -> int:
        """GPUs of the row's nodes; the layout may leave a few idle."""
        return self.nodes * GPUS_PER_NODE


def read_sweep(content: str, sources: Mapping[str, str]) -> tuple[SweepRow, ...]:
    """The rows of `bloom-sweep.toml`.  Raises InputError for any fault in it."""
    tables = parse_file(FILE, content)
    for part in ("provenance", "rows"):
        if part not in tables:
            raise Place(FILE, part).fault("missing", expected="a table")
    rows = []
    for name, row in tables["rows"].items():
        place = Place(FILE, name)
        if not isinstance(row, dict):
            raise place.fault("not a row", expected="a table", got=row)
        rows.append(_row(read_entry(place, {**tables["provenance"], **row}, ROW_KEYS, sources)))
    return tuple(rows)


def _row(entry: Entry) -> SweepRow:
    line = entry.name.removeprefix("line-")
    if not line.isdigit():
        raise entry.place.fault("not a line of the log", expected='a name as "line-476"')
    layout = entry.whole("tp") * entry.whole("pp") * entry.whole("dp", 1)
    if layout > entry.whole("nodes") * GPUS_PER_NODE and "slip" not in entry.words:
        raise entry.place.fault("more ranks than GPUs", expected=f"≤ {entry.whole('nodes')} nodes")
    out_of_memory = entry.flags.get("out_of_memory", False)
    if out_of_memory == ("step_time" in entry.values):
        raise entry.place.fault("a step time, or out of memory", expected="one of them")
    return entry.fill(
        SweepRow,
        line=int(line),
        zero_stage=entry.whole("zero_stage", 1),
        memory_bytes=entry.plain("memory"),
        step_time_s=entry.plain("step_time"),
        printed_flops_per_s=entry.plain("printed_flops_rate"),
        source=f"{entry.source}, line {line}",
    )
