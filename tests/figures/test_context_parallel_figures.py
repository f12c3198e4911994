"""Context-parallel figures compared with frozen points and counts of pairs."""

from __future__ import annotations

import math

import pytest

from figgen.charts import Bars, Curves, Diagram, Table, Timeline
from figgen.registry import build
from tests.figures.reading import frozen, value
from tests.renderers.overflows import overflows


@pytest.mark.parametrize("cp", [2, 3, 4])
def test_triangle_has_every_block_once_and_fits(cp: int) -> None:
    chart = build("cp-triangle", {"cp": cp, "sequence_length": 24576})
    assert isinstance(chart, Diagram)
    assert not overflows(chart)
    for scheme in ("contiguous", "zig-zag"):
        cells = [b for b in chart.boxes if b.name.startswith(scheme) and b.name.count(" ") == 2]
        assert len(cells) == 2 * cp * (2 * cp + 1) // 2
        work = sum(0.5 if box.lines == ("½",) else 1.0 for box in cells)
        assert work == (2 * cp) ** 2 / 2
    assert value(chart, "first_zigzag") == value(chart, "last_zigzag") == 2 * cp


@pytest.mark.parametrize("keys_per_block", [1, 2, 3, 4, 6])
def test_blocks_of_any_size_end_at_the_softmax_over_all_keys(keys_per_block: int) -> None:
    chart = build("online-softmax", {"keys_per_block": keys_per_block})
    weights = [math.exp(score) for score in (1, 0, 3, 1, 2, 0)]
    mean = sum(w * v for w, v in zip(weights, range(10, 70, 10), strict=True)) / sum(weights)
    assert value(chart, "result") == pytest.approx(mean)
    assert value(chart, "whole") == pytest.approx(mean)


def test_balance_is_the_triangle_counted() -> None:
    chart = build("cp-balance", {})
    assert isinstance(chart, Bars)
    for segment in chart.segments:
        assert sum(segment.lengths) == pytest.approx(1)
    assert value(chart, "contiguous_last") == pytest.approx(14 / 32, rel=1e-3)
    assert value(chart, "contiguous_over_even") == pytest.approx(2 - 1 / 4, rel=1e-3)


@pytest.mark.parametrize("cp", [2, 4, 8])
def test_contiguous_ring_needs_nearly_twice_as_long(cp: int) -> None:
    contiguous = build("ring-attention", {"scheme": "contiguous", "cp": cp})
    zigzag = build("ring-attention", {"cp": cp})
    assert isinstance(zigzag, Timeline)
    assert value(zigzag, "over_even") == pytest.approx(1, rel=0.01)
    assert value(contiguous, "over_even") == pytest.approx(2 - 1 / cp, rel=0.01)
    slow = build("ring-attention", {"cp": cp, "transfer": 3.0})
    assert value(slow, "makespan") == pytest.approx(1 + 3 * (cp - 1), rel=0.01)


def test_min_tokens_are_the_frozen_ones() -> None:
    chart = build("cp-min-tokens", {})
    assert value(chart, "a100_scale_up_1") == 2 * frozen("ring_attn_condition", heads=1)
    assert value(chart, "h100_nic_8") == 2 * frozen("ring_attn_condition", heads=8)


def test_a_step_of_the_ring_takes_what_the_bound_says() -> None:
    chart = build("ring-step-times", {})
    # Llama 3.1 8B, written out: half of 8,192² pairs of 32 heads, a block of 8 heads of 128.
    attention = 4 * 32 * 128 * 8192**2 / 2 / 989.4e12
    assert value(chart, "attention") == pytest.approx(attention)
    assert value(chart, "block") == 2 * 8192 * 8 * 128 * 2
    assert value(chart, "nic") == pytest.approx(2 * 8192 * 8 * 128 * 2 / 50e9)
    bound = value(build("cp-min-tokens", {}), "h100_nic_4")
    equal = build("ring-step-times", {"tokens": round(bound)})
    assert value(equal, "attention") == pytest.approx(value(equal, "nic"), rel=1e-4)


