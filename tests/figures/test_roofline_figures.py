"""The roofline's figures compared with frozen points, a published table and counted traces.

D.3 of the formula catalog gives ridge points and critical tokens for D so large that D − 1 and D
are the same; the test uses a very large number of nodes.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from figgen.catalog import link
from figgen.charts import Diagram
from figgen.models.collectives import bytes_per_link, bytes_sent_per_rank, trace
from figgen.registry import build
from tests.figures.reading import bars, curves, frozen, table, value

ORACLES = Path(__file__).parents[1] / "oracles"
PUBLISHED = json.loads((ORACLES / "published_tables.json").read_text("utf-8"))
ZERO3 = [
    row for row in PUBLISHED["megatron_2104.04473_table2"]["rows"] if row[:2] == ["ZeRO-3", 174.6]
]
PRESETS = ("a100-hdr", "h100-ndr", "h200-ndr", "b200-ndr")


def test_ridge_table_has_the_catalogues_points() -> None:
    found = table("ridge-table")
    for name, peak, bandwidth in (
        ("a100_bf16_scale_up", 312e12, 300e9),
        ("h100_bf16_scale_up", 989.4e12, 450e9),
        # A whole node with its eight NICs has the ridge of one GPU with one NIC.
        ("h100_bf16_nic", 7915.2e12, 400e9),
    ):
        expected = frozen("ridge_point", peak_flops_per_s=peak, bandwidth_bytes_per_s=bandwidth)
        assert value(found, name) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    ("name", "printed"),
    [("a100_bf16_nic", 12_480), ("b200_bf16_scale_up", 2_500), ("a100_bf16_scale_up", 1_040)],
)
def test_ridge_table_has_the_values_of_table_d3(name: str, printed: float) -> None:
    assert value(table("ridge-table"), name) == pytest.approx(printed, rel=1e-4)


def test_fp8_doubles_every_ridge_and_the_a100_has_none() -> None:
    found = table("ridge-table")
    assert [row[:2] for row in found.rows].count(("A100", "FP8")) == 0
    for generation, level in itertools.product(
        ("h100", "h200", "b200"), ("hbm", "scale_up", "nic", "oversubscribed")
    ):
        doubled = 2 * value(found, f"{generation}_bf16_{level}")
        assert value(found, f"{generation}_fp8_{level}") == pytest.approx(doubled, rel=1e-3)


def test_links_are_per_gpu_and_direction() -> None:
    rows = {row[0]: row[1:] for row in table("link-levels", oversubscription=2).rows}
    assert rows["H100"] == (3.35e12, 450e9, 50e9, 25e9)
    assert rows["A100"] == (2.039e12, 300e9, 25e9, 12.5e9)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_slope_ends_where_its_link_feeds_the_whole_peak(preset: str) -> None:
    chart = curves("communication-roofline", preset=preset)
    peak = value(chart, "peak")
    found = next(row for row in table("link-levels").rows if row[0] == preset[:4].upper())
    *slopes, roof = chart.series
    for slope, bandwidth in zip(slopes, found[1:4], strict=True):
        assert slope.y[0] == float(bandwidth) * slope.x[0]
        assert slope.y[1] == pytest.approx(peak)
    assert set(roof.y) == {peak}
    assert [rule.at for rule in chart.rules] == [slope.x[1] for slope in slopes]


def test_roof_at_the_catalogues_points() -> None:
    chart = curves("communication-roofline", preset="h100-ndr")
    nic = chart.series[2]
    slope = nic.y[0] / nic.x[0]
    for ccr in (3072, 98304):
        expected = frozen("attainable_flops_over_network", bandwidth_bytes_per_s=50e9, ccr=ccr)
        assert min(value(chart, "peak"), slope * ccr) == pytest.approx(expected)


@pytest.mark.parametrize("preset", PRESETS)
def test_marks_lie_on_the_slope_of_their_link_or_on_the_roof(preset: str) -> None:
    chart = curves("communication-roofline", preset=preset)
    peak = value(chart, "peak")
    hbm, _, port = (slope.y[0] / slope.x[0] for slope in chart.series[:3])
    marks = zip(chart.marks, (16, 8192, 8 * 8192), (hbm, port, port), strict=True)
    for mark, ccr, bandwidth in marks:
        assert mark.x == ccr  # 16-bit messages: operations per byte are tokens
        assert mark.y == pytest.approx(min(peak, bandwidth * ccr))


def test_marks_of_the_roofline_are_the_times_of_its_pages_other_figures() -> None:
    chart, product = curves("communication-roofline", preset="h100-ndr"), bars("product-times")
    memory = curves("memory-roofline", preset="h100-ndr")
    sharded = bars("two-times")
    assert value(chart, "alone_share") == pytest.approx(value(sharded, "share_8192"))
    # Weights alone against the loading of the weights and of the few tokens' own numbers.
    share = value(product, "few_computing") / value(product, "few_slowest")
    assert value(chart, "few_share") == pytest.approx(share, rel=0.01)
    assert value(memory, "few_share") == pytest.approx(share)
    assert value(memory, "many_share") == 1
    assert value(product, "one_slowest") == value(product, "one_computing")


def test_what_hides_decides_the_curve_of_a_strategy() -> None:
    chart = curves("strategies-roofline", preset="h100-ndr")
    for mark in chart.marks:
        roof = min(1.0, mark.x)
        if mark.label.startswith("FSDP"):
            assert mark.y == pytest.approx(roof)
        elif mark.label != "DDP":
            assert mark.y == pytest.approx(mark.x / (1 + mark.x))
        else:
            assert 0.5 * roof <= mark.y < roof


def test_ddp_loses_the_forward_pass_that_hides_nothing() -> None:
    chart = curves("strategies-roofline", preset="h100-ndr", tokens=4096, nodes=16)
    backward, forward = 4 * 4096 / 989.4e12, 2 * 4096 / 989.4e12
    sending = 2 * 2 * 15 / 16 / 50e9
    assert sending > backward
    share = (forward + backward) / (forward + sending)
    assert value(chart, "ddp_share") == pytest.approx(share)


def test_a_remedy_shortens_the_longer_of_two_times_or_nothing() -> None:
    work, sending = (value(bars("two-times"), name) for name in ("work_8192", "sending"))
    after = {name: one.value for name, one in bars("two-times-remedies").values.items()}
    assert after["now"] == after["gpu"] == pytest.approx(sending)
    assert after["network"] == after["tokens"] == pytest.approx(sending / 2)
    assert after["gathers"] == pytest.approx(sending * 4 / 6)
    assert after["ports"] == pytest.approx(work)
    assert after["sending_ports"] == pytest.approx(sending / 8)


def test_a_shared_port_brings_in_its_part_of_one_copy_of_the_weights() -> None:
    found = build("shared-ports", {})
    assert isinstance(found, Diagram)
    sent = {
        name: [box.height for box in found.boxes if box.name.startswith(f"{name} port")]
        for name in ("alone", "shared")
    }
    assert len(sent["alone"]) == len(sent["shared"]) == 8
    assert sum(sent["shared"]) == pytest.approx(sent["alone"][0])
    assert found.values["alone"].value == 2 * 8030261248
    assert found.values["shared"].value == pytest.approx(2 * 8030261248 / 8)


def test_the_longer_of_two_times_is_the_step() -> None:
    found = bars("two-times")
    rows = zip(found.labels, *(segment.lengths for segment in found.segments), strict=True)
    for label, work, sending in rows:
        tokens = int(label.removesuffix(" tokens").replace(",", ""))
        assert work == pytest.approx(6 * 8030261248 * tokens / 989.4e12)
        assert sending == pytest.approx(6 * 8030261248 / 50e9)
        # One operation per byte and token, against F / B of the port.
        assert value(found, f"share_{tokens}") == pytest.approx(min(1, tokens / 19788))


def test_a_product_is_counted_entry_by_entry_and_its_sum_by_a_ring() -> None:
    tokens, inputs, outputs = 3, 8, 5
    sizes = {"tokens": tokens, "inputs": inputs, "outputs": outputs, "few": 1}
    found = bars("product-times", split=True, **sizes)
    alone = bars("product-times", **sizes)
    assert alone.values["one_loading"] == found.values["one_loading"]
    assert [segment.name for segment in alone.segments] == ["computing", "loading"]
    memory = curves("memory-roofline", preset="h100-ndr", **sizes)
    assert value(memory, "many_ccr") == value(found, "one_flops") / value(found, "one_loaded")
    entries = [(t, i, o) for t in range(tokens) for i in range(inputs) for o in range(outputs)]
    assert value(found, "one_flops") == 2 * len(entries)
    assert value(found, "near_flops") == 2 * sum(i < inputs // 2 for _, i, _ in entries)
    assert value(found, "one_loaded") == 2 * (tokens * inputs + inputs * outputs + tokens * outputs)
    (sent,) = set(bytes_sent_per_rank(trace("all-reduce", "ring", 2), 2 * tokens * outputs))
    assert value(found, "near_sent") == value(found, "far_sent") == sent
    assert value(found, "near_ratio") == inputs / 2
    assert value(found, "far_sending") == pytest.approx(sent / 50e9)
    assert value(found, "near_sending") == pytest.approx(sent / 450e9)
    assert value(found, "one_computing") == pytest.approx(2 * len(entries) / 989.4e12)
    assert value(found, "one_loading") == pytest.approx(value(found, "one_loaded") / 3.35e12)


def step_ccr(per_node: int, nodes: int, tokens: float) -> tuple[float, float]:
    """Return FLOPs per byte of one rank, and of one NIC per rank, counted in the trace
    of a ring."""
    ranks, parameters, bytes_per_param = per_node * nodes, 1e6, 2
    ring = trace("all-reduce", "ring", ranks)
    work = 6 * parameters * tokens
    links = bytes_per_link(ring, parameters * bytes_per_param)
    out = sum(
        sent
        for (source, target), sent in links.items()
        if source // per_node == 0 and target // per_node != 0
    )
    sent = bytes_sent_per_rank(ring, parameters * bytes_per_param)[0]
    # As many rings as NICs, each with its share of the buffer and its own NIC.
    return work / sent, work / (out / per_node)


@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_marks_of_ddp_are_what_a_counted_ring_sends_over_the_nics(nodes: int) -> None:
    chart = curves("strategies-roofline", preset="h100-ndr", tokens=4096, nodes=nodes)
    single, _ = step_ccr(1, nodes, 4096)
    assert value(chart, "ddp_ccr") == pytest.approx(single)
    _, lent = step_ccr(8, nodes, 4096)
    # FSDP sends half as much again as DDP.
    assert value(chart, "fsdp_nodes_ccr") == pytest.approx(lent / 1.5)
    assert value(chart, "fsdp_ccr") == pytest.approx(single / 1.5)


def test_critical_tokens_are_the_ridge_when_d_is_large() -> None:
    """As in Austin et al. 2025: C / W tokens per chip in 16 bits."""
    found = bars("critical-tokens", nodes=10**9)
    ridges = table("ridge-table")
    for name in ("a100", "h100", "h200", "b200"):
        assert value(found, f"{name}_single") == pytest.approx(value(ridges, f"{name}_bf16_nic"))
        lent = value(found, f"{name}_single") / 8
        assert value(found, f"{name}_nodes") == pytest.approx(lent, rel=1e-8)
        # Inside a node D is 8: 7/8 of what holds for many ranks.
        inside = value(ridges, f"{name}_bf16_scale_up") * 7 / 8
        assert value(found, f"{name}_inside") == pytest.approx(inside, rel=1e-8)


@pytest.mark.parametrize("preset", ["a100", "h100", "h200", "b200"])
@pytest.mark.parametrize("group", ["inside", "nodes", "single"])
def test_at_the_critical_tokens_sending_takes_as_long_as_the_work_behind_it(
    preset: str, group: str
) -> None:
    nodes = 4
    found = bars("critical-tokens", nodes=nodes)
    near, port = {"a100": (300e9, 25e9), "b200": (900e9, 50e9)}.get(preset, (450e9, 50e9))
    bandwidth = {"inside": near, "nodes": min(near, 8 * port), "single": port}[group]
    dp = {"inside": 8, "nodes": 8 * nodes, "single": nodes}[group]
    peak = {"a100": 312e12, "h100": 989.4e12, "h200": 989.4e12, "b200": 2250e12}[preset]
    parameters = 7e9
    # DDP's all-reduce behind backward; FSDP's gather behind forward, gather and scatter behind it
    for collectives, flops in ((2, 4), (1, 2), (2, 4)):
        compute = flops * parameters * value(found, f"{preset}_{group}") / peak
        send = collectives * parameters * 2 * (dp - 1) / dp / bandwidth
        assert compute == pytest.approx(send)


@pytest.mark.parametrize(
    ("network", "gigabits", "gpus"),
    [
        ("gcp-a3-mega", 8 * 200, 8),
        ("gcp-a3-ultra", 3200, 8),
        ("gcp-a4x", 1600, 4),
        ("azure-nd-v5", 3200, 8),
        ("azure-nd-gb200-v6", 4 * 400, 4),
        ("azure-nd-gb300-v6", 4 * 800, 4),
        ("efa-v3", 16 * 200, 8),
        ("efa-v3-p6e-gb200", 1600, 4),
        ("efa-v3-p6e-gb200", 28_800, 72),
        ("efa-v4-p6-b200", 3200, 8),
        ("efa-v4-p6-b300", 6400, 8),
        ("efa-trn3", 28_800, 144),
    ],
)
def test_a_cloud_s_machine_has_the_gigabits_that_its_page_prints(
    network: str, gigabits: float, gpus: int
) -> None:
    """Bandwidth of a whole machine from the clouds' own pages; the catalog has bytes
    per direction."""
    found = link(network)
    whole = found.bandwidth_bytes_per_s * (1 if found.per == "node" else gpus)
    assert 8 * whole == gigabits * 1e9
