"""Number formats: range, rounding, and the costs and savings of scales."""

from __future__ import annotations

import statistics
from typing import TypeAlias

import numpy as np

from figgen.charts import Axis, Bars, Column, Curves, Named, Scalar, Table
from figgen.errors import check_between
from figgen.formulas.data_parallel import quantization_ratio
from figgen.models.shape.number_formats import BLOCKS, FORMATS, Array, float_format
from figgen.plotting.placed import headings
from figgen.plotting.series import line, segments
from figgen.registry import figure

Row: TypeAlias = tuple[Scalar, ...]


@figure("format-bits")
def format_bits() -> Bars:
    """The bits of every format, by use."""
    found = FORMATS.values()
    parts = {
        "sign": [1.0] * len(found),
        "exponent: range": [float(each.exponent_bits) for each in found],
        "mantissa: precision": [float(each.mantissa_bits) for each in found],
    }
    values = {
        f"{name.split()[-1].lower()}_{part}": Named(bits)
        for name, each in FORMATS.items()
        for part, bits in (("exponent", each.exponent_bits), ("mantissa", each.mantissa_bits))
    }
    return Bars(
        labels=tuple(FORMATS),
        segments=segments(parts),
        axis=Axis(label="bits", low=0.0, spec=".0f"),
        values=values,
    )


