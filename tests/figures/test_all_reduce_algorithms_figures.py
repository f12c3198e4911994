"""Comparing all-reduce algorithms: their times and bytes against proven traces that are timed."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest

from figgen.models.collectives import bytes_per_link, synchronous_time_s, trace
from figgen.registry import build
from figgen.scenarios.stories.all_reduce import (
    COMPARED,
    DOUBLE_TREE,
    LEADERS,
    RING,
    RING_PER_NIC,
    TWO_LEVEL,
    Algorithm,
    Machine,
    competitors,
    envelope,
    lines,
    machine,
)

ONE, EIGHT = machine("h100-ndr", 1), machine("h100-ndr", 8)
SIZES = tuple(10.0**k for k in range(3, 11))
# The formula of the double tree is a limit; both levels of the others have no common step.
STEPPED = tuple(a for a in COMPARED if a is not DOUBLE_TREE and not a.levels)


@pytest.mark.parametrize("m", [ONE, machine("a100-hdr", 2), machine("b200-ndr", 4)])
@pytest.mark.parametrize("algorithm", STEPPED, ids=lambda a: a.traced)
def test_times_of_flat_algorithms_are_those_of_their_traces_run_step_by_step(
    m: Machine, algorithm: Algorithm
) -> None:
    run = trace("all-reduce", algorithm.traced, m.ranks)
    for size in SIZES:
        played = synchronous_time_s(run, size, m.latency_s, m.bandwidth_bytes_per_s)
        assert algorithm.time(m, size, 1) == pytest.approx(played)


def test_the_double_tree_approaches_its_limit_from_above_as_segments_grow() -> None:
    limit = DOUBLE_TREE.time(ONE, 1e9, 0)
    played = [
        synchronous_time_s(
            trace("all-reduce", "double-binary-tree", 8, segments=k), 1e9, 0.0, 450e9
        )
        for k in (1, 4, 16, 64)
    ]
    assert played == sorted(played, reverse=True)
    assert limit < played[-1] < 1.1 * limit


@pytest.mark.parametrize(
    ("preset", "nodes", "seconds"),
    [("a100-hdr", 1, 0.816666667), ("h100-ndr", 1, 0.544444444)],
)
def test_140_gb_on_8_gpus_takes_the_corrected_time(preset: str, nodes: int, seconds: float) -> None:
    assert RING.time(machine(preset, nodes), 140e9, 0) == pytest.approx(seconds)


def busiest_across(algorithm: str, **options: int) -> float:
    """Return the most bytes that a rank of 8 nodes of 8 sends to other nodes, over the message
    size."""
    out = [0.0] * 64
    for (source, target), sent in bytes_per_link(
        trace("all-reduce", algorithm, 64, **options), 1.0
    ).items():
        if source // 8 != target // 8:
            out[source] += sent
    return max(out)


def test_bytes_through_a_nic_are_those_that_the_traces_send_to_other_nodes() -> None:
    rows = build("all-reduce-nic-bytes", {"nodes": 8}).rows
    assert [row[2] for row in rows] == pytest.approx(
        [
            busiest_across("ring"),
            busiest_across("hierarchical-leader", ranks_per_node=8),
            busiest_across("ring") / 8,
            busiest_across("hierarchical", ranks_per_node=8),
        ]
    )
    assert [round(row[2], 3) for row in rows] == [1.969, 1.75, 0.246, 0.219]
    assert [row[1] for row in rows] == [1, 1, 8, 8]
    assert [row[3] for row in rows] == pytest.approx([row[2] * 1e9 / 50e9 for row in rows])
    assert [row[4] for row in rows] == [
        a.time(EIGHT, 1e9, 1) for a in (RING, LEADERS, RING_PER_NIC, TWO_LEVEL)
    ]


def test_a_ring_per_nic_is_limited_by_whichever_link_is_slower() -> None:
    assert RING_PER_NIC.time(EIGHT, 1e9, 0) == pytest.approx(2 * 63 / 64 / 400)
    xdr = machine("b300-xdr", 8)  # eight ports of 100 GB/s, and 900 GB/s within the node
    assert RING_PER_NIC.time(xdr, 1e9, 0) == pytest.approx(2 * 63 / 64 / 800)
    assert RING_PER_NIC.time(EIGHT, 0.0, 1) == pytest.approx((126 - 14) * 3.4e-6 + 14 * 14e-6)


@pytest.mark.parametrize("preset", ["a100-hdr", "h100-ndr", "b200-ndr"])
@pytest.mark.parametrize("nodes", [1, 2, 8, 32])
def test_the_envelope_names_the_fastest_at_every_size(preset: str, nodes: int) -> None:
    m = machine(preset, nodes)
    found = envelope(lines(m, competitors(m)))
    assert found[0][1] == 0
    assert all(low < high for (_, low), (_, high) in pairwise(found))
    for k in range(120, 440):
        size = 10 ** (k / 40)
        named = [title for title, start in found if start <= size][-1]
        times = {a.title: a.time(m, size, 1) for a in competitors(m)}
        assert times[named] == pytest.approx(min(times.values()), rel=1e-9)


def test_eight_ranks_go_from_recursive_doubling_to_halving_doubling() -> None:
    found = envelope(lines(ONE, competitors(ONE)))
    assert [title for title, _ in found] == ["recursive doubling", "halving-doubling"]
    assert found[1][1] == pytest.approx(3 * 3.4e-6 * 450e9 / (3 - 1.75))


@pytest.mark.parametrize(
    ("m", "alphas"), [(ONE, 8 / (2 - 2 * 7 / 8)), (EIGHT, 114 / (2 - 2 * 63 / 64))]
)
def test_the_ring_overtakes_the_double_tree_where_their_terms_say(
    m: Machine, alphas: float
) -> None:
    found = envelope(lines(m, (RING, DOUBLE_TREE)))
    assert [title for title, _ in found] == ["double binary tree", "ring"]
    assert found[1][1] == pytest.approx(alphas * m.latency_s * m.bandwidth_bytes_per_s)


def test_without_a_faster_algorithm_the_envelope_is_one_line() -> None:
    assert envelope({"a": (1.0, 1.0), "b": (1.0, 2.0), "c": (2.0, 1.0)}) == (("a", 0.0),)


@pytest.mark.parametrize("term", ["latency", "transfer"])
@pytest.mark.parametrize("algorithm", COMPARED, ids=lambda a: a.title)
def test_the_printed_terms_are_what_the_formulas_compute(algorithm: Algorithm, term: str) -> None:
    printed = getattr(algorithm, term)
    for sign, name in (
        ("⌈log₂ n⌉", " L "), ("log₂ n", " L "), ("αᵢ", " ai "), ("α", " a "), ("Bᵢ", "Bi"),
        ("gB", "g*B"), ("−", "-"), ("2(", "2*("),
    ):  # fmt: skip
        printed = printed.replace(sign, name)
    printed = re.sub(r"(?<=[\w)]) +(?=[\w(])", "*", printed.strip())
    m = EIGHT if algorithm.levels else ONE
    names = {
        "n": m.ranks,
        "N": m.nodes,
        "g": 8,
        "S": 1e9,
        "a": m.latency_s,
        "ai": 3.4e-6,
        "B": m.bandwidth_bytes_per_s,
        "Bi": 450e9,
        "L": math.ceil(math.log2(m.ranks)),
        "min": min,
    }
    value = eval(printed, {"__builtins__": {}}, names)
    computed = algorithm.time(m, 0.0, 1) if term == "latency" else algorithm.time(m, 1e9, 0)
    assert value == pytest.approx(computed)


def test_the_algorithm_table_counts_the_bytes_of_the_busiest_rank() -> None:
    rows = build("all-reduce-algorithms", {"nodes": 1}).rows
    assert [row[3] for row in rows] == [7, 3, 3, 1.75, 2, 1.75]
    values = build("all-reduce-algorithms", {"nodes": 8}).values
    assert values["best_small"].value == "recursive doubling"
    assert values["best_large"].value == "a ring per NIC"
    assert values["ring_large"].value == pytest.approx(126 * 14e-6 + 2 * 63 / 64 / 50)


def test_regions_follow_each_other_without_a_gap() -> None:
    rows = [row for row in build("all-reduce-regions", {}).rows if row[:2] == ("64 ranks", "all")]
    ends = [row[2].split(" to ")[-1].removeprefix("up to ") for row in rows[:-1]]
    starts = [row[2].split(" to ")[0].removeprefix("from ") for row in rows[1:]]
    assert ends == starts
    assert rows[0][2].startswith("up to")
    assert rows[-1][2].startswith("from")


def test_relative_times_are_never_below_one_and_one_is_always_reached() -> None:
    chart = build("all-reduce-times", {"nodes": 8, "relative": True})
    assert min(min(line.y) for line in chart.series) == 1
    assert all(min(line.y[i] for line in chart.series) == 1 for i in range(len(chart.series[0].x)))
    plain = build("all-reduce-times", {"nodes": 8})
    assert [mark.x for mark in plain.marks] == [mark.x for mark in chart.marks]
    assert len(plain.marks) == 3
