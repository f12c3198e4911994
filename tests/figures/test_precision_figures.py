"""Figures of number formats, compared with printed limits, datasheets, and bytes
counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from figgen.charts import Bars, Curves
from figgen.registry import build
from tests.figures.reading import table, value


def test_bits_of_a_format_are_its_width() -> None:
    chart = build("format-bits", {})
    assert isinstance(chart, Bars)
    widths = [sum(lengths) for lengths in zip(*(s.lengths for s in chart.segments), strict=True)]
    # TF32 multiplies 19 of the 32 bits that it is stored in.
    assert dict(zip(chart.labels, widths, strict=True)) == {
        "FP32": 32, "TF32": 19, "BF16": 16, "FP16": 16, "FP8 E5M2": 8, "FP8 E4M3": 8,
        "FP4 E2M1": 4,
    }  # fmt: skip


def test_formats_have_the_limits_of_numpy_and_of_the_fp8_paper() -> None:
    chart = table("number-formats")
    assert value(chart, "fp16_largest") == float(np.finfo(np.float16).max)
    assert value(chart, "fp32_smallest") == float(np.finfo(np.float32).smallest_subnormal)
    assert (value(chart, "e4m3_largest"), value(chart, "e5m2_largest")) == (448, 57344)
    assert value(chart, "e2m1_largest") == 6


def test_bf16_errs_alike_everywhere_and_fp16_only_in_its_range() -> None:
    chart = build("rounding-error", {})
    assert isinstance(chart, Curves)
    lines = {series.name: dict(zip(series.x, series.y, strict=True)) for series in chart.series}
    assert set(lines["BF16"].values()) == {2.0**-8}
    assert lines["FP16"][1.0] == 2.0**-11
    # Halfway between two subnormals of 2^-24 a number of 2^-20 is off by 2^-25.
    assert lines["FP16"][2.0**-20] == 2.0**-5
    assert max(lines["FP8 E4M3"]) == 448


def test_fp16_loses_what_numpy_loses() -> None:
    for row in table("loss-scaling").rows:
        gradient = float(row[0])
        for cell, scale in zip(row[1:4], (1, 1024, 65536), strict=True):
            with np.errstate(over="ignore"):
                found = float(np.float16(gradient * scale)) / scale
            if cell == "lost":
                assert found == 0
            elif cell == "overflow":
                assert found == np.inf
            else:
                expected = abs(found / gradient - 1)
                assert float(str(cell).split("%")[0]) == pytest.approx(100 * expected, abs=6e-3)


def test_scales_cost_what_the_specifications_print() -> None:
    chart = table("block-scales")
    assert value(chart, "mxfp8_bits") == 8.25
    assert value(chart, "mxfp4_bits") == 4.25
    assert value(chart, "nvfp4_bits") == 4.5
    assert value(chart, "fp8_128_to_a_scale_over") == pytest.approx(4 / 128)


def test_outliers_ruin_a_tensor_of_fp4_and_hardly_one_of_fp8() -> None:
    chart = table("block-error")
    assert value(chart, "fp4_a_scale_per_tensor_100") == 1
    assert value(chart, "fp8_a_scale_per_tensor_100") < 0.03
    assert value(chart, "nvfp4_100") < value(chart, "mxfp4_100") < 0.3
    assert (
        value(chart, "nvfp4_1") < value(chart, "mxfp4_1") < value(chart, "fp4_a_scale_per_tensor_1")
    )


def test_dense_peaks_double_from_bf16_to_fp8_and_printed_ones_again() -> None:
    rows = {row[0]: row for row in table("peak-by-type").rows}
    # Half the width, twice the rate, wherever vendors print both, but for FP4 on B300.
    for name, (_, _, bf16, fp8, fp4, *_) in rows.items():
        assert fp8 == "–" or round(float(fp8) / float(bf16), 3) == 2, name
        assert fp4 == "–" or float(fp4) / float(fp8) == (3 if name == "B300" else 2), name
    assert rows["H100"][2] == pytest.approx(989.4e12)
    assert rows["H100"][5] == pytest.approx(2 * float(rows["H100"][3]), rel=1e-3)
    assert rows["A100"][3] == "–"
    assert [row[6] for row in rows.values() if row[6] != "–"] == pytest.approx([2] * 5, rel=1e-3)


def test_bytes_per_parameter_are_the_sums_of_the_recipes() -> None:
    chart = build("bytes-by-recipe", {"parameters": 7e9})
    assert isinstance(chart, Bars)
    printed = {"zero16": 16, "mcore18": 18, "mcore20": 20, "fp32_16": 16, "dsv3": 13, "msamp": 7}
    for name, each in printed.items():
        assert value(chart, f"{name}_each") == each
        assert value(chart, f"{name}_bytes") == each * 7e9


def test_traffic_is_what_a_rank_sends_counted_by_hand() -> None:
    chart = table("precision-traffic")
    # 20 layers × 16 microbatches × 4 all-reduces of 8192 × 8192 elements × 2·7/8 × 2 bytes.
    assert value(chart, "tp_bf16") == 20 * 16 * 4 * 8192 * 8192 * 1.75 * 2
    assert value(chart, "pp_bf16") == 16 * 2 * 8192 * 8192 * 2 / 8
    shard = 70_553_706_496 / 32
    assert value(chart, "grads_bf16") == pytest.approx(shard * 4 * 15 / 16)
    assert value(chart, "weights_usual") == pytest.approx(shard * 15 / 16)
    assert value(chart, "dispatch_bf16") == pytest.approx(4096 * 8 * 7168 * 2 * 63 / 64)


def test_faster_products_leave_the_messages_a_larger_share() -> None:
    chart = build("precision-layer-time", {})
    assert value(chart, "bf16_sent") < value(chart, "fp8_sent") < value(chart, "fp4_sent")
    assert 1 < value(chart, "fp8_faster") < value(chart, "fp8_both_faster") < 2
    attention = chart.segments[1].lengths[0]
    # Two products forward and five backward (FlashAttention-2, section 3.1), each of 2·s²·a·d and
    # half masked, over eight ranks at three fifths of 2,250 TFLOP/s.
    assert attention == pytest.approx((2 + 5) * 8192**2 * 8192 / 8 / (0.6 * 2250e12))
    h100 = build("precision-layer-time", {"preset": "h100-ndr"})
    assert "fp4_s" not in h100.values


def test_a_layouts_rounding_grows_and_a_forgotten_rank_is_there_at_once() -> None:
    chart = build("layout-drift", {"steps": 100})
    assert isinstance(chart, Curves)
    assert all(each.x[0] == 1 and each.x[-1] == 100 for each in chart.series)
    first = {name: value(chart, f"{name}_first") for name in ("fp32", "bf16", "bug", "seed")}
    last = {name: value(chart, f"{name}_last") for name in first}
    # BF16 keeps 16 bits less than FP32: a rounding is 2¹⁶ times as large.
    assert 2**12 < first["bf16"] / first["fp32"] < 2**18
    assert first["fp32"] < 2**-24 < last["fp32"] < 1e-5 * last["bug"]
    assert last["bug"] / last["seed"] == pytest.approx(1, abs=0.9)