@figure("number-formats")
def number_formats() -> Table:
    """Bits, largest and smallest numbers, step, and range in powers of two of every format."""
    rows: list[Row] = []
    values: dict[str, Named] = {}
    for name, found in FORMATS.items():
        octaves = np.log2(found.largest) - np.log2(found.smallest)
        layout = f"1 + {found.exponent_bits} + {found.mantissa_bits}"
        rows.append((name, found.bits, layout, found.largest, found.smallest_normal,
                     found.smallest, found.epsilon, octaves))  # fmt: skip
        key = name.split()[-1].lower()
        values |= {
            f"{key}_largest": Named(found.largest),
            f"{key}_smallest": Named(found.smallest),
            f"{key}_normal": Named(found.smallest_normal),
            f"{key}_epsilon": Named(found.epsilon),
            f"{key}_octaves": Named(float(octaves)),
        }
    columns = (
        *headings("format", "bits", "sign + exponent + mantissa"),
        Column(label="largest", spec="unit.4"),
        *headings("smallest normal", "smallest", "step after 1", spec="unit"),
        Column(label="powers of two", spec=".0f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("rounding-error", explorable=True)
def rounding_error(
    *,
    formats: tuple[str, ...] = ("BF16", "FP16", "FP8 E4M3", "FP8 E5M2", "FP4 E2M1"),
    lowest: int = -30,
    highest: int = 20,
) -> Curves:
    """Bound of the relative rounding error over a number's magnitude, without any scale.

    From 2^lowest to 2^highest. A line begins where numbers underflow and ends at the largest.
    """
    check_between("lowest", lowest, -140, 0)
    check_between("highest", highest, 1, 127)
    series, values = [], {}
    for index, name in enumerate(formats):
        found = float_format(name)
        x = [2.0**k for k in range(lowest, highest + 1) if 2.0**k <= found.largest]
        x = [each for each in x if found.relative_error_bound(each) < 1]
        y = [found.relative_error_bound(each) for each in x]
        if found.largest < 2.0**highest:
            # The bound of the last binade is highest at its start, not at the largest number.
            x.append(found.largest)
            y.append(y[-1])
        series.append(line(name, x, y, index, "dashed" if index % 2 else "line"))
        values[f"{name.split()[-1].lower()}_best"] = Named(found.epsilon / 2)
    return Curves(
        x=Axis(label="magnitude", scale="log10", spec=".0e"),
        y=Axis(label="relative error, at most", scale="log10", spec=".1%"),
        series=tuple(series),
        values=values,
    )


SHOWN = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-3, 1e-1, 1e1)


@figure("loss-scaling")
def loss_scaling(*, scales: tuple[int, ...] = (1, 1024, 65536)) -> Table:
    """Error of a gradient in FP16 with a loss scale, and in BF16.

    The relative error after dividing by the scale again; "lost" is rounded to zero.
    """
    fp16, bf16 = float_format("FP16"), float_format("BF16")
    rows: list[Row] = []
    for gradient in SHOWN:
        cells = [
            _fate(gradient, float(fp16.rounded(np.array([gradient * s]))[0]) / s) for s in scales
        ]
        rows.append(
            (gradient, *cells, _fate(gradient, float(bf16.rounded(np.array([gradient]))[0])))
        )
    columns = (
        Column(label="gradient", spec=".0e"),
        *(Column(label=f"FP16, scale {scale:,}") for scale in scales),
        Column(label="BF16"),
    )
    last = scales[-1]
    values = {
        "lost_below": Named(fp16.smallest / 2),
        "lost_below_scaled": Named(fp16.smallest / 2 / last),
        "most_scaled": Named(fp16.largest / last),
        "largest": Named(fp16.largest),
        "scale": Named(last),
    }
    return Table(columns=columns, rows=tuple(rows), values=values)


def _fate(wanted: float, found: float) -> str:
    if found == 0:
        return "lost"
    return "overflow" if np.isinf(found) else f"{abs(found / wanted - 1):.2%} off"


@figure("block-scales")
def block_scales() -> Table:
    """Bits per element of scaled formats, their scale's share of them, and the ratio to BF16."""
    rows: list[Row] = []
    values: dict[str, Named] = {}
    for name, found in BLOCKS.items():
        bits = found.bits_per_element
        over = bits / float_format(found.element).bits - 1
        scale = "E8M0" if found.scale_is_power else ("E4M3" if found.scale_bits == 8 else "FP32")
        ratio = quantization_ratio(16, bits)
        block: Scalar = found.block or "a tensor"
        rows.append((name, found.element.split()[-1], block, scale, bits, over, ratio))
        key = name.lower().replace(",", "").replace(" × ", "_").replace(" ", "_")
        values[f"{key}_bits"] = Named(bits)
        values[f"{key}_over"] = Named(over)
        values[f"{key}_ratio"] = Named(ratio)
    columns = (
        *headings("format", "element"),
        Column(label="elements per scale", spec=","),
        Column(label="scale"),
        Column(label="bits per element", spec=".5g"),
        Column(label="overhead of scales", spec=".2%"),
        Column(label="smaller than BF16 by", spec=".3g"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


def _sample(count: int, outlier: float, every: int) -> tuple[Array, Array]:
    """Return normally distributed numbers, some of them enlarged, and which are ordinary."""
    normal = statistics.NormalDist()
    # Multiples of the golden ratio fill the unit interval evenly and in no order.
    places = [(k * 0.6180339887498949) % 1.0 for k in range(1, count + 1)]
    numbers = np.array([normal.inv_cdf(place) for place in places])
    ordinary = np.arange(count) % every != every // 2
    return np.where(ordinary, numbers, numbers * outlier), ordinary


@figure("block-error")
def block_error(
    *,
    outliers: tuple[float, ...] = (1.0, 100.0, 10_000.0),
    every: int = 512,
    count: int = 16_384,
) -> Table:
    """Error of ordinary numbers, relative to their size, if one in `every` is an outlier.

    It is the root mean square over the ordinary numbers; 100% is as bad as storing zeros.
    """
    check_between("count", count, 128, 2**20)
    check_between("every", every, 2, count)
    rows: list[Row] = []
    values = {"every": Named(every), "count": Named(count)}
    for name, found in BLOCKS.items():
        if found.block > count or found.block == 128 * 128:
            continue
        row: list[Scalar] = [name, found.bits_per_element]
        key = name.lower().replace(",", "").replace(" ", "_")
        for factor in outliers:
            numbers, ordinary = _sample(count, factor, every)
            wrong = (found.rounded(numbers) - numbers)[ordinary]
            error = float(np.sqrt(np.mean(wrong**2) / np.mean(numbers[ordinary] ** 2)))
            row.append(error)
            values[f"{key}_{factor:.0f}"] = Named(error)
        rows.append(tuple(row))
    columns = (
        Column(label="format"),
        Column(label="bits per element", spec=".4g"),
        *(
            Column(label="no outliers" if f == 1 else f"outliers of {f:,.0f} times", spec=".1%")
            for f in outliers
        ),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
