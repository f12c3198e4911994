"""Work per byte of models, and the resulting efficiency: frozen points and published runs."""

from __future__ import annotations

import itertools

import pytest

from tests.figures.reading import DRAWN, bars, curves, frozen, table, value
from tests.figures.test_roofline_figures import PRESETS

CHANGES = (
    "base", "pair", "wide", "halved", "larger", "accumulated", "fp32", "fp8", "fp8_gather",
)  # fmt: skip


def test_ccr_by_batch_is_the_published_row_for_many_ranks() -> None:
    # E003-058: 1.5 · 2048 · batch for 1, 4, 16, 64, 256 sequences
    found = table("ccr-by-batch", sequences=[1, 4, 16, 64, 256], dp=10**12)
    expected = [3072, 12288, 49152, 196608, 786432]
    assert [row[2] for row in found.rows] == pytest.approx(expected, rel=1e-9)
    assert [row[3] for row in found.rows] == pytest.approx([x / 2 for x in expected], rel=1e-9)
    assert [row[4] for row in found.rows] == pytest.approx([x / 1.5 for x in expected], rel=1e-9)
    share = frozen("efficiency_with_overlap", ccr=3072)
    # without the forward's third, which nothing hides behind
    assert 1 / float(found.rows[0][5]) == pytest.approx(1 / share + 1 / 3, rel=1e-8)


def test_data_parallel_ratio_is_the_same_for_every_model() -> None:
    rows = table("ccr-of-models").rows
    assert len({row[2:4] for row in rows}) == 1
    assert [row[4] for row in rows] == sorted(float(row[4]) for row in rows)


def test_gpt3_has_the_ratio_of_the_catalogues_layer() -> None:
    forward, sent = 7.62786192e12, 352_321_536
    expected = 3 * forward / 8 / sent
    assert value(table("ccr-of-models"), "gpt_3_175b_tp8") == pytest.approx(expected, rel=1e-6)


def test_tp_halves_about_with_every_doubling_and_crosses_the_ridges() -> None:
    chart = curves("tensor-parallel-ccr")
    for line in chart.series:
        for (t, here), (_, there) in itertools.pairwise(zip(line.x, line.y, strict=True)):
            assert here / there == pytest.approx((2 * t - 1) / (t - 1))
    # No overlap, eight ranks on NVLink: time of work and of bytes of one layer, added.
    work = 3 * 7.62786192e12 / 8 / 989.4e12
    send = 352_321_536 / 450e9
    share = value(chart, "gpt_3_175b_tp8_share")
    assert share == pytest.approx(work / (work + send), rel=1e-6)
    send_strided = 352_321_536 / 50e9
    strided = value(chart, "gpt_3_175b_tp8_strided_share")
    assert strided == pytest.approx(work / (work + send_strided), rel=1e-6)


def test_each_change_moves_the_ratio_by_its_factor() -> None:
    found = bars("ccr-changes")
    ratios = {
        key: (value(found, f"{key}_ddp_over_ridge"), value(found, f"{key}_fsdp_over_ridge"))
        for key in CHANGES
    }
    base_ddp, base_fsdp = ratios["base"]
    for name, ddp, fsdp in (
        ("pair", 2 / (64 / 63), 2 / (64 / 63)),
        ("wide", (1024 / 1023) / (64 / 63), (1024 / 1023) / (64 / 63)),
        ("halved", 0.5 * (128 / 127) / (64 / 63), 0.5 * (128 / 127) / (64 / 63)),
        ("larger", 2, 2),
        ("accumulated", 4, 1),
        ("fp32", 0.5, 6 / 8),
        ("fp8", 989.4 / 1978.9, 989.4 / 1978.9),
        ("fp8_gather", 989.4 / 1978.9, 1.5 * 989.4 / 1978.9),
    ):
        assert ratios[name] == pytest.approx((ddp * base_ddp, fsdp * base_fsdp))


def shares(
    tokens: float,
    dp: int,
    *,
    peak: float = 989.4e12,
    microbatches: int = 1,
    gather: float = 2,
    reduce: float = 2,
) -> tuple[float, float]:
    """Return the shares of the peak of DDP and FSDP, pass by pass, alone on a port of 50 GB/s."""
    forward, backward = 2 * tokens / peak, 4 * tokens / peak
    once = (dp - 1) / dp / 50e9
    work = microbatches * (forward + backward)
    ddp = work - backward + max(backward, 2 * reduce * once)
    fsdp = max(forward, gather * once) + max(backward, (gather + reduce) * once)
    return work / ddp, (forward + backward) / fsdp


