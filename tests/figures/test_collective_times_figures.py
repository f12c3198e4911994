"""Bytes and times of a ring by ranks and sizes, compared with traces run step by step."""

from __future__ import annotations

import pytest

from figgen.charts import Curves
from figgen.models.collectives import algorithms, synchronous_time_s, trace
from figgen.registry import build


@pytest.mark.parametrize("algorithm", algorithms("all-reduce"))
def test_no_all_reduce_moves_fewer_than_two_n_minus_one_copies_of_a_chunk(algorithm: str) -> None:
    run = trace("all-reduce", algorithm, 8)
    copies = sum(len(send.chunks) for sends in run.steps for send in sends) / run.chunk_count
    assert copies >= 2 * (8 - 1)
    if algorithm in ("ring", "recursive-halving-doubling", "naive"):
        assert copies == 2 * (8 - 1)


def curve(name: str, **arguments: object) -> Curves:
    return build(name, arguments)


def test_the_factor_is_1_for_two_ranks_and_near_2_for_many() -> None:
    chart = curve("all-reduce-factor", most_ranks=512)
    factor = dict(zip(chart.series[0].x, chart.series[0].y, strict=True))
    assert (factor[2], factor[4], factor[8]) == (1, 1.5, 1.75)
    assert factor[512] == pytest.approx(1022 / 512)
    assert max(factor.values()) < chart.rules[0].at == 2


@pytest.mark.parametrize("size", [1e6, 1e9])
def test_time_over_ranks_is_that_of_the_trace_run_step_by_step(size: float) -> None:
    chart = curve("ring-time-over-ranks", message_bytes=[size], link="ib-ndr", most_ranks=16)
    for series, alpha in zip(chart.series, (14e-6, 0.0), strict=True):
        for ranks, time in zip(series.x, series.y, strict=True):
            run = trace("all-reduce", "ring", int(ranks))
            assert time == pytest.approx(synchronous_time_s(run, size, alpha, 50e9))


def test_time_over_ranks_goes_up_to_the_last_power_of_two() -> None:
    chart = curve("ring-time-over-ranks", most_ranks=1024)
    assert chart.series[0].x == tuple(2.0**k for k in range(1, 11))
    assert chart.values["last_0"].value == pytest.approx(2046 * 14e-6 + 2 * 1023 / 1024 * 2e-5)


def test_a_ring_reaches_half_of_its_link_at_n_alpha_b_and_nine_tenths_at_nine_times_that() -> None:
    chart = curve("ring-bus-bandwidth", ranks=[8, 64], link="ib-ndr")
    assert [mark.y for mark in chart.marks] == pytest.approx([0.5, 0.5])
    assert [mark.x for mark in chart.marks] == pytest.approx([8 * 14e-6 * 50e9, 64 * 14e-6 * 50e9])
    ninety = chart.values["ninety_64"].value
    t = 126 * 14e-6 + 2 * 63 / 64 * ninety / 50e9
    assert 2 * 63 / 64 * ninety / t / 50e9 == pytest.approx(0.9)
    assert chart.values["share_at_crossover"].value == pytest.approx(0.5)
    for series in chart.series:
        assert list(series.y) == sorted(series.y)
        assert series.x[0] == 1e4
        assert series.x[-1] == 1e11


def test_a_crossover_out_of_sight_has_no_mark_but_a_value() -> None:
    chart = curve("ring-bus-bandwidth", ranks=[8, 512], link="ib-ndr", high_bytes="100 MB")
    assert [mark.x for mark in chart.marks] == pytest.approx([8 * 14e-6 * 50e9])
    assert chart.values["crossover_512"].value == pytest.approx(512 * 14e-6 * 50e9)


def test_at_every_crossover_latency_and_transfer_are_equal() -> None:
    table = build("ring-crossovers", {})
    assert len(table.rows) == 6
    for _, bandwidth, alpha, message, *rings in table.rows:
        assert message / bandwidth == pytest.approx(alpha)
        for n, size in zip((8, 64), rings, strict=True):
            assert 2 * (n - 1) / n * size / bandwidth == pytest.approx(2 * (n - 1) * alpha)
    assert table.values["nvlink4_8"].value == pytest.approx(12.24e6)
    assert table.values["ib_ndr_64"].value == pytest.approx(44.8e6)
