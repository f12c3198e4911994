"""Figures of NCCL's choices and of measurements, compared with what NCCL and authors printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from figgen.catalog import MEASUREMENTS, link, nccl_tuning
from figgen.catalog.nccl_links import nccl_group
from figgen.charts import Table
from figgen.errors import InputError
from figgen.figures.collectives.alpha_beta_fit import measured_times
from figgen.models.machine.nccl_channels import Channels
from figgen.models.machine.nccl_tuning import candidates, predicted_time_s
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


def test_the_group_of_64_is_that_of_8_channels_of_48_gb_s() -> None:
    """The graph in NCCL's issue 1041 has eight channels, for H100 with eight 400 Gb/s ports."""
    group = nccl_group(link("nvlink4"), 64, 8, link("ib-ndr"))
    assert (group.ranks, group.nodes, group.channels) == (64, 8, 8)
    assert group.network_bytes_per_s == pytest.approx(48e9)
    assert group.switched == Channels(8, 40e9, 48e9)


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


BY_SIZE = {
    "b200-all-reduce-1-node": ("b200_by_size", 1),
    "b200-all-reduce-4-nodes": ("b200_by_size", 2),
    "h200-all-reduce-1-node": ("h200_by_size", 1),
    "a100-all-reduce-1-node": ("a100_by_size", 3),
}


@pytest.mark.parametrize("name", BY_SIZE)
def test_measured_points_over_size_are_all_that_were_published(name: str) -> None:
    chart = build("all-reduce-measured-by-size", {"measurement": name})
    points = next(line for line in chart.series if line.style == "points")
    table, column = BY_SIZE[name]
    rows = MEASURED[table]["rows"]
    assert len(rows) == 20
    assert points.x == tuple(row[0] * 2**10 for row in rows)
    assert points.y == pytest.approx([row[column] * 1e9 for row in rows])


def test_every_measurement_over_sizes_that_has_a_published_table_has_all_of_it() -> None:
    swept = {m.name for m in MEASUREMENTS.values() if m.over == "message" and len(m.points) > 1}
    assert swept == {*BY_SIZE, "all-reduce-32-ranks"}
    rows = MEASURED["32_ranks_by_size"]["rows"]
    points = MEASUREMENTS["all-reduce-32-ranks"].points
    assert [(size, bus / 1e9) for size, bus in points] == [(k * 2**10, bus) for k, bus, _ in rows]


@pytest.mark.parametrize(("table", "ranks"), [("h200_by_size", 8), ("32_ranks_by_size", 32)])
def test_busbw_over_algbw_as_printed_is_that_of_a_ring(table: str, ranks: int) -> None:
    for size, bus, algorithm in MEASURED[table]["rows"]:
        rounding = 0.005 / algorithm + 0.005 / bus
        assert bus / algorithm == pytest.approx(2 * (ranks - 1) / ranks, rel=rounding), size


def test_times_behind_busbw_are_those_that_nccl_tests_printed() -> None:
    _, sizes, times = measured_times("a100-all-reduce-1-node")
    for size, time, (kib, printed_us, _, busbw) in zip(
        sizes, times, MEASURED["a100_by_size"]["rows"], strict=True
    ):
        assert size == kib * 2**10
        assert time == pytest.approx(printed_us * 1e-6, rel=0.005 / busbw + 0.001)


def test_leaving_the_node_costs_what_its_author_computed() -> None:
    for _, one, four, slowdown in MEASURED["b200_by_size"]["rows"]:
        assert slowdown == pytest.approx(one / four, abs=0.051)
    for kib, bus, each, percent in MEASURED["b200_4_nodes_per_accelerator"]["rows"]:
        measured = dict(MEASUREMENTS["b200-all-reduce-4-nodes"].points)
        assert measured[kib * 2**10] == pytest.approx(bus * 1e9)
        assert bus * 3 / 31 == pytest.approx(each, abs=0.005)
        assert percent == pytest.approx(100 * each / 50, abs=0.051)


@pytest.mark.parametrize("name", BY_SIZE)
def test_at_worst_and_settled_are_over_the_whole_table(name: str) -> None:
    """A loop over the published rows gives what captions call "at most"."""
    values = build("all-reduce-measured-by-size", {"measurement": name}).values
    table, column = BY_SIZE[name]
    link = {"b200": 900e9, "h200": 450e9, "a100": 300e9}[name[:4]]
    one_node = (8, 14 * 3.4e-6, link)
    four_nodes = (32, 56 * 3.4e-6 + 6 * 14e-6, 400e9)
    ranks, latency, rate = four_nodes if "4-nodes" in name else one_node
    ratios, times = [], []
    for row in MEASURED[table]["rows"]:
        sent = 2 * (ranks - 1) / ranks * row[0] * 2**10
        times.append(sent / (row[column] * 1e9))
        ratios.append(times[-1] / (latency + sent / rate))
    settled = times.index(min(times))
    assert values["ring_worst"].value == pytest.approx(max(ratios))
    assert values["ring_settled"].value == pytest.approx(max(ratios[settled:]))
    assert values["fastest_time"].value == pytest.approx(min(times))


def test_what_the_page_says_of_the_worst_misses_holds_over_every_table() -> None:
    """The model is at most twice too fast where times increase with size, and near NCCL
    at 16 GiB."""
    for name in BY_SIZE:
        values = build("all-reduce-measured-by-size", {"measurement": name}).values
        assert values["ring_settled"].value < 2
        assert values["nccl_worst"].value > 2.5
        if MEASUREMENTS[name].tuner == "" or MEASUREMENTS[name].nodes > 1:
            assert values["nccl_last_ratio"].value == pytest.approx(1, abs=0.03)


def test_where_the_tuner_chose_the_catalog_says_so() -> None:
    """The source names the plug-in for its B200 machines, and none elsewhere."""
    for name, found in MEASUREMENTS.items():
        chosen = name.startswith("b200") and found.algorithm == ""
        assert (found.tuner == "ofi") == chosen, name


def test_the_textbook_ring_beside_a_measurement_is_b_s_over_s_plus_n_alpha_b() -> None:
    chart = build("all-reduce-measured-by-size", {"measurement": "b200-all-reduce-1-node"})
    ring = next(line for line in chart.series if line.style == "dashed")
    nab = 8 * 3.4e-6 * 900e9
    assert ring.y == pytest.approx([900e9 * size / (size + nab) for size in ring.x])
    assert chart.rules[0].at == 900e9


def test_the_rings_of_four_nodes_pay_the_network_only_where_they_leave_a_node() -> None:
    chart = build("all-reduce-measured-by-size", {"measurement": "b200-all-reduce-4-nodes"})
    time = 56 * 3.4e-6 + 6 * 14e-6 + 2 * 31 / 32 * 2**20 / 400e9
    ring = next(line for line in chart.series if line.style == "dashed")
    nearest = min(range(len(ring.x)), key=lambda i: abs(ring.x[i] - 2**20))
    size = ring.x[nearest]
    time += 2 * 31 / 32 * (size - 2**20) / 400e9
    assert ring.y[nearest] == pytest.approx(size * 2 * 31 / 32 / time)


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
