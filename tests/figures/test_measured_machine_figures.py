"""The measured H100 next to its datasheet, counted from the rows of its file."""

from __future__ import annotations

import json

import pytest

from figgen.catalog import load
from figgen.charts import Table
from figgen.registry import build

FILE = json.loads(load.content("measured-h100.json"))


def test_shares_are_the_best_rows_of_the_file_over_the_datasheet() -> None:
    chart = build("measured-machine", {})
    assert isinstance(chart, Table)
    peaks = {"bf16": 989.4e12, "fp16": 989.4e12, "fp8": 1978.9e12}
    for name, peak in peaks.items():
        best = max(
            2 * row["m"] * row["n"] * row["k"] / row["seconds"]
            for row in FILE["products"]
            if row["format"] == name
        )
        share = chart.values[f"matmuls_in_{name}_share"].value
        assert share == pytest.approx(best / peak)
        assert 0.6 < share < 0.8
    copied = next(row for row in FILE["kernels"] if row["kernel"] == "copy")
    assert chart.values["memory_copy_share"].value == pytest.approx(
        copied["bytes"] / copied["seconds"] / 3.35e12
    )
    assert chart.values["device"].value == FILE["machine"]["device"]


def test_the_line_is_what_the_tools_take() -> None:
    taken = str(build("measured-machine", {}).values["taken"].value)
    assert taken.startswith("bf16-")
    assert "capacity-85.0175" in taken
