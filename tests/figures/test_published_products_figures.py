"""Published tables of matmuls: complete, one with the catalog's chips, and a line per size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from figgen import catalog
from figgen.catalog import load
from figgen.catalog.product_tables import product_table, product_tables, read_product_tables
from figgen.errors import InputError
from figgen.figures.training.published_products import best_products, products_by_size


def test_tables_are_whole() -> None:
    rows = {name: len(table.products) for name, table in product_tables().items()}
    assert rows == {
        "best-products-bf16": 12, "best-products-fp8": 8, "deepgemm-dense": 18,
        "deepgemm-grouped": 4, "deepgemm-masked": 6,
    }  # fmt: skip


def test_chips_of_the_catalog_have_the_rates_of_the_tables() -> None:
    """Their entries cite the same source."""
    met = 0
    for name in ("best-products-bf16", "best-products-fp8"):
        table = product_table(name)
        for one in table.products:
            chip = one.accelerator
            if chip is not None:
                known = getattr(chip, f"measured_{table.format}")
                assert known is not None, (name, one.chip)
                assert known.value == one.flops_per_s, (name, one.chip)
                met += 1
    stated = [
        chip
        for chip in catalog.ACCELERATORS.values()
        for known in (chip.measured_bf16, chip.measured_fp8)
        if known and known.source.endswith("maximum achievable matmul tables")
    ]
    assert met == len(stated) >= 14


def test_shares_are_those_that_the_source_prints() -> None:
    """Efficiencies in its own column, relative to the same dense peaks."""
    shares = best_products().values
    for name, printed in {
        "a100_sxm_80gb_bf16": 0.869, "h100_sxm_80gb_bf16": 0.803, "mi300x_bf16": 0.514,
        "h100_sxm_80gb_fp8": 0.709, "b200_sxm_hgx_fp8": 0.763,
    }.items():  # fmt: skip
        assert float(shares[f"{name}_share"].value) == pytest.approx(printed, abs=0.006), name


def test_the_line_is_the_one_of_least_squares_and_half_as_wrong_as_one_rate() -> None:
    found = products_by_size()
    points = product_table("deepgemm-dense").products
    seconds = np.array([one.seconds for one in points])
    matrix = np.array([[1.0, 2.0 * np.prod(one.shape)] for one in points]) / seconds[:, None]
    (start, each), *_ = np.linalg.lstsq(matrix, np.ones(len(points)), rcond=None)
    values = {name: named.value for name, named in found.values.items()}
    assert values["start"] == pytest.approx(start)
    assert values["rate"] == pytest.approx(1 / each)
    assert values["error"] < 0.5 * values["flat_error"]
    tried = np.arange(1e14, 1.5e15, 1e12)
    flops = np.array([one.flops for one in points])
    errors = np.abs(flops / tried[:, None] / seconds - 1).mean(axis=1)
    assert values["flat_error"] == pytest.approx(errors.min(), rel=1e-3)


def read(rows: Any) -> None:
    read_product_tables(
        f'[t]\ntitle = "t"\nformat = "fp8"\nrows = {rows}\nsource = "deepgemm"\n'
        'seen = "2026-11"\nconfidence = "read"\n',
        load.sources(),
        load.accelerators(),
    )


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ('[["h100-sxm-80gb", "1x2", "1 TFLOP/s"]]', "not a shape"),
        ('[["h100-sxm-80gb", "1x2x0", "1 TFLOP/s"]]', "not a shape"),
        ('[["h100-sxm", "1x2x3", "1 TFLOP/s"]]', "h100-sxm-80gb"),
        ('[["h100-sxm-80gb", "1x2x3", "1 TB/s"]]', "FLOP"),
        ('[["h100-sxm-80gb", "1x2x3"]]', "not a row"),
        ("[]", "a list of"),
        ("3", "a list of"),
    ],
)
def test_what_is_wrong_in_a_table_is_named(rows: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(rows)


def test_unknown_tables_and_tables_of_one_size_are_refused() -> None:
    with pytest.raises(InputError, match="deepgemm-dense"):
        products_by_size(table="deepgemm-dens")
