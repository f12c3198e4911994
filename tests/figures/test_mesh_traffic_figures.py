"""Figures of traffic and crossings, compared with published layouts and hand-computed volumes."""

from __future__ import annotations

import pytest

from figgen import catalog
from figgen.errors import InputError
from figgen.figures.mesh.traffic import setup_of
from figgen.models.machine.layout import layout
from figgen.models.setup.stage_layers import stage_shares
from figgen.registry import build
from figgen.scenarios.options.resolve import parallel_layout, training_step


def test_llama_3_tensor_traffic_is_ten_times_that_of_the_next_axis() -> None:
    chart = build(
        "axis-traffic", {"run": "llama-3-405b-131k", "order": "llama3", "nic": "roce-400g"}
    )
    sent = {row[0]: row[4] for row in chart.rows}
    # 126 layers on 16 stages, 16 sequences per replica, 8,192 tokens per context rank.
    passes = 126 / 16 * 16
    # A gather and a scatter around two blocks, forward and backward, and both inputs once more.
    assert sent["TP"] == 10 * passes * 7 / 8 * 8192 * 16384 * 2
    assert sent["CP"] == 3 * passes * 15 / 16 * 2 * 131_072 * 128 * 2
    # Norms, two a layer and one at the end, are whole on each of the eight tensor ranks.
    held = 405_853_388_800 + 7 * 253 * 16_384
    assert sent["DP×CP"] == pytest.approx(127 / 128 * held / 128 * (4 + 2))
    # Half of the operations reduce the largest buffer, half gather 16-bit weights, half as much.
    calls, largest = next(row[2:4] for row in chart.rows if row[0] == "DP×CP")
    by_hand = 127 / 128 * calls / 2 * (largest + largest / 2)
    assert sent["DP×CP"] == pytest.approx(by_hand, rel=1e-2)  # chunks differ by a layer
    # Four chunks a rank, as on the run's own page.
    page = training_step(run="llama-3-405b-131k")
    assert page.setup.chunks == 4
    assert sent["PP"] == 2 * 4 * 16 * 8192 * 16384 * 2 / 8
    messages = next(row for row in page.estimate.rows if row.axis == "pp")
    assert sent["PP"] == messages.calls * messages.call_bytes
    assert chart.values["most_over_next"].value == sent["TP"] / sent["CP"]
    assert sorted(sent.values(), reverse=True) == list(sent.values())
    times = {row[0]: row[-1] for row in chart.rows}
    assert times["TP"] == sent["TP"] / 450e9
    assert times["PP"] == sent["PP"] / 50e9
    assert [row[6] for row in chart.rows] == [
        "inside a node",
        "between 16 nodes",
        "between 128 nodes",
        "between 16 nodes",
    ]


def test_a_ninth_of_the_all_to_alls_of_64_experts_stays_on_a_node_of_eight() -> None:
    chart = build("axis-traffic", {"run": "deepseek-v3", "nic": "ib-ndr"})
    found = {row[0]: row for row in chart.rows}["EP"]
    # 61 layers, three of them dense, and the module of multi-token prediction, on 16 stages.
    sent = 59 / 16 * 120 * 4 * 63 / 64 * 4096 * 8 * 7168 * 2
    assert found[3:6] == pytest.approx((4096 * 8 * 7168 * 2, sent, sent * 56 / 63))
    assert found[-1] == pytest.approx(sent * 56 / 63 / 50e9)
    # Megatron-Bridge's cut of the 61 layers, which the page tells: a layer with experts beside
    # the dense ones, four on each inner stage, and one beside the module on the last.
    run = catalog.run("deepseek-v3")
    setup = setup_of(run, parallel_layout(run="deepseek-v3"), 1, 4.0)
    shares = stage_shares(setup.shape, 16, setup.layers_per_stage, mtp_layers=setup.mtp_layers)
    assert [share.expert_layers for share in shares] == [1, *[4] * 14, 2]


