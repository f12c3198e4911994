"""The placement of ranks on nodes: which groups cross nodes, and by how many links.

Ranks fill nodes in order: node = rank // gpus_per_node, local rank = rank % gpus_per_node. A group
of n > 1 ranks is a ring in ascending rank order with n directed links, each to the next neighbor
and the last back to the first; a group of one has none. Because ranks ascend, a group that touches
k > 1 nodes visits each of them once: exactly k of its links cross.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from figgen.errors import check_size
from figgen.models.machine.layout import ParallelLayout, mesh_of
from figgen.models.machine.mesh import (
    IntArray,
    RankMesh,
    axis_names,
    axis_size,
    axis_stride,
    group_offsets,
)

LABELS: dict[str, str] = {
    "tp": "Tensor parallel",
    "cp": "Context parallel",
    "dp": "Data parallel",
    "pp": "Pipeline parallel",
    "dp-cp": "Gradient reduction (data × context)",
    "etp": "Expert tensor parallel",
    "ep": "Expert parallel",
    "edp": "Expert data parallel",
}
"""The communicators of `communicators` in order, with their names for readers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Communicator:
    """One kind of process group on a cluster, summed over all its groups.

    `size` ranks per group, `stride` the rank distance between neighbors (None when it is not
    uniform), `nodes_touched_min` and `nodes_touched_max` per group, `crossing_groups` the number
    of groups on more than one node, and the directed ring links within and between nodes.
    """

    name: str
    label: str
    size: int
    group_count: int
    stride: int | None
    nodes_touched_min: int
    nodes_touched_max: int
    crossing_groups: int
    intra_node_links: int
    inter_node_links: int

    @property
    def inter_node_share(self) -> float:
        """Share of ring links that leave their node, 0 … 1; 0 when there are no links."""
        links = self.intra_node_links + self.inter_node_links
        return self.inter_node_links / links if links else 0.0


def nodes_touched(rows: IntArray, gpus_per_node: int) -> IntArray:
    """Number of nodes of each group, shape (groups,), from `group_array` rows."""
    # Ranks ascend within a row, so equal nodes are adjacent: count the changes.
    changes = np.diff(rows // gpus_per_node, axis=1) != 0
    return np.asarray(1 + changes.sum(axis=1), dtype=np.int64)


def members_of_node(rows: IntArray, gpus_per_node: int) -> IntArray:
    """How many ranks of its own group are on each rank's node, itself included, shape of `rows`."""
    nodes = rows // gpus_per_node
    _, pair, counts = np.unique(
        np.arange(len(rows))[:, None] * (int(nodes.max()) + 1) + nodes,
        return_inverse=True,
        return_counts=True,
    )
    return np.asarray(counts[pair.reshape(rows.shape)], dtype=np.int64)


def inter_node_links(rows: IntArray, gpus_per_node: int) -> IntArray:
    """Directed ring links of each group whose two ends are on different nodes, shape (groups,)."""
    nodes = rows // gpus_per_node
    return np.asarray((nodes != np.roll(nodes, -1, axis=1)).sum(axis=1), dtype=np.int64)


def communicator(parallel: ParallelLayout, axes: str) -> Communicator:
    """The summary of one communicator: an axis ("tp", "ep") or several together ("dp-cp").

    Raises InputError for axes that are not on one mesh of the layout.
    """
    return mesh_communicator(mesh_of(parallel, axes), axes, parallel.gpus_per_node)


def mesh_communicator(mesh: RankMesh, axes: str, gpus_per_node: int) -> Communicator:
    """`communicator` for any mesh, on nodes of `gpus_per_node` GPUs."""
    check_size("gpus_per_node", gpus_per_node)
    offsets = group_offsets(mesh, axes)
    # Groups that begin at the same place of their node lie alike.
    groups_at = _starts_by_place(mesh, axis_names(axes), gpus_per_node)
    touched = {
        place: len({(place + offset) // gpus_per_node for offset in offsets}) for place in groups_at
    }
    crossing = [place for place in groups_at if touched[place] > 1]
    inter = sum(groups_at[place] * touched[place] for place in crossing)
    size = len(offsets)
    count = mesh.world_size // size
    return Communicator(
        name=axes,
        label=LABELS.get(axes, axes.upper()),
        size=size,
        group_count=count,
        stride=_uniform_stride(mesh, axis_names(axes)),
        nodes_touched_min=min(touched.values()),
        nodes_touched_max=max(touched.values()),
        crossing_groups=sum(groups_at[place] for place in crossing),
        intra_node_links=(count * size if size > 1 else 0) - inter,
        inter_node_links=inter,
    )


def _starts_by_place(mesh: RankMesh, inner: tuple[str, ...], gpus_per_node: int) -> dict[int, int]:
    """How many groups along the axes `inner` begin at each place of a node."""
    found = {0: 1}
    for name in mesh.names:
        if name in inner:
            continue
        stride = axis_stride(mesh, name)
        shifts = Counter(at * stride % gpus_per_node for at in range(axis_size(mesh, name)))
        moved: dict[int, int] = {}
        for place, count in found.items():
            for shift, times in shifts.items():
                at = (place + shift) % gpus_per_node
                moved[at] = moved.get(at, 0) + count * times
        found = moved
    return found


def communicators(parallel: ParallelLayout) -> tuple[Communicator, ...]:
    """Every communicator of `LABELS` that the layout has; expert ones only with experts."""
    return tuple(
        communicator(parallel, axes)
        for axes in LABELS
        if parallel.has_experts or axes not in ("etp", "ep", "edp")
    )


def warnings(parallel: ParallelLayout) -> tuple[str, ...]:
    """Return warnings about slow layouts: tensor- or expert-parallel groups that leave a node."""
    found = []
    # Undivided experts lie as their dense layers do.
    divided = parallel.has_experts and (parallel.ep > 1 or parallel.etp != parallel.tp)
    names = ["tp", *(["etp", "ep"] if divided else [])]
    for summary in (communicator(parallel, name) for name in names):
        axis = f"{summary.name.upper()}={summary.size}"
        node = f"a node of {parallel.gpus_per_node} GPUs"
        if summary.size > parallel.gpus_per_node and summary.name != "ep":
            found.append(f"{axis} is larger than {node}")
        elif summary.size <= parallel.gpus_per_node and summary.crossing_groups:
            groups = f"{summary.crossing_groups} of its {summary.group_count} groups"
            found.append(
                f"{axis} fits in {node}, but {groups} touch up to {summary.nodes_touched_max} nodes"
            )
    return tuple(found)


def _uniform_stride(mesh: RankMesh, axes: tuple[str, ...]) -> int | None:
    """Return the rank distance between neighbors of a group if it is uniform, else None."""
    if len(axes) == 1:
        return axis_stride(mesh, axes[0])
    wide = sorted(
        (axis_stride(mesh, a), axis_size(mesh, a)) for a in axes if axis_size(mesh, a) > 1
    )
    if not wide:
        return None
    spans = [stride * size for stride, size in wide[:-1]]
    return wide[0][0] if spans == [stride for stride, _ in wide[1:]] else None