@pytest.mark.parametrize(
    ("model", "heads", "kv_heads"),
    [("gpt_3_175b", 96, 96), ("llama_3_8b", 32, 8), ("llama_3_405b", 128, 8)],
)
def test_all_to_all_sends_less_from_the_size_of_the_rule(
    model: str, heads: int, kv_heads: int
) -> None:
    rule = (
        c for c in range(2, heads + 1) if heads % c == 0 and c * kv_heads > heads + max(kv_heads, c)
    )
    assert value(build("cp-exchanges", {}), f"{model}_from") == next(rule)


def test_overlap_is_one_at_the_least_tokens() -> None:
    chart = build("cp-overlap", {})
    assert isinstance(chart, Curves)
    for series, name in zip(
        chart.series,
        ("gpt_3_175b_scale_up", "gpt_3_175b_nic", "llama_3_405b_scale_up", "llama_3_405b_nic"),
        strict=True,
    ):
        for x, y in zip(series.x, series.y, strict=True):
            assert y == pytest.approx(x / value(chart, f"{name}_tokens"))
    # FLOP and bytes of one step written out: c² pairs, half of them masked, of 128 heads.
    c, peak, nic = 8192, 989.4e12, 50e9
    attention = 4 * 128 * 128 * c * c / 2 / peak
    transfer = 2 * c * 8 * 128 * 2 / nic
    assert attention / transfer == pytest.approx(c / value(chart, "llama_3_405b_nic_tokens"))


def test_volumes_and_buffers_are_the_frozen_ones() -> None:
    volume, table = build("cp-volume", {}), build("cp-exchanges", {})
    ring = frozen("cp_ring_bytes", cp=8, sequence_length=131072)
    assert value(volume, "ring_cp8") == ring
    assert value(table, "llama_3_405b_ring") == ring
    assert value(volume, "all_to_all_full_cp2") == value(volume, "ring_full_cp2")
    assert isinstance(table, Table)
    assert value(table, "llama_3_405b_buffer") == 2 * frozen("kv_ring_buffer", kv_width=1024)
    curve = build("kv-buffer", {})
    assert value(curve, "ring_8_131k") == 2 * frozen("kv_ring_buffer", kv_width=1024)
    assert value(curve, "full_1m") == 4 * frozen("kv_ring_buffer", kv_width=8192)
    assert value(curve, "gathered_131k") == 2 * 131072 * 1024 * 2


def test_identity_holds_for_every_cut() -> None:
    chart = build("cp-identity", {})
    assert isinstance(chart, Table)
    assert value(chart, "largest") == 0
    assert {row[0] for row in chart.rows} == {"contiguous", "zig-zag", "striped"}


def test_waiting_for_the_longest_documents_is_as_large_as_what_balancing_won() -> None:
    """WLB-LLM (arXiv:2503.17924) gained a factor of 1.23 on average, dynamic CP up to 1.48."""
    values = build("packed-imbalance", {}).values
    waits = [values[f"waits_{mean}_64"].value for mean in (2048, 8192, 32768)]
    assert waits == sorted(waits)
    assert waits[0] < 0.05
    assert 0.1 < waits[1] < 0.23 < waits[2] < 0.48
    for mean in (2048, 8192, 32768):
        uneven = [values[f"most_{mean}_{ranks}"].value for ranks in (2, 8, 64)]
        assert uneven == sorted(uneven)
        assert uneven[0] > 1


def test_documents_leave_of_a_step_what_does_not_attend() -> None:
    values = build("packed-documents", {}).values
    left = 1 - values["attention"].value * (1 - values["pairs"].value)
    assert values["step"].value == pytest.approx(left, abs=0.03)
    assert values["packed_mfu"].value < values["mfu"].value
