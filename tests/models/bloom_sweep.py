"""BLOOM's layout sweep, a hundred layouts on one node type, and its rows as training setups."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from figgen import catalog
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.recipes import Recipe, recipe
from figgen.units import parse_quantity
from tests.models.jobs import job

ORACLE = Path(__file__).parents[1] / "oracles" / "bloom_sweep.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRow:
    """A row; `line` is its place in the log, `slip` what is wrong with it there.

    Memory and time are measured, the FLOP rate is printed per GPU; a row that ran out of memory has
    none of the three.
    """

    line: int
    nodes: int
    tp: int
    pp: int
    microbatch: int
    global_batch: int
    dp: int | None = None
    hidden: int | None = None
    layers: int | None = None
    heads: int | None = None
    zero_stage: int = 1
    memory_bytes: float | None = None
    step_time_s: float | None = None
    printed_flops_per_s: float | None = None
    out_of_memory: bool = False
    slip: str = ""

    @property
    def gpus(self) -> int:
        """GPUs of the row's nodes; the layout may leave a few of them idle."""
        return 8 * self.nodes


MEASURED = {
    "memory": "memory_bytes", "step_time": "step_time_s",
    "printed_flops_rate": "printed_flops_per_s",
}  # fmt: skip


def _row(printed: dict[str, Any]) -> SweepRow:
    measured = {
        field: parse_quantity(printed.pop(key)).value
        for key, field in MEASURED.items()
        if key in printed
    }
    return SweepRow(**printed, **measured)


SWEEP = tuple(map(_row, json.loads(ORACLE.read_text(encoding="utf-8"))["rows"]))

# From line 906 on the log accumulates gradients in fp32 beside the bf16 ones, not sharded.
BF16 = Recipe(
    name="bloom-bf16",
    label="bf16, gradients in bf16 and fp32",
    weight_bytes=2,
    gradient_bytes=6,
    optimizer_bytes=12,
)

# Rows with a whole layout and nothing wrong in the log.
ROWS = tuple(
    row
    for row in SWEEP
    if row.layers and row.hidden and row.dp and not row.slip
    if row.tp * row.pp * row.dp == row.gpus
)


def bloom(row: SweepRow, heads: int = 64) -> TrainingSetup:
    """Return a row as a setup; DeepSpeed reduces gradients after the last backward."""
    assert row.hidden is not None
    assert row.layers is not None
    assert row.dp is not None
    shape = replace(
        catalog.model("bloom-176b").shape,
        layers=row.layers,
        hidden=row.hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=row.hidden // heads,
        ffn_hidden=4 * row.hidden,
    )
    return job(
        shape,
        nodes=row.nodes,
        tp=row.tp,
        pp=row.pp,
        microbatches=row.global_batch // (row.dp * row.microbatch),
        sequence=2048,
        microbatch_size=row.microbatch,
        recipe=BF16 if row.line >= 906 else recipe("zero16"),
        zero_stage=row.zero_stage,
        recompute="full",
        sequence_parallel=False,
        flash_attention=False,
        overlap_data_parallel=False,
    )
