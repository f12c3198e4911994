"""Switches above the node: which switch two GPUs share, and which bytes of a group leave a pod.

Groups run in rings of ascending ranks; pipelines send to the next stage and back. Each GPU has one
NIC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from figgen.errors import InputError, check_size
from figgen.models.machine.layout import ParallelLayout, mesh_of
from figgen.models.machine.mesh import IntArray, group_array

Cabling = Literal["rails", "racks"]


def leaf_of(ranks: IntArray, *, gpus_per_node: int, ports: int, cabling: Cabling) -> IntArray:
    """Return the leaf switch of every rank; each switch has `ports` ports toward GPUs.

    With "rails" a leaf serves one local rank of `ports` nodes, with "racks" all GPUs of `ports` /
    `gpus_per_node` nodes. Raises InputError if a rack does not hold a whole number of nodes.
    """
    check_size("ports", ports)
    node, local = ranks // gpus_per_node, ranks % gpus_per_node
    if cabling == "rails":
        return np.asarray(node // ports * gpus_per_node + local, dtype=np.int64)
    if ports % gpus_per_node:
        raise InputError("ports", expected=f"a multiple of {gpus_per_node}", got=ports)
    return np.asarray(node // (ports // gpus_per_node), dtype=np.int64)


def one_leaf_share(parallel: ParallelLayout, axes: str, *, ports: int, cabling: Cabling) -> float:
    """Return the share of links between nodes, 0 … 1, whose two ends are on one leaf.

    It is 1 for groups that never leave their node. A pipeline has no link from its end to its
    start.
    """
    source, target = _neighbours(parallel, axes)
    width = parallel.gpus_per_node
    apart = source // width != target // width
    if not apart.any():
        return 1.0
    leaves = [
        leaf_of(ranks, gpus_per_node=width, ports=ports, cabling=cabling)
        for ranks in (source, target)
    ]
    return float((leaves[0] == leaves[1])[apart].mean())


@dataclass(frozen=True, slots=True)
class PodShare:
    """The share of bytes along an axis that leaves its pod, overall and for the busiest pod.

    `busiest` is relative to what the GPUs of a full pod send. Its inverse is the oversubscription
    of a pod's uplinks that does not slow these groups down if each GPU sends at the speed of its
    NIC.
    """

    mean: float
    busiest: float


def pod_leaving_share(parallel: ParallelLayout, axes: str, gpus_per_pod: int) -> PodShare:
    """Return the shares, 0 … 1, of the bytes sent along `axes` that leave a pod.

    Raises InputError for pods that are not whole nodes.
    """
    if gpus_per_pod % parallel.gpus_per_node:
        expected = f"a multiple of {parallel.gpus_per_node}, whole nodes"
        raise InputError("gpus_per_pod", expected=expected, got=gpus_per_pod)
    source, target = _neighbours(parallel, axes)
    crossing = source // gpus_per_pod != target // gpus_per_pod
    leaving = np.zeros(parallel.world_size)
    if axes == "pp":
        # Every boundary carries an activation one way and a gradient the other, each half of
        # what a GPU inside the pipeline sends.
        np.add.at(leaving, source[crossing], 0.5)
        np.add.at(leaving, target[crossing], 0.5)
    else:
        leaving[source] = crossing
    pods = np.arange(parallel.world_size) // gpus_per_pod
    # A pod that is not full has its uplinks to itself.
    busiest = (np.bincount(pods, weights=leaving) / gpus_per_pod).max()
    return PodShare(float(crossing.mean()) if len(crossing) else 0.0, float(busiest))


def _neighbours(parallel: ParallelLayout, axes: str) -> tuple[IntArray, IntArray]:
    """Return both ends of every link: around each ring, or along each pipeline."""
    rows = group_array(mesh_of(parallel, axes), axes)
    if axes == "pp":
        return rows[:, :-1].ravel(), rows[:, 1:].ravel()
    return rows.ravel(), np.roll(rows, -1, axis=1).ravel()
