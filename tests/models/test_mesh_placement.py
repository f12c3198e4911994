"""Placement compared with plain loops over ranks, and bytes per NIC with a conservation law."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from figgen.errors import InputError
from figgen.formulas.rank_mapping import local_rank, node_of_rank
from figgen.models.machine.layout import layout
from figgen.models.machine.mesh import RankMesh, group_array, groups
from figgen.models.machine.placement import (
    LABELS,
    communicator,
    communicators,
    inter_node_links,
    mesh_communicator,
    nodes_touched,
    warnings,
)
from figgen.models.step.nic_load import nic_bytes
from figgen.models.step.step_traffic import sent_bytes


def mesh(**sizes: int) -> RankMesh:
    return RankMesh(tuple(sizes.items()))


def test_nodes_and_links_are_those_of_a_walk_around_each_ring() -> None:
    for sizes in itertools.product((1, 2, 3, 4), repeat=3):
        grid = mesh(tp=sizes[0], dp=sizes[1], pp=sizes[2])
        for gpus, axes in itertools.product((2, 4, 5, 8), ("tp", "dp", "pp", "tp-pp")):
            touched, crossing, links = [], [], 0
            for ring in groups(grid, axes):
                steps = list(zip(ring, ring[1:] + ring[:1], strict=True)) if len(ring) > 1 else []
                touched.append(len({rank // gpus for rank in ring}))
                crossing.append(sum(a // gpus != b // gpus for a, b in steps))
                links += len(steps)
            rows = group_array(grid, axes)
            assert nodes_touched(rows, gpus).tolist() == touched
            assert inter_node_links(rows, gpus).tolist() == crossing
            summary = mesh_communicator(grid, axes, gpus)
            assert summary.inter_node_links == sum(crossing)
            assert summary.intra_node_links == links - sum(crossing)
            assert summary.crossing_groups == sum(count > 1 for count in touched)
            assert (summary.nodes_touched_min, summary.nodes_touched_max) == (
                min(touched),
                max(touched),
            )
            assert all(c == (t if t > 1 else 0) for c, t in zip(crossing, touched, strict=True))


def test_ep_group_of_256_gpus_leaves_its_node_unless_etp_is_1() -> None:
    default = layout(nodes=32, gpus_per_node=8, tp=8, pp=2, ep=8)
    assert groups(default.expert, "ep")[0] == (0, 8, 16, 24, 32, 40, 48, 56)
    summary = communicator(default, "ep")
    assert (summary.size, summary.group_count, summary.stride) == (8, 32, 8)
    assert (summary.nodes_touched_max, summary.crossing_groups) == (8, 32)
    assert (summary.intra_node_links, summary.inter_node_links) == (0, 256)
    assert summary.inter_node_share == 1.0
    folded = communicator(layout(nodes=32, gpus_per_node=8, tp=8, pp=2, ep=8, etp=1), "ep")
    assert (folded.stride, folded.crossing_groups, folded.inter_node_share) == (1, 0, 0.0)


def test_dp_group_with_tp_8_stays_on_one_rail() -> None:
    parallel = layout(nodes=8, gpus_per_node=8, tp=8, pp=4)
    for index, ranks in enumerate(groups(parallel.dense, "dp")):
        assert {local_rank(rank, 8) for rank in ranks} == {index % 8}
    assert node_of_rank(63, 8) == 7


def test_communicators_list_dense_ones_and_expert_ones_only_with_experts() -> None:
    full = communicators(layout(nodes=2, gpus_per_node=8, tp=2))
    assert tuple(summary.name for summary in full) == tuple(LABELS)
    for summary in full:
        assert summary.size * summary.group_count == 16
        ring_links = 16 if summary.size > 1 else 0
        assert summary.intra_node_links + summary.inter_node_links == ring_links
    dense = communicators(layout(nodes=2, gpus_per_node=8, tp=2, order="llama3"))
    assert tuple(summary.name for summary in dense) == ("tp", "cp", "dp", "pp", "dp-cp")


def test_stride_of_several_axes_is_given_only_when_uniform() -> None:
    for sizes in itertools.product((1, 2, 3), repeat=3):
        grid = mesh(tp=sizes[0], dp=sizes[1], pp=sizes[2])
        for axes in ("tp-dp", "dp-pp", "tp-pp", "tp-dp-pp"):
            rows = group_array(grid, axes)
            steps = set(np.diff(rows, axis=1).ravel().tolist())
            expected = steps.pop() if len(steps) == 1 else None
            assert mesh_communicator(grid, axes, 1).stride == expected


def test_a_group_of_one_has_no_links() -> None:
    summary = mesh_communicator(mesh(tp=1, dp=4), "tp", 2)
    assert (summary.intra_node_links, summary.inter_node_links) == (0, 0)
    assert summary.inter_node_share == 0.0


@pytest.mark.parametrize(
    ("collective", "expected"),
    [("all-reduce", 1.96875), ("all-gather", 0.984375), ("reduce-scatter", 0.984375)],
)
def test_a_ring_of_64_sends_this_over_each_link(collective: str, expected: float) -> None:
    assert sent_bytes(collective, 64, 1.0) == expected


@pytest.mark.parametrize(("nics", "expected"), [(1, 1.96875), (8, 0.24609375)])
def test_a_flat_ring_of_64_gpus_loads_each_nic_with_this_share(nics: int, expected: float) -> None:
    sent = nic_bytes(mesh(dp=64), "dp", gpus_per_node=8, message_bytes=1.0, nics_per_node=nics)
    assert sent.shape == (8, nics)
    assert (sent == expected).all()


def test_a_dp_group_per_rail_loads_every_nic_in_full() -> None:
    parallel = layout(nodes=8, gpus_per_node=8, tp=8)
    sent = nic_bytes(parallel.dense, "dp", gpus_per_node=8, message_bytes=8e9)
    assert (sent == 2 * 7 / 8 * 8e9).all()
    # With one NIC for the whole node the eight groups share it.
    one = nic_bytes(parallel.dense, "dp", gpus_per_node=8, message_bytes=8e9, nics_per_node=1)
    assert (one == 8 * 2 * 7 / 8 * 8e9).all()


def test_neighbouring_local_ranks_share_a_nic() -> None:
    # Rings 0–3, 4–7, 8–11 on nodes of six: only 4–7 crosses, from ranks 4 and 5 (second NIC of
    # node 0) and back from 6 and 7 (first NIC of node 1); each link carries 3/4 of 4 bytes.
    sent = nic_bytes(
        mesh(tp=4, dp=3),
        "tp",
        gpus_per_node=6,
        message_bytes=4.0,
        nics_per_node=2,
        collective="all-gather",
    )
    assert sent.tolist() == [[0.0, 3.0], [3.0, 0.0]]


def test_what_all_nics_send_is_what_crosses_between_nodes() -> None:
    for sizes in itertools.product((1, 2, 3, 4), repeat=3):
        grid = mesh(tp=sizes[0], dp=sizes[1], pp=sizes[2])
        for gpus in (g for g in (2, 4, 6) if grid.world_size % g == 0):
            for axes, nics in itertools.product(("tp", "dp", "pp", "tp-pp"), (1, 2)):
                size = group_array(grid, axes).shape[1]
                links = mesh_communicator(grid, axes, gpus).inter_node_links
                sent = nic_bytes(
                    grid, axes, gpus_per_node=gpus, message_bytes=1.0, nics_per_node=nics
                )
                crossing = links * sent_bytes("all-reduce", size, 1.0)
                assert sent.sum() == pytest.approx(crossing, abs=1e-12)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"nics_per_node": 3}, "nics_per_node: expected a divisor of 8, got 3"),
        ({"gpus_per_node": 5}, "gpus_per_node: expected a divisor of the world of 64, got 5"),
        ({"collective": "all-reduc"}, "did you mean all-reduce"),
    ],
)
def test_impossible_nics_are_refused(changed: dict[str, object], message: str) -> None:
    arguments = {"gpus_per_node": 8, "message_bytes": 1.0} | changed
    with pytest.raises(InputError) as caught:
        nic_bytes(mesh(dp=64), "dp", **arguments)  # type: ignore[arg-type]
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"nodes": 4, "tp": 8}, ()),
        ({"nodes": 4, "tp": 8, "ep": 16, "etp": 1}, ()),
        ({"nodes": 4, "tp": 16, "etp": 8}, ("TP=16 is larger than a node of 8 GPUs",)),
        (
            {"nodes": 3, "tp": 3},
            ("TP=3 fits in a node of 8 GPUs, but 2 of its 8 groups touch up to 2 nodes",),
        ),
        (
            {"nodes": 3, "tp": 3, "ep": 2},
            (
                "TP=3 fits in a node of 8 GPUs, but 2 of its 8 groups touch up to 2 nodes",
                "ETP=3 fits in a node of 8 GPUs, but 2 of its 8 groups touch up to 2 nodes",
                "EP=2 fits in a node of 8 GPUs, but 4 of its 12 groups touch up to 2 nodes",
            ),
        ),
        (
            {"nodes": 8, "tp": 8, "ep": 8},
            ("EP=8 fits in a node of 8 GPUs, but 8 of its 8 groups touch up to 8 nodes",),
        ),
        (
            {"nodes": 2, "tp": 8, "order": "dp-tp-pp"},
            ("TP=8 fits in a node of 8 GPUs, but 2 of its 2 groups touch up to 2 nodes",),
        ),
    ],
)
def test_groups_that_leave_a_node_are_warned_of(
    sizes: dict[str, object], expected: tuple[str, ...]
) -> None:
    assert warnings(layout(gpus_per_node=8, **sizes)) == expected  # type: ignore[arg-type]
