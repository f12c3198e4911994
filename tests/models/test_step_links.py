"""Links of a step's calls: their level from looking at every group, their time from the
formulas."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from figgen.errors import InputError
from figgen.formulas.collectives import (
    pairwise_all_to_all_time,
    ring_all_gather_time,
    ring_all_reduce_time,
)
from figgen.models.machine.cluster import Cluster
from figgen.models.machine.layout import layout, mesh_of
from figgen.models.machine.mesh import groups
from figgen.models.machine.nccl_group import NcclGroup
from figgen.models.machine.nccl_tuning import latency_s
from figgen.models.step.step_links import NETWORK, SCALE_UP, GroupLink, call_time, group_link
from figgen.models.step.step_traffic import SEND, Traffic
from tests.models.test_nccl_tuning import CONSTANTS

CLUSTER = Cluster(
    peak_flops_per_s=1e15,
    scale_up_bandwidth_bytes_per_s=450e9,
    network_bandwidth_bytes_per_s=50e9,
    scale_up_latency_s=3.4e-6,
    network_latency_s=14e-6,
)
AXES = ("tp", "cp", "dp", "pp", "dp-cp", "ep", "etp", "edp")


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_a_communicator_is_on_the_network_when_any_of_its_groups_leaves_its_node(
    width: int,
) -> None:
    checked = 0
    for axes in itertools.permutations(("tp", "cp", "dp", "pp", "ep")):
        sizes = {"tp": 2, "cp": 2, "pp": 2, "ep": 2, "order": "-".join(axes)}
        try:
            parallel = layout(nodes=16 // width, gpus_per_node=width, **sizes)
        except InputError:  # dense and expert layers would have different pipelines
            continue
        checked += 1
        for axis in AXES:
            found = groups(mesh_of(parallel, axis), axis)
            touched = [len({rank // width for rank in group}) for group in found]
            link = group_link(parallel, axis)
            assert link.level == (NETWORK if max(touched) > 1 else SCALE_UP)
            assert link.size == len(found[0])
            assert link.members_per_node == max(1, len(found[0]) // max(touched))
        ends = {(row[0] // width, row[-1] // width) for row in groups(parallel.dense, "pp")}
        apart = any(first != last for first, last in ends)
        assert group_link(parallel, "embedding").level == (NETWORK if apart else SCALE_UP)
    assert checked >= 24


def call(collective: str, size: int, buffer: float = 1e9) -> Traffic:
    return Traffic(
        axis="dp",
        purpose="gradients",
        collective=collective,
        phase="end",
        calls=1,
        buffer_bytes=buffer,
        size=size,
    )


@pytest.mark.parametrize("size", [2, 3, 8])
def test_calls_inside_a_node_take_the_time_of_the_formulas(size: int) -> None:
    link = GroupLink(SCALE_UP, size, size)
    inside = (450e9, 3.4e-6)
    for collective, formula in (
        ("all-reduce", ring_all_reduce_time),
        ("all-gather", ring_all_gather_time),
        ("reduce-scatter", ring_all_gather_time),
        ("all-to-all", pairwise_all_to_all_time),
    ):
        expected = formula(size, 1e9, inside[1], inside[0])
        assert call_time(call(collective, size), link, CLUSTER).total_s == pytest.approx(expected)
    message = call_time(call(SEND, size), link, CLUSTER)
    assert message.total_s == pytest.approx(3.4e-6 + 1e9 / 450e9)


@pytest.mark.parametrize(("members", "bandwidth"), [(1, 50e9), (2, 100e9), (8, 400e9), (16, 450e9)])
def test_ranks_on_a_node_lend_each_other_their_adapters(members: int, bandwidth: float) -> None:
    link = GroupLink(NETWORK, 16, members)
    # Hops between nodes are as many as the nodes, less one; the others stay inside.
    across = 16 // members - 1
    hop_s = (across * 14e-6 + (15 - across) * 3.4e-6) / 15
    expected = ring_all_reduce_time(16, 1e9, hop_s, bandwidth)
    assert call_time(call("all-reduce", 16), link, CLUSTER).total_s == pytest.approx(expected)


@pytest.mark.parametrize(("ranks", "nodes"), [(16, 2), (512, 64), (8, 8)])
@pytest.mark.parametrize("collective", ["all-reduce", "all-gather", "reduce-scatter"])
def test_as_many_hops_of_a_ring_are_between_nodes_as_nccl_reckons(
    collective: str, ranks: int, nodes: int
) -> None:
    """It compares by how much both models grow if the network's latency is a millisecond longer."""
    late_s, near = 1e-3, ranks // nodes
    known = CONSTANTS.step_latency_s | {
        "net": {name: s + late_s for name, s in CONSTANTS.step_latency_s["net"].items()}
    }
    group = NcclGroup(
        ranks=ranks, channels=12, channel_bytes_per_s=30e9, network_bytes_per_s=50e9, nodes=nodes
    )
    way = (group, collective, "ring", "simple")
    more = latency_s(replace(CONSTANTS, step_latency_s=known), *way) - latency_s(CONSTANTS, *way)
    link, slow = GroupLink(NETWORK, ranks, near), replace(CLUSTER, network_latency_s=14e-6 + late_s)
    one, other = (call_time(call(collective, ranks), link, on).latency_s for on in (CLUSTER, slow))
    assert other - one == pytest.approx(more)


def test_an_all_to_all_uses_both_links_and_waits_for_the_slower_one() -> None:
    # Eight of 64 ranks on each node: 56/64 of the buffer through the adapter, 7/64 inside.
    found = call_time(call("all-to-all", 64), GroupLink(NETWORK, 64, 8), CLUSTER)
    assert found.bytes_s == pytest.approx(56 / 64 * 1e9 / 50e9)
    assert found.latency_s == pytest.approx(63 * 14e-6)
    # With an adapter as fast as the node's own links, the peers inside do not matter either.
    fast_network = Cluster(
        peak_flops_per_s=1e15,
        scale_up_bandwidth_bytes_per_s=1e9,
        network_bandwidth_bytes_per_s=450e9,
    )
    inside = call_time(call("all-to-all", 64), GroupLink(NETWORK, 64, 8), fast_network)
    assert inside.bytes_s == pytest.approx(7 / 64 * 1e9 / 1e9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"peak_flops_per_s": 0}, "peak_flops_per_s of a cluster: expected > 0, got 0"),
        ({"network_bandwidth_bytes_per_s": -1}, "network_bandwidth_bytes_per_s of a cluster"),
        ({"network_latency_s": -1}, "network_latency_s of a cluster: expected >= 0, got -1"),
    ],
)
def test_a_cluster_without_rates_is_refused(change: dict[str, float], message: str) -> None:
    given = {
        "peak_flops_per_s": 1.0,
        "scale_up_bandwidth_bytes_per_s": 1.0,
        "network_bandwidth_bytes_per_s": 1.0,
    }
    with pytest.raises(InputError, match=message):
        Cluster(**(given | change))
