"""Data parallelism's figures compared with NumPy, corrected tables and a queue computed by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from figgen.charts import Timeline
from figgen.errors import InputError
from figgen.models.shape.resnet import resnet_50_parameters
from figgen.registry import build
from tests.figures.reading import curves, table, value


def numpy_gradient(samples: str) -> float:
    """Return the gradient of mean((w·x − y)²) at w = 1 by central differences."""
    pairs = [pair.split(",") for pair in samples.strip("()").split(") (")]
    x, y = np.array([(float(a), float(b)) for a, b in pairs]).T
    step = 1e-4
    loss = [float(np.mean((w * x - y) ** 2)) for w in (1 - step, 1 + step)]
    return (loss[1] - loss[0]) / (2 * step)


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_mean_of_gradients_is_the_gradient_of_the_mean(ranks: int) -> None:
    *rows, alone = table("data-parallel-mean", ranks=ranks).rows
    numeric = [numpy_gradient(str(row[1])) for row in rows]
    assert [row[3] for row in rows] == pytest.approx(numeric, rel=1e-6)
    everything = " ".join(str(row[1]) for row in rows)
    assert alone[3] == pytest.approx(numpy_gradient(everything), rel=1e-6)
    assert alone[3] == pytest.approx(np.mean(numeric), rel=1e-6)
    assert {row[5] for row in rows} == {alone[5]}


def test_unequal_shares_break_the_mean() -> None:
    chart = build("data-parallel-mean", {})
    *rows, _ = table("data-parallel-mean").rows
    shares = [str(row[1]) for row in rows]
    shares[-1] = shares[-1].split(") (")[0] + ")"
    assert value(chart, "short_whole") == pytest.approx(numpy_gradient(" ".join(shares)), rel=1e-6)
    assert value(chart, "short_mean") == pytest.approx(np.mean([*map(numpy_gradient, shares)]))
    assert value(chart, "short_mean") != pytest.approx(value(chart, "short_whole"), rel=0.01)


def test_a_slow_rank_makes_all_wait_and_none_starts_reducing_alone() -> None:
    chart = build("data-parallel-step", {"ranks": 3, "slow_rank": 1, "slowdown": 1.5})
    assert isinstance(chart, Timeline)
    starts = {slot.start for slot in chart.slots if slot.role == "exposed"}
    slowest = max(slot.end for slot in chart.slots if slot.role == "backward")
    assert starts == {slowest}
    work = value(chart, "forward_s") + value(chart, "backward_s")
    assert value(chart, "wait_s") == pytest.approx(0.5 * work)


def test_70b_gradient_takes_what_the_corrected_table_says() -> None:
    chart = table("gradient-all-reduce", models=["llama-2-70b"])
    size = float(chart.rows[0][1])
    # Appendix D.4: 140 GB over 8 ranks, 544 ms on NVLink 4 and 4.9 s on NDR.
    assert value(chart, "llama_2_70b_nvlink_s") == pytest.approx(0.5444444 * 2 * size / 140e9)
    assert value(chart, "llama_2_70b_port_s") == pytest.approx(4.9 * 2 * size / 140e9)
    # Every time is that of the bytes at its left: eight ranks, eight ranks, 64 ranks.
    (row,) = chart.rows
    assert row[4] / 450e9 == pytest.approx(row[5])
    assert row[4] / 50e9 == pytest.approx(row[6])
    assert row[7] / 400e9 == pytest.approx(row[8])


def test_each_bucket_waits_for_its_gradients_and_for_the_bucket_before() -> None:
    chart = build("ddp-buckets", {})
    assert isinstance(chart, Timeline)
    ready = {slot.detail: slot.end for slot in chart.slots if slot.lane == 2}
    sent = sorted((s.start, s.end, s.detail) for s in chart.slots if s.lane == 3)
    assert all(a[1] <= b[0] + 1e-12 for a, b in itertools.pairwise(sent))
    assert all(start >= ready[label] - 1e-12 for start, _, label in sent)
    assert value(chart, "bucketed_s") == pytest.approx(sent[-1][1])
    assert value(chart, "saved") > 0


def test_more_buckets_cost_more_in_all_and_the_best_leaves_least() -> None:
    chart = curves("bucket-tradeoff")
    total, exposed, _ = (series.y for series in chart.series)
    assert list(total) == sorted(total)
    assert value(chart, "best_exposed_s") <= min(exposed)
    assert value(chart, "one_exposed_s") == pytest.approx(total[0])


def test_real_matrices_are_never_hidden_better_than_equal_buckets_at_their_best() -> None:
    chart = curves("bucket-tradeoff")
    assert min(chart.series[2].y) >= value(chart, "best_exposed_s")


def test_llamas_matrices_outgrow_the_default_bucket() -> None:
    chart = table("ddp-bucket-table")
    assert value(chart, "llama_3_8b_matrix") == 4096 * 14336 * 2
    assert value(chart, "llama_3_8b_last") >= 128256 * 4096 * 2
    assert value(chart, "llama_3_8b_median") > 4 * 25 * 2**20


def test_efficiency_falls_with_gpus_and_rises_with_tokens() -> None:
    lines = [series.y for series in curves("data-parallel-scaling").series]
    assert all(a >= b for line in lines for a, b in itertools.pairwise(line))
    assert all(
        a <= b for low, high in itertools.pairwise(lines) for a, b in zip(low, high, strict=True)
    )


def test_compression_has_the_ratios_of_the_corrected_table() -> None:
    chart = table("gradient-compression")
    assert value(chart, "bf16_ratio") == 2
    assert value(chart, "one_bit_ratio") == 32
    # 12 bytes for each kept element: 33, and 50 with 32-bit indices.
    assert value(chart, "long_ratio") == pytest.approx(100 / 3)
    assert value(chart, "int_ratio") == pytest.approx(50)
    # Even with an FP32 all-reduce at about 67 ranks, so with a BF16 one at half of that.
    assert value(chart, "long_even") == 33
    # One 4096 × 4096 matrix shrinks 512 times; the model's wider ones shrink more.
    assert 512 < value(chart, "power_sgd_ratio") < 800


def test_a_fraction_outside_zero_and_one_is_refused() -> None:
    with pytest.raises(InputError, match="kept_fraction"):
        build("gradient-compression", {"kept_fraction": 1.5})


def test_80_gb_hold_the_state_of_5b_at_16_bytes_and_half_of_that_at_40_gb() -> None:
    chart = curves("ddp-memory-wall")
    assert value(chart, "h100_80_zero16") == 5e9
    assert value(chart, "a100_40_zero16") == 2.5e9
    assert value(chart, "h100_80_mcore18") == pytest.approx(4.44e9, rel=2e-3)


def test_steps_and_samples_trade_as_a_hyperbola() -> None:
    steps, samples = (np.array(series.y) for series in curves("critical-batch").series)
    assert (steps - 1) * (samples - 1) == pytest.approx(np.ones_like(steps))


def test_resnet_50_has_the_parameters_that_torchvision_prints() -> None:
    """Compared with num_params of torchvision.models.ResNet50_Weights."""
    assert resnet_50_parameters() == 25_557_032
    rows = {row[0]: row for row in build("gradient-all-reduce", {}).rows}
    assert rows["ResNet-50"][1:4] == (25_557_032, 4 * 25_557_032, 2 * 25_557_032)
