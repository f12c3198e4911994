"""Which link a call of a step runs on, and how long one call takes under α–β.

A communicator any of whose groups leaves its node runs at the speed of the network, each GPU
with an adapter of its own. A ring enters and leaves a node once, so the ranks that a group has on
a node lend each other their adapters, and all its other hops stay inside; an all-to-all uses each
rank's own adapter, and both links at once.
Different communicators are taken to run one after the other, never to slow each other down.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from figgen.models.algorithms.communication_ratio import group_bandwidth_bytes_per_s
from figgen.models.machine.cluster import Cluster
from figgen.models.machine.layout import ParallelLayout, mesh_of
from figgen.models.machine.mesh import group_array
from figgen.models.machine.placement import members_of_node
from figgen.models.step.step_traffic import PASSES, SEND, Traffic

SCALE_UP, NETWORK = "scale-up", "network"


@dataclass(frozen=True, slots=True)
class GroupLink:
    """The link of a communicator: its level, and how a group's ranks share nodes.

    `members_per_node` is the fewest ranks that a group has on a node it touches, whose adapters are
    the busiest; all of them when every group stays inside.
    """

    level: str
    size: int
    members_per_node: int


@lru_cache(maxsize=1024)
def group_link(parallel: ParallelLayout, axis: str) -> GroupLink:
    """The link of a communicator of `parallel`; "embedding" pairs the ends of each pipeline."""
    if axis == "embedding":
        rows = group_array(parallel.dense, "pp")
        nodes = rows[:, [0, -1]] // parallel.gpus_per_node
        apart = bool(np.any(nodes[:, 0] != nodes[:, 1]))
        return GroupLink(NETWORK if apart else SCALE_UP, 2, 1 if apart else 2)
    rows = group_array(mesh_of(parallel, axis), axis)
    near, size = int(members_of_node(rows, parallel.gpus_per_node).min()), rows.shape[1]
    return GroupLink(NETWORK if near < size else SCALE_UP, size, near)


@dataclass(frozen=True, slots=True)
class CallTime:
    """Time of one call, s: for its bytes, and for the latencies of its steps."""

    bytes_s: float
    latency_s: float

    @property
    def total_s(self) -> float:
        """Both together."""
        return self.bytes_s + self.latency_s


def call_time(traffic: Traffic, link: GroupLink, cluster: Cluster) -> CallTime:
    """α–β time of one call: rings, pairwise all-to-all, single messages.

    Sources: the formulas of `figgen.formulas.collectives`; NCCL, src/graph/tuning.cc, in which of a
    ring's steps as many have the network's latency as there are nodes, less one.
    """
    fast = cluster.scale_up_bandwidth_bytes_per_s
    crosses = link.level == NETWORK
    alpha = cluster.network_latency_s if crosses else cluster.scale_up_latency_s
    slow = cluster.network_bandwidth_bytes_per_s
    if traffic.collective == SEND:
        return CallTime(traffic.sent_bytes / (slow if crosses else fast), alpha)
    steps = traffic.size - 1
    if traffic.collective == "all-to-all":
        if not crosses:
            return CallTime(traffic.sent_bytes / fast, steps * alpha)
        per_peer, near = traffic.buffer_bytes / traffic.size, link.members_per_node
        outside, inside = (traffic.size - near) * per_peer, (near - 1) * per_peer
        return CallTime(max(outside / slow, inside / fast), steps * alpha)
    if crosses:
        fast = group_bandwidth_bytes_per_s(fast, slow, link.members_per_node)
    across = -(-traffic.size // link.members_per_node) - 1
    hops_s = across * alpha + (steps - across) * cluster.scale_up_latency_s
    return CallTime(traffic.sent_bytes / fast, PASSES[traffic.collective] * hops_s)
