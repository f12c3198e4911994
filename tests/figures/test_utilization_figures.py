"""Utilization compared with what the papers print."""

from __future__ import annotations

import pytest

from figgen.catalog import RUNS
from figgen.charts import Curves
from figgen.errors import InputError
from figgen.figures.training.utilization import (
    LOSSES,
    mfu_conventions,
    mfu_printed,
    published_scaling,
    wall_shares,
)
from figgen.quantity_shown import NBSP
from figgen.registry import build
from figgen.scenarios.evidence.measured import measured_runs


def test_conventions_give_back_the_printed_mfu_and_hfu_of_korthikanti() -> None:
    """Table 5 of the paper: 175B with both techniques, MFU 51.4% and HFU 52.8%."""
    values = mfu_conventions().values
    assert values["params_attention"].value == pytest.approx(0.514, abs=5e-4)
    assert values["hfu_selective_korthikanti"].value == pytest.approx(0.528, abs=5e-4)


def test_run_without_throughput_is_refused() -> None:
    with pytest.raises(InputError, match="throughput"):
        mfu_conventions(run="mcore24-177b")


def test_every_printed_mfu_comes_out_by_one_of_the_two_counts() -> None:
    assert mfu_printed().values["worst_gap"].value < 0.002


def test_shares_of_every_wall_add_up_to_one() -> None:
    chart = wall_shares()
    for bar in range(len(LOSSES)):
        assert sum(part.lengths[bar] for part in chart.segments) == pytest.approx(1, abs=1e-9)
        assert min(part.lengths[bar] for part in chart.segments) >= 0


def test_kernels_below_the_peak_cost_most_everywhere_as_the_caption_says() -> None:
    _work, *losses = wall_shares().segments
    for shares in zip(*(part.lengths for part in losses), strict=True):
        assert shares[0] == max(shares), losses[0].name
    assert losses[0].name.startswith("lost: kernels")


def test_a_share_of_the_peak_names_the_peak() -> None:
    rows = {row[0]: row[2] for row in mfu_printed().rows}
    assert rows["DeepSeek-V3, 2048 H800"] == f"BF16, 989{NBSP}TFLOP/s"
    assert rows["Llama 3.1 405B, 512 H100, FP8 (MLPerf v5.0)"] == f"FP8, 1.98{NBSP}PFLOP/s"
    for each in published_scaling().series:
        assert each.name.endswith(" peak)")


def test_megascale_keeps_what_its_table_2_prints() -> None:
    """Megatron-LM at a batch of 768: 53.0% on 256 GPUs, 44.7% on 1,024."""
    values = published_scaling().values
    assert values["factor_1"].value == 4
    assert values["kept_1"].value == pytest.approx(44.7 / 53.0, rel=0.005)


def test_both_published_series_scale_strongly_and_weak_scaling_costs_a_hundredth() -> None:
    """MLCommons v5.0: 1,152 sequences on 512 GPUs, 1,536 on 8,192. DGX Cloud: two per GPU."""
    values = published_scaling().values
    assert (values["batch_1"].value, values["batch_2"].value) == (1, pytest.approx(1536 / 1152))
    assert values["factor_2"].value == 16
    runs = {run.name: run for run in measured_runs()}
    small, large = (
        runs[f"dgxc-v24.11.1-gpt3-175b-h100-bf16-{size}"] for size in ("g128-b256", "g2048-b4096")
    )
    assert small.global_batch / small.gpus == large.global_batch / large.gpus == 2
    assert small.step_time_s is not None
    assert large.step_time_s is not None
    assert large.step_time_s / small.step_time_s == pytest.approx(1.01, abs=0.005)


def test_twice_the_gpus_are_how_far_nine_tenths_of_the_mfu_were_kept() -> None:
    """The goal on the page: Table 2 has 53.0% on 256, 49.9% on 512 and 46.7% on 768."""
    kept = dict(zip(published_scaling().series[0].x, published_scaling().series[0].y, strict=True))
    first = kept[256]
    assert kept[512] / first > 0.9 > kept[768] / first


def test_every_run_with_a_rate_and_a_size_is_a_point_and_says_of_which_peak_and_how_known() -> None:
    chart = build("mfu-by-gpus", {})
    assert isinstance(chart, Curves)
    points = [point for each in chart.series for point in zip(each.x, each.y, strict=True)]
    assert len(points) == chart.values["count"].value >= 80
    series = {each.name: list(zip(each.x, each.y, strict=True)) for each in chart.series}
    printed = [run for run in RUNS.values() if run.gpus and run.mfu]
    derived = [
        run for run in RUNS.values() if run.gpus and not run.mfu and run.tokens_per_s_per_gpu
    ]
    assert chart.values["derived"].value == len(derived) == len(points) - len(printed)
    for names, runs in (("printed", printed), ("from tokens/s", derived)):
        for run in runs:
            narrow = {"fp8": "FP8", "fp4": "FP4"}.get(run.mfu_dtype, "16-bit")
            assert run.gpus in [x for x, _ in series[f"of the {narrow} peak, {names}"]]
    # DeepSeek-V3 multiplied in FP8 and prints a share of the BF16 peak (Zhao et al., Table 4).
    assert (2048, 0.3894) in series["of the 16-bit peak, printed"]
    # Datasheets: GB300 NVL72 has 1,080 PFLOP/s in dense FP4 beside 180 in dense BF16.
    assert chart.values["widest"].value == pytest.approx(1080 / 180)
    # Printed: PaLM on 6,144 TPU v4 (Chowdhery et al. 2022), MegaScale (Jiang et al. 2024).
    assert {(6144, 0.462), (12288, 0.552)} <= set(points)