def test_shares_after_each_change_are_those_of_passes_that_hide_their_own_bytes() -> None:
    found, fp8 = bars("ccr-changes"), 1978.9e12
    for name, expected in (
        ("base", shares(8192, 64)),
        ("pair", shares(8192, 2)),
        ("wide", shares(8192, 1024)),
        ("halved", shares(4096, 128)),
        ("larger", shares(16384, 64)),
        ("accumulated", shares(8192, 64, microbatches=4)),
        ("fp32", shares(8192, 64, reduce=4)),
        ("fp8", shares(8192, 64, peak=fp8)),
    ):
        got = value(found, f"{name}_ddp"), value(found, f"{name}_fsdp")
        assert got == pytest.approx(expected), name
    gathered = shares(8192, 64, peak=fp8, gather=1)[1]
    assert value(found, "fp8_gather_fsdp") == pytest.approx(gathered)
    assert round(value(found, "accumulated_ddp"), 2) == 0.81


def test_curves_of_the_strategies_pass_through_the_catalogues_points() -> None:
    hidden, _, open_ = curves("strategies-roofline", preset="h100-ndr").series
    overlapped, blocking = (dict(zip(s.x, s.y, strict=True)) for s in (hidden, open_))
    assert blocking[1.0] == frozen("efficiency_without_overlap", ccr=1) == 0.5
    assert all(overlapped[x] == pytest.approx(min(1, x)) for x in overlapped)
    assert all(blocking[x] < overlapped[x] for x in blocking)


def test_strong_scaling_is_the_ratio_of_step_times() -> None:
    batch, parameters, peak = 4_194_304, 7e9, 989.4e12
    chart = curves("strong-scaling", preset="h100-ndr", global_batch_tokens=batch)
    bandwidth = min(450e9, 8 * 50e9)
    for line in chart.series:
        for n, share in zip(line.x, line.y, strict=True):
            compute = 6 * parameters * batch / n / peak
            plain = line.name.startswith("DDP")
            send = (2 if plain else 3) * parameters * 2 * (n - 1) / n / bandwidth
            alone = compute / 3 if plain else 0.0
            overlapped = alone + max(compute - alone, send)
            step = overlapped if "with" in line.name else compute + send
            assert share == pytest.approx(compute / step)


def test_strong_scaling_goes_by_whole_nodes_up_to_the_last() -> None:
    x = curves("strong-scaling", most_gpus=1200).series[0].x
    assert all(n % 8 == 0 for n in x)
    assert (x[0], x[-1]) == (16, 1200)
    assert all(a < b <= a * 1.5 for a, b in itertools.pairwise(x))


@pytest.mark.parametrize("preset", PRESETS)
def test_limit_of_strong_scaling_is_where_the_overlapped_line_leaves_the_top(preset: str) -> None:
    chart = curves("strong-scaling", preset=preset, most_gpus=2**14)
    limit = value(chart, "limit")
    for line in (chart.series[0], chart.series[2]):
        for n, share in zip(line.x, line.y, strict=True):
            assert (share == 1) == (n <= limit)


def test_published_zero3_run_lies_on_the_slope_from_768_gpus_on() -> None:
    chart = curves("measured-strong-scaling", **DRAWN["measured-strong-scaling"])
    runs = (384, 768, 1536)
    assert [mark.label for mark in chart.marks] == ["384 GPUs", "768 GPUs", "1,536 GPUs"]
    assert [mark.y for mark in chart.marks] == [144e12, 88e12, 44e12]
    implied = [mark.y / mark.x for mark in chart.marks]
    assert implied[1] == pytest.approx(implied[2], rel=0.01)
    assert implied[0] < implied[1] < 25e9
    # 8Nτ of work and 3·2N·(D − 1)/D bytes in the time that the rate implies
    for gpus, mark, bandwidth in zip(runs, chart.marks, implied, strict=True):
        seconds = 8 * 174.6e9 * 1536 * 2048 / gpus / mark.y
        sent = 6 * 174.6e9 * (gpus - 1) / gpus
        assert bandwidth == pytest.approx(sent / seconds)
    port, slope, roof = chart.series
    assert port.y[0] / port.x[0] == pytest.approx(25e9)
    assert slope.y[0] / slope.x[0] == pytest.approx(implied[2])
    assert port.y[1] == slope.y[1] == pytest.approx(roof.y[0])