def test_a_run_without_what_it_takes_is_refused() -> None:
    eight = layout(nodes=1, gpus_per_node=8, tp=8)
    with pytest.raises(InputError, match="a published global batch"):
        setup_of(catalog.run("opt-175b"), eight, 1, 2.0)
    with pytest.raises(InputError, match="a divisor of 128, got 3"):
        setup_of(catalog.run("llama-3-405b-131k"), eight, 3, 2.0)


ORDERS = ["tp-cp-pp-dp", "tp-cp-dp-pp", "cp-tp-pp-dp", "dp-tp-cp-pp", "pp-tp-cp-dp"]


def test_only_the_fastest_axis_decides_how_many_bytes_leave_the_node_when_it_fills_it() -> None:
    chart = build("order-network-bytes", {"run": "llama-3-405b-131k", "orders": ORDERS})
    by_axis = {segment.name: segment.lengths for segment in chart.segments}
    totals = [sum(lengths) for lengths in zip(*by_axis.values(), strict=True)]
    assert totals[0] == totals[1] == min(totals) == chart.values["first"].value
    assert by_axis["TP"][:2] == (0, 0)
    assert len(set(by_axis["TP"][2:])) == 1
    # A CP group of 16 on nodes of eight crosses with two of its 16 links.
    assert by_axis["CP"][2] == pytest.approx(by_axis["CP"][0] / 8)
    assert chart.values["ratio"].value == pytest.approx(max(totals) / min(totals))
    assert {segment.role for segment in chart.segments} == {"tp", "cp", "dp", "pp"}


def test_with_tp_filling_the_node_every_link_of_the_other_axes_leaves_it() -> None:
    rows = build("node-crossings", {"preset": "map-128"}).rows
    shares = {row[0]: row[5] for row in rows}
    assert shares == {"TP": 0, "CP": 1, "DP": 1, "PP": 1, "EP": 0, "EDP": 1, "DP×CP": 1}
    # Ring all-reduce of 1 GB over n ranks: each GPU sends 2 (n − 1)/n of it, on its own adapter.
    for column in (-2, -1):
        sent = {row[0]: row[column] for row in rows}
        assert (sent["DP"], sent["PP"], sent["DP×CP"]) == (1e9, 1.5e9, 1.5e9)


def test_half_the_links_of_a_dp_cp_ring_cross_when_two_of_its_gpus_share_a_node() -> None:
    rows = build("node-crossings", {"sizes": "nodes=16 gpus_per_node=8 tp=4 cp=2 pp=4"}).rows
    found = {row[0]: row for row in rows}
    assert found["CP"][5] == 0
    assert found["DP×CP"][5] == 0.5
    # Eight ranks, two on each of four nodes: one ring leaves a node from one of them, two from
    # both.
    assert found["DP×CP"][1] == 8
    assert found["DP×CP"][3] == 4
    assert found["DP×CP"][-2] == pytest.approx(2 * 7 / 8 * 1e9)
    assert found["DP×CP"][-1] == pytest.approx(2 * 7 / 8 * 1e9 / 2)


@pytest.mark.parametrize(
    ("preset", "touched"),
    [
        ("map-8", (1, 1, 1, 1, 1)),
        ("map-16", (1, 1, 1, 1, 2)),
        ("map-32", (1, 1, 1, 2, 2)),
        ("map-64", (1, 1, 1, 4, 2)),
        ("map-128", (1, 2, 1, 2, 4)),
        ("map-256", (1, 1, 1, 16, 2)),
    ],
)
def test_nodes_touched_by_tp_cp_ep_dp_pp_groups(preset: str, touched: tuple[int, ...]) -> None:
    rows = {row[0]: row[3] for row in build("node-crossings", {"preset": preset}).rows}
    assert tuple(rows[axis] for axis in ("TP", "CP", "EP", "DP", "PP")) == touched
