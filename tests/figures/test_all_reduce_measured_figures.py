"""Figures of NCCL's choices and of measurements, against what NCCL and their authors printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from figgen.catalog import link, nccl_tuning
from figgen.catalog.nccl_links import nccl_group
from figgen.charts import Table
from figgen.errors import InputError
from figgen.models.nccl_tuning import candidates, predicted_time_s
from figgen.registry import build

ORACLES = Path(__file__).parents[1] / "oracles"
MEASURED = json.loads((ORACLES / "all_reduce_measurements.json").read_text("utf-8"))


def test_nccl_on_8_h200_changes_where_it_said_it_does() -> None:
    assert MEASURED["h200_8_gpus_reported_choice"] == {
        "ring ll": "up to 1 MiB",
        "nvls simple": "from 2 MiB",
    }
    sizes = [2.0**k for k in range(15, 24)]
    rows = build("nccl-choices", {"nodes": [1], "message_bytes": sizes}).rows
    chosen = {row[2]: row[1] for row in rows}
    assert {chosen[size] for size in sizes if size <= 2**20} == {"ring, LL"}
    assert {chosen[size] for size in sizes if size >= 2**21} == {"NVLS, Simple"}


def test_the_group_of_64_is_that_of_16_channels_of_24_gb_s() -> None:
    group = nccl_group(link("nvlink4"), 64, 8, link("ib-ndr"))
    assert (group.ranks, group.nodes, group.channels) == (64, 8, 16)
    assert group.network_bytes_per_s == pytest.approx(24e9)
    assert group.channels * group.channel_bytes_per_s == pytest.approx(18 * 20.6e9)


@pytest.mark.parametrize("nodes", [1, 8])
def test_the_choice_is_the_fastest_of_all_candidates(nodes: int) -> None:
    constants = nccl_tuning().constants
    group = nccl_group(link("nvlink4"), 8 * nodes, nodes, link("ib-ndr"))
    for row in build("nccl-choices", {"nodes": [nodes]}).rows:
        times = [
            predicted_time_s(constants, group, "all-reduce", *pair, row[2])
            for pair in candidates(constants, group, "all-reduce")
        ]
        assert row[3] == min(times)
        assert row[4] == pytest.approx(row[2] / row[3] * 2 * (1 - 1 / group.ranks))


@pytest.mark.parametrize(("nodes", "switched"), [(1, "NVLS"), (8, "NVLS tree")])
def test_each_line_of_nccl_is_its_best_protocol(nodes: int, switched: str) -> None:
    chart = build("nccl-all-reduce-times", {"nodes": nodes})
    names = {line.name.removeprefix("NCCL ") for line in chart.series[:-1]}
    assert names == {"ring", "tree", switched}
    least = [min(line.y[0] for line in chart.series[:-1])]
    sizes = [chart.series[0].x[0]]
    rows = build("nccl-choices", {"nodes": [nodes], "message_bytes": sizes}).rows
    assert [row[3] for row in rows] == least


BY_SIZE = {"b200-all-reduce-1-node": (1, 8), "b200-all-reduce-4-nodes": (2, 32)}


@pytest.mark.parametrize("name", BY_SIZE)
def test_measured_points_over_size_are_the_published_ones(name: str) -> None:
    chart = build("all-reduce-measured-by-size", {"measurement": name})
    points = next(line for line in chart.series if line.style == "points")
    column, _ = BY_SIZE[name]
    rows = MEASURED["b200_by_size"]["rows"]
    assert points.x == tuple(row[0] * 2**20 for row in rows)
    assert points.y == pytest.approx([row[column] * 1e9 for row in rows])


def test_the_textbook_ring_beside_a_measurement_is_b_s_over_s_plus_n_alpha_b() -> None:
    chart = build("all-reduce-measured-by-size", {"measurement": "b200-all-reduce-1-node"})
    ring = next(line for line in chart.series if line.style == "dashed")
    nab = 8 * 3.4e-6 * 900e9
    assert ring.y == pytest.approx([900e9 * size / (size + nab) for size in ring.x])
    assert chart.rules[0].at == 900e9


def test_the_rings_of_four_nodes_pay_the_network_only_where_they_leave_a_node() -> None:
    chart = build("all-reduce-measured-by-size", {"measurement": "b200-all-reduce-4-nodes"})
    time = 56 * 3.4e-6 + 6 * 14e-6 + 2 * 31 / 32 * 2**20 / 400e9
    assert chart.values["ring_first"].value == pytest.approx(2**20 * 2 * 31 / 32 / time)
    assert chart.values["ring_worst"].value > chart.values["ring_first"].value / 5.37e9 > 1


def test_measured_points_over_gpus_are_the_published_ones() -> None:
    names = ["h200-all-reduce-by-gpus", "h200-all-reduce-by-gpus-ring"]
    names += [name.replace("h200", "b200") for name in names]
    chart = build("all-reduce-measured-by-ranks", {"measurements": names, "names": [*"abcd"]})
    rows = MEASURED["by_gpus"]["rows"]
    for column, line in enumerate(chart.series, 1):
        assert line.x == tuple(row[0] for row in rows)
        assert line.y == pytest.approx([row[column] * 1e9 for row in rows])
    assert [rule.at for rule in chart.rules] == [450e9, 900e9]


def bandwidths(*names: str) -> Table:
    return build("bus-bandwidth-table", {"measurements": [*names], "names": [*names]})


@pytest.mark.parametrize("name", MEASURED["share_of_450_gb_s"])
def test_busbw_over_the_link_is_the_published_share(name: str) -> None:
    share = bandwidths(name).rows[0][-1]
    assert round(share, 2) == MEASURED["share_of_450_gb_s"][name]


def test_the_time_behind_a_busbw_is_the_one_that_its_author_computed() -> None:
    row = bandwidths("b200-all-reduce-4-nodes").rows[0]
    printed = MEASURED["b200_4_nodes_16_gib"]["time_ms"]
    assert row[2] == pytest.approx(printed / 1e3, abs=0.05e-3)
    assert row[3] == pytest.approx(2**34 / row[2])
    assert row[4] / row[3] == pytest.approx(2 * 31 / 32)
    assert row[5] == 400e9


def test_nccl_has_no_constant_for_a_torus_link() -> None:
    with pytest.raises(InputError, match="ici-v4"):
        nccl_group(link("ici-v4"), 8, 1, link("ib-ndr"))
