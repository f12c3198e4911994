"""Published measurements of matmuls: the fastest on each chip, and by size."""

from __future__ import annotations

from statistics import fmean

from figgen.catalog.product_tables import Product, product_table
from figgen.charts import Axis, Column, Curves, Named, Scalar, Series, Table
from figgen.errors import InputError
from figgen.plotting.placed import headings
from figgen.plotting.series import logarithmic
from figgen.plotting.words import identifier
from figgen.registry import figure
from figgen.scenarios.runs.machine_rates import fitted_line


@figure("best-products")
def best_products(
    *, tables: tuple[str, ...] = ("best-products-bf16", "best-products-fp8")
) -> Table:
    """Every rate in published tables, with the share of the datasheet's dense peak."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    shares = []
    for name in tables:
        table = product_table(name)
        for one in table.products:
            peak = one.accelerator.peak_flops_per_s(table.format) if one.accelerator else None
            share = one.flops_per_s / peak if peak else float("nan")
            shape = " × ".join(f"{size:,}" for size in one.shape)
            rows.append(
                (
                    one.chip,
                    table.format.upper(),
                    one.flops_per_s,
                    peak or float("nan"),
                    share,
                    shape,
                )
            )
            if one.accelerator:
                shares.append(share)
                key = f"{identifier(one.accelerator.name)}_{table.format}"
                values |= {key: Named(one.flops_per_s, "FLOP/s"), f"{key}_share": Named(share)}
    values |= {
        "rows": Named(len(rows)),
        "least": Named(min(shares)),
        "most": Named(max(shares)),
        "known": Named(len(shares)),
    }
    return Table(
        columns=(
            *headings("chip", "format"),
            *headings("fastest matmul", "dense peak", unit="FLOP/s", spec="flops"),
            Column(label="share", spec=".1%"),
            Column(label="M × N × K"),
        ),
        rows=tuple(rows),
        values=values,
    )


@figure("products-by-size")
def products_by_size(*, table: str = "deepgemm-dense") -> Curves:
    """Rates of a published table over the FLOPs of a matmul, with a fitted start and rate.

    The line is fitted as for a reader's own measurements; `flat` is the mean error of the best
    single rate.
    """
    found = product_table(table)
    points = sorted(found.products, key=lambda one: one.flops)
    line = fitted_line((1.0, one.flops, one.seconds) for one in points)
    if line is None or points[0].flops == points[-1].flops:
        raise InputError("table", expected="products of several sizes", got=table)
    rate, start_s = line
    sizes = tuple(float(one.flops) for one in points)
    curve = logarithmic(sizes[0], sizes[-1])
    said = tuple(size / (start_s + size / rate) for size in curve)
    return Curves(
        x=Axis(label="work of a matmul", unit="FLOP", scale="log10"),
        y=Axis(label="rate", unit="FLOP/s", spec="flops", low=0.0),
        series=(
            Series(
                name="measured",
                x=sizes,
                y=tuple(one.flops_per_s for one in points),
                role="series-2",
                style="points",
            ),
            Series(name="a start and a rate", x=curve, y=said, role="series-1"),
        ),
        values={
            "products": Named(len(points)),
            "rate": Named(rate, "FLOP/s"),
            "start": Named(start_s, "s"),
            "error": Named(_error(points, rate, start_s)),
            "flat_error": Named(_flat_error(points)),
            "slowest": Named(min(one.flops_per_s for one in points), "FLOP/s"),
            "fastest": Named(max(one.flops_per_s for one in points), "FLOP/s"),
        },
    )


def _error(points: list[Product], rate: float, start_s: float = 0.0) -> float:
    return fmean(abs((start_s + one.flops / rate) / one.seconds - 1) for one in points)


def _flat_error(points: list[Product]) -> float:
    """Return the least mean error of any single rate.

    It is that of one of the matmuls, since the error is linear in the inverse rate between them.
    """
    return min(_error(points, other.flops_per_s) for other in points)
