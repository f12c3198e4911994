"""Rings and posted all-to-alls over nodes, compared with closed forms and measured times."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from figgen.catalog import LINKS, nccl_tuning
from figgen.catalog.nccl_links import message_gap, nccl_group
from figgen.errors import InputError
from figgen.formulas.collectives import ring_all_reduce_time
from figgen.formulas.hierarchical_collectives import nccl_ring_latency
from figgen.models.collectives.two_levels import (
    TwoLevels,
    posted_all_to_all_time_s,
    ring_time_s,
)
from figgen.models.machine.nccl_tuning import predictions

TIMES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "collective_times.json").read_text("utf-8")
)


def levels(ranks: int, width: int, far_bytes_per_s: float = 50e9) -> TwoLevels:
    return TwoLevels(
        ranks=ranks,
        ranks_per_node=width,
        near_latency_s=3.4e-6,
        near_bytes_per_s=450e9,
        far_latency_s=14e-6,
        far_bytes_per_s=far_bytes_per_s,
    )


def test_a_ring_in_one_node_is_the_textbooks() -> None:
    expected = ring_all_reduce_time(8, 1e9, 3.4e-6, 450e9)
    assert ring_time_s(levels(8, 8), 1e9, laps=2) == pytest.approx(expected)


@pytest.mark.parametrize(("ranks", "width"), [(16, 8), (64, 8), (12, 4), (8, 1)])
def test_a_ring_over_nodes_has_the_latency_that_nccl_reckons_with(ranks: int, width: int) -> None:
    expected = nccl_ring_latency(ranks, ranks // width, 0, 3.4e-6, 14e-6)
    assert ring_time_s(levels(ranks, width), 0, laps=2) == pytest.approx(expected)


def test_the_ports_of_a_node_carry_a_ring_together() -> None:
    slow = ring_time_s(levels(16, 8, 1e9), 1e9, laps=2) - ring_time_s(levels(16, 8), 0, laps=2)
    assert slow == pytest.approx(2 * 15 / 16 * 1e9 / 8e9)


def test_an_all_to_all_over_a_slow_network_takes_what_leaves_the_node() -> None:
    """56 of 64 parts of 268 MB over 1.5625 GB/s are 150 ms."""
    time_s = posted_all_to_all_time_s(levels(64, 8, 1.5625e9), 268435456, message_gap_s=0)
    assert time_s == pytest.approx(56 / 64 * 268435456 / 1.5625e9 + 14e-6)


def test_an_all_to_all_over_nodes_takes_what_was_measured() -> None:
    gap, errors = message_gap("efa-v2-p5").value, {}
    for nodes, rows in TIMES["smol_all_to_all_us_by_nodes"].items():
        if nodes == "1":
            continue
        group = levels(8 * int(nodes), 8)
        errors[nodes] = [
            1e6 * posted_all_to_all_time_s(group, size, message_gap_s=gap) / measured_us - 1
            for size, measured_us in rows
        ]
    every = np.abs(np.concatenate(list(errors.values())))
    assert every.max() < 0.5
    assert every.mean() < 0.2
    # A latency for each of the peers would be 0.88 ms of 64 ranks, whatever the size.
    measured = dict(TIMES["smol_all_to_all_us_by_nodes"]["8"])
    assert max(us for size, us in measured.items() if 4096 <= size <= 2**22) < 0.5 * 63 * 14


def test_the_gap_is_the_slope_of_short_messages_over_ranks_of_other_nodes() -> None:
    shortest = {
        8 * int(nodes) - 8: min(us for _, us in rows[:6])
        for nodes, rows in TIMES["smol_all_to_all_us_by_nodes"].items()
    }
    slope = np.polyfit(list(shortest), list(shortest.values()), 1)[0]
    gap = message_gap("efa-v2-p5")
    assert gap.low is not None
    assert gap.high is not None
    assert gap.low <= slope * 1e-6 <= gap.high
    assert gap.value == pytest.approx(slope * 1e-6, rel=0.15)


def test_nccl_chooses_the_algorithm_whose_rate_was_measured_in_a_node() -> None:
    for name, table in TIMES["azure_all_reduce_bus_gb_s"].items():
        group = nccl_group(LINKS[table["link"]], 8, 1, LINKS["ib-ndr"])
        large = [row for row in table["all_reduce"] if row[0] >= 250e6]
        assert len(large) > 4
        for size, measured in large:
            best = predictions(nccl_tuning().constants, group, "all-reduce", size)[0]
            rate = 2 * 7 / 8 * size / best.time_s / 1e9
            assert rate == pytest.approx(measured, rel=0.12), (name, size)
            assert (best.algorithm == "nvls") == (table["link"] == "nvlink4")


def test_ranks_that_fill_no_whole_node_are_refused() -> None:
    with pytest.raises(InputError, match="multiple of 8 per node"):
        levels(12, 8)
