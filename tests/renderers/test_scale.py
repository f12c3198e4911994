"""Limits and ticks: round, in units that engineers use, and consistent next to each other."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from figgen.charts import Axis, Bars, Segment
from figgen.renderers.markup import text_width
from figgen.renderers.scale import ScaledAxis, bar_scale, curve_scales, fitting, scale, value_text
from figgen.renderers.ticks import labelled, linear_ticks, log_ticks
from tests.renderers.samples import CURVES, STACKED

N = "\N{NO-BREAK SPACE}"
BYTES = Axis(label="size", unit="B", scale="log10")
TIME = Axis(label="time", unit="s", scale="log10")
MINUTES = Axis(label="time", unit="s", spec="in min")


def texts(scaled: ScaledAxis) -> list[str]:
    return [text for _, text in scaled.ticks]


@pytest.mark.parametrize(
    ("axis", "data", "expected"),
    [
        (
            BYTES,
            (1e3, 1e9),
            [f"1{N}kB", f"10{N}kB", f"100{N}kB", f"1{N}MB", f"10{N}MB", f"100{N}MB", f"1{N}GB"],
        ),
        (BYTES, (1e3, 1e12), [f"1{N}kB", f"1{N}MB", f"1{N}GB", f"1{N}TB"]),
        (TIME, (1e-5, 1e-2), [f"10{N}µs", f"100{N}µs", f"1{N}ms", f"10{N}ms"]),
        (Axis(label="n", scale="log2"), (1, 64), ["1", "2", "4", "8", "16", "32", "64"]),
        (
            Axis(label="share", spec=".0%", low=0, high=1),
            (),
            ["0%", "20%", "40%", "60%", "80%", "100%"],
        ),
        (Axis(label="ranks", unit="rank"), (0, 2), ["0", "1", "2"]),
        (Axis(label="step"), (0, 30), ["0", "5", "10", "15", "20", "25", "30"]),
        (MINUTES, (0, 500), ["0", "2", "4", "6", "8"]),
        (replace(MINUTES, scale="log10"), (6, 6000), ["0.1", "1", "10", "100"]),
        (
            Axis(label="size", unit="B", scale="log2", spec="in GiB"),
            (2**28, 2**33),
            ["0.25", "0.5", "1", "2", "4", "8"],
        ),
    ],
)
def test_ticks_are_round_in_engineering_units(
    axis: Axis, data: tuple[float, ...], expected: list[str]
) -> None:
    assert texts(scale(axis, data)) == expected


def test_a_unit_that_all_ticks_share_stands_in_the_label_once() -> None:
    assert scale(Axis(label="size", unit="B"), (0, 50e9)).label == "size (GB)"
    assert texts(scale(Axis(label="size", unit="B"), (0, 50e9)))[1] == "10"
    assert scale(MINUTES, (0, 500)).label == "time (min)"
    assert scale(Axis(label="in flight, in microbatches", unit="microbatch"), (0, 8)).label == (
        "in flight, in microbatches"
    )


def test_powers_of_two_of_bytes_get_binary_prefixes() -> None:
    scaled = scale(Axis(label="size", unit="B", scale="log2"), (2**10, 2**30))
    assert texts(scaled)[0] == f"1{N}KiB"
    assert texts(scaled)[-1] == f"1{N}GiB"


scales = st.sampled_from(["linear", "log10", "log2"])
numbers = st.floats(1e-9, 1e15, allow_nan=False)


@given(scales, st.lists(numbers, min_size=1, max_size=5), st.booleans())
def test_ticks_rise_and_lie_within_limits_that_hold_the_data(
    kind: str, data: list[float], rounded: bool
) -> None:
    scaled = scale(Axis(label="x", scale=kind), data, rounded=rounded)  # type: ignore[arg-type]
    values = [value for value, _ in scaled.ticks]
    assert values == sorted(set(values))
    assert scaled.low < scaled.high
    for value in (*values, *scaled.minor):
        assert scaled.low * (1 - 1e-9) <= value <= scaled.high * (1 + 1e-9)
    for value in data:
        assert -1e-9 <= scaled.share(value) <= 1 + 1e-9
    assert len(values) <= 12


@given(st.lists(numbers, min_size=2, max_size=5, unique=True))
def test_tick_texts_tell_ticks_apart(data: list[float]) -> None:
    shown = texts(scale(Axis(label="x", unit="B"), data))
    assert len(set(shown)) == len(shown)


@given(scales, st.lists(numbers, min_size=2, max_size=4, unique=True), st.integers(60, 700))
def test_texts_that_are_said_to_fit_stand_apart(kind: str, data: list[float], room: int) -> None:
    scaled = scale(Axis(label="x", unit="s", scale=kind), data)  # type: ignore[arg-type]
    kept = fitting(scaled, room)
    assert set(kept) <= set(scaled.ticks)
    for (one, first), (other, second) in pairwise(kept):
        apart = (scaled.share(other) - scaled.share(one)) * room
        assert apart >= (text_width(first) + text_width(second)) / 2


def test_of_one_two_five_the_powers_of_ten_are_kept() -> None:
    scaled = scale(Axis(label="n", scale="log10"), (1, 50))
    assert texts(scaled) == ["1", "2", "5", "10", "20", "50"]
    assert [text for _, text in fitting(scaled, 60)] == ["1", "10"]


def test_the_limits_that_an_axis_gives_are_kept() -> None:
    scaled = scale(Axis(label="y", low=0.25, high=0.75), (0, 1))
    assert (scaled.low, scaled.high) == (0.25, 0.75)


def test_curves_hold_their_marks_and_rules_and_bars_begin_at_zero() -> None:
    x, y = curve_scales(CURVES)
    for mark in CURVES.marks:
        assert x.shows(mark.x)
        assert y.shows(mark.y)
    assert bar_scale(STACKED).low == 0
    assert bar_scale(STACKED).high >= 50.5e9


def test_no_data_at_all_still_give_an_axis() -> None:
    empty = Bars(
        labels=("a",),
        segments=(Segment(name="", role="tp", lengths=(math.nan,)),),
        axis=Axis(label="x"),
    )
    for scaled in (scale(Axis(label="x"), ()), scale(TIME, ()), bar_scale(empty)):
        assert scaled.low < scaled.high


@pytest.mark.parametrize(
    ("axis", "value", "expected"),
    [
        (BYTES, 1.5e6, f"1.5{N}MB"),
        (TIME, 2.5e-5, f"25{N}µs"),
        (Axis(label="x", spec=".0%"), 0.125, "12%"),
        (Axis(label="x"), math.nan, "–"),
        (Axis(label="AI", unit="FLOP/B"), 2199.0, f"2,199{N}FLOP/B"),
        (MINUTES, 150.0, f"2.5{N}min"),
        (Axis(label="rate", unit="B/s", spec="in.2 GB/s"), -3.35e12, f"−3,350{N}GB/s"),
    ],
)
def test_a_value_is_written_with_its_unit(axis: Axis, value: float, expected: str) -> None:
    assert value_text(axis, value) == expected


@pytest.mark.parametrize(
    ("kind", "unit", "exponent", "step", "minors"),
    [  # seven decades have a tick each, eight one for each thousand, 22 one for each million
        ("log10", "", 2, 1, 16),
        ("log10", "", 6, 1, 48),
        ("log10", "", 7, 3, 5),
        ("log10", "", 20, 3, 14),
        ("log10", "", 21, 6, 18),
        # eleven powers of two have a tick each; of bytes, only KiB, MiB and thirty-seconds of them
        ("log2", "", 10, 1, 0),
        ("log2", "", 11, 2, 6),
        ("log2", "", 41, 4, 31),
        ("log2", "B", 10, 1, 0),
        ("log2", "B", 11, 5, 9),
        ("log2", "B", 54, 5, 44),
        ("log2", "B", 55, 10, 50),
    ],
)
def test_an_axis_of_powers_is_thinned_out(
    kind: str, unit: str, exponent: int, step: int, minors: int
) -> None:
    axis, base = Axis(label="n", unit=unit or "1", scale=kind), int(kind[3:])  # type: ignore[arg-type]
    major, minor = log_ticks(axis, 1.0, float(base) ** exponent)
    assert major == pytest.approx([float(base) ** k for k in range(0, exponent + 1, step)])
    assert len(minor) == minors
    assert not set(minor) & set(major)


@pytest.mark.parametrize(
    ("low", "high", "rounded", "values"),
    [
        (0, 30, True, [0, 5, 10, 15, 20, 25, 30]),
        (2, 31, True, [0, 5, 10, 15, 20, 25, 30, 35]),
        (2, 31, False, [5, 10, 15, 20, 25, 30]),
        (0, 3 * 0.1, True, [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]),  # 0.30000000000000004
    ],
)
def test_ticks_go_to_the_round_number_around_the_data_or_stay_within(
    low: float, high: float, rounded: bool, values: list[float]
) -> None:
    ticks, _ = linear_ticks(Axis(label="x"), low, high, rounded)
    assert [value for value, _ in ticks] == pytest.approx(values)


def test_whole_things_have_no_tick_where_none_of_them_is() -> None:
    assert linear_ticks(Axis(label="n", unit="token"), 10.1, 10.9, False)[0] == []


def test_a_ratio_is_written_out_below_100_000() -> None:
    axis = Axis(label="i", unit="FLOP/B")
    assert value_text(axis, 99_999) == f"99,999{N}FLOP/B"
    assert value_text(axis, -99_999) == f"−99,999{N}FLOP/B"
    assert value_text(axis, 100_000) == f"100{N}kFLOP/B"


@pytest.mark.parametrize(
    ("unit", "values", "numbers", "shared"),
    [
        ("B", [1e9, 2e9], ["1", "2"], "GB"),
        ("FLOP/B", [1.0, 20.0], ["1", "20"], "FLOP/B"),
        ("token", [1.0, 2.0], [f"1{N}token", f"2{N}tokens"], ""),  # not one word
    ],
)
def test_a_unit_is_shared_where_all_ticks_have_it(
    unit: str, values: list[float], numbers: list[str], shared: str
) -> None:
    found, word = labelled(Axis(label="n", unit=unit), values)
    assert ([text for _, text in found], word) == (numbers, shared)


@pytest.mark.parametrize(
    ("low", "high", "spec", "first", "last"),
    [
        (0.0, 0.6, ".1%", "0%", "60%"),  # never 0.0%, 60.0%
        (0.0, 0.006, ".1%", "0.0%", "0.6%"),
        (0.0, 1.0, ".2f", "0.0", "1.0"),
        (0.0, 6.0, ".2f", "0", "6"),
        (1.0, 1.3, ".2f", "1.00", "1.30"),
        (0.0, 30_000.0, ",d", "0", "30,000"),
    ],
)
def test_ticks_end_in_no_zero_that_all_of_them_have(
    low: float, high: float, spec: str, first: str, last: str
) -> None:
    ticks, _ = linear_ticks(Axis(label="x", spec=spec), low, high, False)
    assert (ticks[0][1], ticks[-1][1]) == (first, last)
