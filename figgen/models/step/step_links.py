"""The link on which each call of a step runs, and how long one call takes by the α–β model.

If any group of a communicator spans nodes, it runs at the speed of the network, where each GPU has
its own adapter. A ring enters and leaves a node once, so the ranks that a group has on a node
combine their adapters, and all other hops stay inside. An all-to-all uses each rank's own adapter,
and both levels at once. Different communicators are assumed to run one after the other and never to
slow each other down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from figgen.models.algorithms.communication_ratio import group_bandwidth_bytes_per_s
from figgen.models.machine.cluster import Cluster
from figgen.models.machine.layout import ParallelLayout, mesh_of
from figgen.models.machine.mesh import group_offsets, group_starts
from figgen.models.step.step_traffic import PASSES, SEND, Traffic

SCALE_UP, NETWORK = "scale-up", "network"
WITHIN_NODE, BETWEEN_NODES = "cp-within", "cp-between"
"""Communicators of context ranks that trade heads inside a node and form rings between nodes."""


@dataclass(frozen=True, slots=True)
class GroupLink:
    """The link of a communicator: its level, and how a group's ranks share nodes.

    `members_per_node` is the fewest ranks that a group has on any of its nodes, whose adapters are
    the busiest. It equals the group size if every group stays inside a node.
    """

    level: str
    size: int
    members_per_node: int


@lru_cache(maxsize=1024)
def group_link(parallel: ParallelLayout, axis: str) -> GroupLink:
    """Return the link of a communicator of `parallel`; "embedding" pairs the ends of a pipeline."""
    node = parallel.gpus_per_node
    if axis == "embedding":
        last = group_offsets(parallel.dense, "pp")[-1]
        starts = group_starts(parallel.dense, "pp")
        apart = any(start // node != (start + last) // node for start in starts)
        return GroupLink(NETWORK if apart else SCALE_UP, 2, 1 if apart else 2)
    if axis in (WITHIN_NODE, BETWEEN_NODES):
        return _part_of_context(parallel, axis)
    mesh = mesh_of(parallel, axis)
    offsets = group_offsets(mesh, axis)
    # Groups that begin at the same local rank are placed alike.
    places = {start % node for start in group_starts(mesh, axis)}
    near = min(_fewest_on_a_node(offsets, place, node) for place in places)
    return GroupLink(NETWORK if near < len(offsets) else SCALE_UP, len(offsets), near)


def _part_of_context(parallel: ParallelLayout, axis: str) -> GroupLink:
    """Return the link of context ranks within a node, or of counterparts between nodes."""
    whole, inside = group_link(parallel, "cp"), parallel.context_in_node
    if axis == WITHIN_NODE:
        apart = whole.members_per_node < inside
        return GroupLink(
            NETWORK if apart else SCALE_UP, inside, min(inside, whole.members_per_node)
        )
    return GroupLink(whole.level, parallel.cp // inside, 1 if whole.level == NETWORK else inside)


def _fewest_on_a_node(offsets: Sequence[int], place: int, gpus_per_node: int) -> int:
    """Return the fewest ranks that a group beginning at local rank `place` has on any node."""
    counts = Counter((place + offset) // gpus_per_node for offset in offsets)
    return min(counts.values())


@dataclass(frozen=True, slots=True)
class CallTime:
    """Seconds of one call: the time of its bytes, and the latencies of its steps."""

    bytes_s: float
    latency_s: float

    @property
    def total_s(self) -> float:
        """Seconds of bytes and latencies together."""
        return self.bytes_s + self.latency_s


def call_time(traffic: Traffic, link: GroupLink, cluster: Cluster) -> CallTime:
    """Return the α–β time of one call: a ring, a pairwise all-to-all or a single send.

    Sources: the formulas of `figgen.formulas.collectives`; NCCL, src/graph/tuning.cc, which charges
    the network's latency for (nodes − 1) steps of a ring and the scale-up latency for the others.
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
