"""What a launcher sets, and the bounds of first checks, compared with torch and datasheets."""

from __future__ import annotations

import pytest

from figgen.charts import Table
from figgen.errors import InputError
from figgen.registry import build


def test_torchrun_counts_ranks_node_by_node() -> None:
    """RANK = GROUP_RANK · LOCAL_WORLD_SIZE + LOCAL_RANK if all nodes start the same number."""
    table = build("process-environment", {"nodes": 3, "gpus_per_node": 4, "cores_per_node": 64})
    assert isinstance(table, Table)
    named = [dict(zip((c.label for c in table.columns), row, strict=True)) for row in table.rows]
    assert [row["RANK"] for row in named] == [0, 3, 8, 11]
    for row in named:
        assert row["RANK"] == row["GROUP_RANK"] * row["LOCAL_WORLD_SIZE"] + row["LOCAL_RANK"]
        assert row["WORLD_SIZE"] == 12
    assert [row["its cores"] for row in named] == ["0–15", "48–63", "0–15", "48–63"]


def test_cores_that_the_gpus_do_not_divide_are_refused() -> None:
    with pytest.raises(InputError, match="cores_per_node: expected a multiple of 8, got 100"):
        build("process-environment", {"cores_per_node": 100})


def test_a_healthy_h100_node_shows_what_its_datasheets_promise() -> None:
    """NVIDIA's DGX H100: 900 GB/s of NVLink in both directions, eight 400 Gb/s ports, 3.35 TB/s of
    HBM3."""
    table = build("first-minutes", {})
    assert isinstance(table, Table)
    assert table.values["inside"].value == 900e9 / 2
    assert table.values["one_adapter"].value == 400e9 / 8
    assert table.values["between"].value == 8 * 400e9 / 8
    assert [str(row[2]).replace("\xa0", " ") for row in table.rows[1:3]] == [
        "794 TFLOP/s",
        "3.35 TB/s",
    ]


def test_a_rate_per_node_is_not_multiplied() -> None:
    table = build("first-minutes", {"network": "efa-v2-p5", "accelerator": "h100-sxm-80gb"})
    assert isinstance(table, Table)
    assert table.values["between"].value == 8 * float(table.values["one_adapter"].value)


def test_a_chip_that_nobody_measured_is_refused() -> None:
    with pytest.raises(InputError, match="a chip with a measured matmul"):
        build("first-minutes", {"accelerator": "tpu-v6e"})
