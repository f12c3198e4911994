"""Tensor-parallel figures compared with frozen points, step traffic, and counts by hand."""

from __future__ import annotations

import itertools
import math

import pytest

from figgen.catalog import model, preset
from figgen.charts import Bars, Curves, Diagram, Table, Timeline
from figgen.errors import InputError
from figgen.models.algorithms.communication_ratio import tensor_parallel_ccr
from figgen.registry import build
from tests.figures.reading import frozen, value


@pytest.mark.parametrize("tp", [1, 2, 4, 8, 16, 32, 64])
def test_attention_gives_every_head_to_a_rank_and_its_kv_head_with_it(tp: int) -> None:
    if tp == 1:
        with pytest.raises(InputError):
            build("tp-block", {"block": "attention", "model": "llama-3-70b", "tp": 1})
        return
    chart = build("tp-block", {"block": "attention", "model": "llama-3-70b", "tp": tp})
    assert isinstance(chart, Diagram)
    for box in chart.boxes:
        if not box.name.endswith(".0") or box.name.startswith("-"):
            continue
        rank = int(box.name.split(".")[0])
        q, kv = ([int(n) for n in line.split()[-1].split("–")] for line in box.lines[1:])
        assert box.lines[0] == f"rank {rank}"
        assert (q[0], q[-1]) == (rank * 64 // tp, (rank + 1) * 64 // tp - 1)
        assert (kv[0], kv[-1]) == (q[0] // 8, q[-1] // 8)


def test_volume_is_the_frozen_one_for_gpt_3() -> None:
    chart = build("tp-volume", {})
    want = frozen("tp_layer_bytes", all_reduces=4, tp=8, bytes_per_element=2)
    assert value(chart, "gpt_3_175b_tp8") == want
    assert isinstance(chart, Curves)
    for series in chart.series:
        assert series.y[-1] / series.y[0] == pytest.approx((63 / 64) / (1 / 2))


def test_step_bytes_are_the_frozen_ones() -> None:
    chart = build("tp-step-bytes", {})
    assert isinstance(chart, Bars)
    assert value(chart, "tp_bytes") == frozen("tp_iter_bytes", microbatches=32)
    assert value(chart, "pp_bytes") == 2 * 32 * 2048 * 12288 * 2 / 8
    assert value(chart, "dp_bytes") == pytest.approx(2 * 15 / 16 * 174.6e9 / 64 * 2, rel=1e-3)


def test_most_of_what_64_ranks_of_a_rack_wait_for_is_latency() -> None:
    """Four sums of 134 MB around 64 ranks at 900 GB/s, compared with a 64th of a layer's work."""
    values = build("tp-link-ratio", {}).values
    work = 8192 * (6 * 855_638_016 + 6 * 2 * 8192 * 8192) / 64 / 2.5e15
    by_bytes = 4 * 2 * 63 / 64 * 8192 * 8192 * 2 / 900e9 / work
    assert values["rack_bytes"].value == pytest.approx(by_bytes, rel=0.03)
    assert 2 * values["rack_bytes"].value < values["rack_tp64"].value


def test_groups_of_at_most_a_node_have_no_line_of_whole_nodes() -> None:
    named = [line.name for line in build("tp-link-ratio", {"most": 8}).series]
    assert named == ["NVLink 4, one node", "one rank per node"]


def test_link_ratio_without_latency_is_ridge_over_ccr() -> None:
    chart = build("tp-link-ratio", {"microbatch_size": 4096})
    node, shape = preset("h100-ndr"), model("llama-3-70b").shape
    for tp in (2, 8, 32):
        ccr = tensor_parallel_ccr(shape, tp=tp)
        # A GB200's NVLink 5 and its peak as its data sheet has it.
        assert value(chart, f"rack_tp{tp}") == pytest.approx(2500e12 / 900e9 / ccr, rel=2e-3)
        if tp > 8:
            assert f"nvlink_tp{tp}" not in chart.values
        else:
            assert value(chart, f"nvlink_tp{tp}") == pytest.approx(989.4e12 / 450e9 / ccr, rel=1e-3)
        assert value(chart, f"single_tp{tp}") == pytest.approx(989.4e12 / 50e9 / ccr, rel=1e-3)
    assert value(chart, "nodes_tp16") == pytest.approx(
        989.4e12 / 400e9 / tensor_parallel_ccr(shape, tp=16), rel=1e-3
    )
    assert node.kind == "hardware"


def test_waves_are_counted_by_hand() -> None:
    chart = build("tp-limits", {"tokens": 2048})
    assert isinstance(chart, Table)
    for row in chart.rows:
        width = 28672 // int(row[0])
        tiles = 16 * math.ceil(width / 256)
        assert row[6] == tiles
        assert row[7] == pytest.approx(tiles / 132 / -(-tiles // 132))
        assert int(row[1]) * int(row[0]) == 32
        assert int(row[2]) * int(row[0]) == 8 * int(row[3])


def test_memory_parts_add_up_to_the_frozen_totals() -> None:
    chart = build("sp-memory", {})
    assert isinstance(chart, Bars)
    sums = [sum(part.lengths[at] for part in chart.segments) for at in range(4)]
    assert sums[1] == frozen("act_layer_tp", tp=8, sequence_length=2048)
    assert sums[2] == frozen("act_layer_tp_sp", tp=8, sequence_length=2048)
    for total, name in zip(sums, ("nothing", "tp", "sp", "selective"), strict=True):
        assert value(chart, f"{name}_bytes") == pytest.approx(total)


@pytest.mark.parametrize("tp", [2, 4, 8, 16])
def test_overlap_keeps_order_and_lanes_free_of_collisions(tp: int) -> None:
    chart = build("tp-overlap", {"tp": tp})
    assert isinstance(chart, Timeline)
    lanes = [[slot for slot in chart.slots if slot.lane == lane] for lane in range(4)]
    for lane in lanes:
        assert all(a.end <= b.start * (1 + 1e-9) for a, b in itertools.pairwise(lane))
    arrived = {"0": 0.0} | {slot.label: slot.end for slot in lanes[3]}  # a rank's own part is there
    assert all(slot.start >= arrived[slot.label] - 1e-12 for slot in lanes[2])
    work = [sum(slot.end - slot.start for slot in lane) for lane in lanes]
    assert work[0] == pytest.approx(work[2])
    assert value(chart, "product_s") == pytest.approx(2 * 8192 * 4096 * 28672 / tp / 794.5e12)
    assert 0 <= value(chart, "hidden_share") <= 1 + 1e-9


def test_the_way_up_counts_a_gate_only_where_there_is_one() -> None:
    chart = build("tp-overlap", {"model": "gpt-3-175b"})
    assert value(chart, "product_s") == pytest.approx(2 * 2048 * 12288 * 49152 / 8 / 794.5e12)


def test_identity_differs_only_where_gelu_comes_before_the_sum() -> None:
    for tp in (2, 4):
        chart = build("tp-identity", {"tp": tp})
        assert value(chart, "largest") == 0
        assert value(chart, "wrong") > 1
