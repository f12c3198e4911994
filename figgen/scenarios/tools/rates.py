"""The rates that software attains on chips, for the live tools: columns, and differences."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

from figgen import catalog
from figgen.catalog.hardware import DTYPES
from figgen.errors import InputError
from figgen.lookups import remembered
from figgen.models.machine.layout import layout
from figgen.models.setup.training_setup import TrainingSetup
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.rates import rate_row
from figgen.scenarios.runs.software import SOFTWARE, known_software
from figgen.scenarios.runs.step_as_run import described

WIDE_HEAD = 128

OWN, PEAK = "own", "peak_flops_per_s"
OWN_PEAKS = {"bf16": 1.0, "fp16": 1.0, "fp8": 2.0, "fp4": 4.0, "tf32": 0.5}
"""Peaks of a reader's own chip as multiples of its 16-bit peak, if only that one is given."""


Row = Mapping[str, Any]
"""Rates attained on a chip in a format, by the fields of `RateRow` and of its rates."""


def attained_rows() -> dict[str, Any]:
    """Return the rates that software attains on every chip in each of its formats, as `RateRow`s.

    Rows follow the order of the catalog's chips and of their peaks. The last rows are for a
    reader's own chip, in the formats of `own`, as shares of the numbers that the reader gives.
    `columns` has all rows for the default software (`_columns`). `others` has the differences of
    other software (`_beside`), or the name of software with the same rates. Peaks are listed with
    the chips.
    """
    rows = list(_all_rows(SOFTWARE).values())
    others: dict[str, Any] = {}
    for name in known_software()[1:]:
        beside = _beside(rows, _all_rows(name))
        others[name] = next((one for one, known in others.items() if known == beside), beside)
    return {
        "usual": SOFTWARE,
        "own": list(OWN_PEAKS),
        "columns": _columns(rows),
        "others": others,
    }


def _columns(rows: list[Row]) -> dict[str, Any]:
    """Return all rows' values by field, or one value if all are equal; None if a row has none."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _column([_short(row.get(name)) for row in rows]) for name in names}


def _short(value: Any) -> Any:
    """Return 4e11 as 400000000000, the same number to JavaScript, so that JSON writes no `.0`."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _column(values: list[Any]) -> Any:
    return values[0] if values.count(values[0]) == len(values) else values


def _all_rows(software: str) -> dict[tuple[str, str], Row]:
    """Return the row of every chip and format, empty if the software cannot use the format."""
    found: dict[tuple[str, str], Row] = {}
    for chip in (*catalog.ACCELERATORS.values(), _own_chip()):
        for dtype in DTYPES:
            if getattr(chip, dtype) is not None:
                row: Row = {}
                with suppress(InputError):  # FP8 on a chip that lacks it
                    row = _row(software, chip, dtype)
                found[chip.name, dtype] = row
    return found


def _beside(usual: list[Row], rows: dict[tuple[str, str], Row]) -> dict[str, Any]:
    """Return other software's rows as columns of their distinct differences from the default.

    The difference for the H100 in BF16 comes first. `rows` has the number of each row's difference,
    or None for a format that the software cannot use.
    """
    kinds: list[Row] = []
    numbers: dict[int, int | None] = {}
    order = sorted(enumerate(rows.items()), key=lambda at: at[1][0][0] != "h100-sxm-80gb")
    for place, (_, row) in order:
        kind = _differences(row, usual[place]) if row else None
        if kind is not None and kind not in kinds:
            kinds.append(kind)
        numbers[place] = None if kind is None else kinds.index(kind)
    return {"columns": _columns(kinds), "rows": [numbers[place] for place in range(len(rows))]}


def _differences(row: Row, base: Row) -> Row:
    return {key: value for key, value in row.items() if base[key] != value}


# Larger than the number of rows for all software, so that a changed chip computes only its own.
@remembered(16_384)
def _row(software: str, chip: catalog.Accelerator, dtype: str) -> Row:
    found = rate_row(_stub(software, chip, dtype))
    rates, unit = found.rates, chip.peak_flops_per_s(dtype)
    if chip.name == OWN:
        found = replace(
            found,
            rates=replace(
                rates,
                matmul_flops_per_s=rates.matmul_flops_per_s / unit,
                plain_flops_per_s=rates.plain_flops_per_s / unit,
                expert_flops_per_s=rates.expert_flops_per_s / unit,
                attention_flops_per_s=rates.attention_flops_per_s / unit,
            ),
        )
    beside = [field.name for field in fields(found) if field.name not in ("rates", PEAK)]
    return {
        **{field.name: getattr(found.rates, field.name) for field in fields(found.rates)},
        **{name: getattr(found, name) for name in beside},
    }


def _own_chip() -> catalog.Accelerator:
    """Return a stand-in for a reader's own chip, with unit values for its numbers."""
    like = catalog.accelerator("h100-sxm-80gb")

    def one(size: float) -> catalog.Value:
        return catalog.Value(value=size, unit="1", source="", seen="", confidence="")

    peaks: dict[str, Any] = {dtype: one(peak) for dtype, peak in OWN_PEAKS.items()}
    return replace(
        like,
        name=OWN,
        vendor=OWN,
        hbm_bandwidth=one(1.0),
        measured_bf16=None,
        measured_fp8=None,
        scale_up=replace(like.scale_up, bandwidth=one(1.0)),
        scale_up_ports=1,
        **peaks,
    )


def _stub(software: str, chip: catalog.Accelerator, dtype: str) -> DescribedRun:
    return described(_dense_on_one(), chip, catalog.link("ib-ndr"), dtype, software)


@remembered(1)
def _dense_on_one() -> TrainingSetup:
    """Return a dense model with wide heads on one GPU."""
    shape = replace(catalog.model("llama-3-8b").shape, head_dim=WIDE_HEAD)
    parallel = layout(nodes=1, gpus_per_node=1)
    return TrainingSetup(shape=shape, parallel=parallel, microbatches=1, sequence=4096)
