"""What a step sends over each level of links, and the bandwidth above which nothing would wait.

A GPU's own link of a level carries `port_bytes` in a step. Spread evenly over the computing time,
they need a certain bandwidth; with less, the link and not the GPU sets the pace, however well the
two overlap. As a ratio, this is the position on the communication roofline: FLOPs per byte against
the ridge point of GPU and link.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum

from figgen.formulas.compute_and_roofline import (
    efficiency_with_overlap,
    efficiency_without_overlap,
    ridge_point,
)
from figgen.models.machine.cluster import Cluster
from figgen.models.step.step import StepEstimate
from figgen.models.step.step_links import NETWORK, SCALE_UP, GroupLink, group_link
from figgen.models.step.step_rows import CommunicationRow
from figgen.models.step.step_traffic import SEND


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelLoad:
    """The communication of a step on one level of links, for a GPU of the bottleneck rank.

    `port_bytes` leave through the GPU's link of this level. `time_s` and `exposed_s` are those of
    the calls that run at its speed. `needed_bandwidth_bytes_per_s` would move `port_bytes` in the
    computing time. `ccr` is the FLOPs per byte at the rate that matmuls reach, and `ridge` the
    value at which GPU and link balance. The efficiencies are the attainable share of that rate with
    perfect overlap and with none.
    """

    level: str
    bandwidth_bytes_per_s: float
    port_bytes: float
    time_s: float
    exposed_s: float
    needed_bandwidth_bytes_per_s: float
    ccr: float
    ridge: float
    efficiency_with_overlap: float
    efficiency_without_overlap: float


def level_loads(
    found: StepEstimate, cluster: Cluster, compute_efficiency: float
) -> tuple[LevelLoad, ...]:
    """Return the levels on which the bottleneck rank of a step sends anything, scale-up first."""
    carried = level_bytes(found)
    rate = cluster.peak_flops_per_s * compute_efficiency
    compute_s = found.compute_s + found.recompute_s
    loads = []
    for level, bandwidth in (
        (SCALE_UP, cluster.scale_up_bandwidth_bytes_per_s),
        (NETWORK, cluster.network_bandwidth_bytes_per_s),
    ):
        sent = carried[level]
        if not sent:
            continue
        rows = [row for row in found.rows if row.level == level]
        ccr, ridge = compute_s * rate / sent, float(ridge_point(rate, bandwidth))
        loads.append(
            LevelLoad(
                level=level,
                bandwidth_bytes_per_s=bandwidth,
                port_bytes=sent,
                time_s=fsum(row.time_s for row in rows),
                exposed_s=fsum(row.exposed_s for row in rows),
                needed_bandwidth_bytes_per_s=sent / compute_s,
                ccr=ccr,
                ridge=ridge,
                efficiency_with_overlap=float(efficiency_with_overlap(ccr, ridge)),
                efficiency_without_overlap=float(efficiency_without_overlap(ccr, ridge)),
            )
        )
    return tuple(loads)


def level_bytes(found: StepEstimate) -> dict[str, float]:
    """Return the bytes per step that leave through the bottleneck GPU's own link of each level."""
    total = dict.fromkeys((SCALE_UP, NETWORK), 0.0)
    for _, level, size in _carried(found):
        total[level] += size
    return total


def axis_level_bytes(found: StepEstimate) -> dict[tuple[str, str], float]:
    """Return the non-zero bytes per step through the bottleneck GPU's link, by axis and level."""
    total: dict[tuple[str, str], float] = {}
    for axis, level, size in _carried(found):
        if size:
            total[axis, level] = total.get((axis, level), 0.0) + size
    return total


def _carried(found: StepEstimate) -> Iterator[tuple[str, str, float]]:
    """Yield axis, level and bytes of each kind of call."""
    for row in found.rows:
        for level, size in port_bytes(row, group_link(found.setup.parallel, row.axis)).items():
            yield row.axis, level, row.calls * size


def port_bytes(row: CommunicationRow, link: GroupLink) -> dict[str, float]:
    """Return the bytes of one call of `row` that leave through the GPU's own link of each level.

    The ranks that a group has on a node share the traffic out of it: each of their rings leaves
    through another rank. An all-to-all sends equally to every peer. A single send is that of a rank
    whose neighbor is on another node. The levels add up to the bytes of the call.
    """
    if link.level == SCALE_UP:
        return {SCALE_UP: row.call_bytes, NETWORK: 0.0}
    near = link.members_per_node
    if row.collective == SEND:
        return {SCALE_UP: 0.0, NETWORK: row.call_bytes}
    if row.collective == "all-to-all":
        per_peer = row.buffer_bytes / row.size
        return {SCALE_UP: (near - 1) * per_peer, NETWORK: (row.size - near) * per_peer}
    outside = row.call_bytes / near
    return {SCALE_UP: row.call_bytes - outside, NETWORK: outside}
