"""Links as NCCL reckons with them: the latency of a step, and the channels of a group of GPUs."""

from __future__ import annotations

from figgen.catalog.hardware import Link
from figgen.catalog.load import links, nccl
from figgen.errors import InputError, unknown
from figgen.models.nccl_tuning import Group

BRICKS = {
    "nvlink2": ("volta", "sm70_nvlink"),
    "nvlink3": ("ampere", "sm80_nvlink"),
    "nvlink4": ("hopper", "sm90_nvlink"),
    "nvlink5": ("blackwell", "sm100_nvlink"),
}
"""Link of the catalog → NCCL's architecture and its constant for one of the link's lanes."""


def step_latency_s(link: Link) -> float:
    """NCCL's constant for one step of a ring over this link, with the Simple protocol.

    Raises InputError for a link of the host, which no ring runs over.
    """
    if link.kind == "host":
        raise InputError("link", expected="a scale-up or scale-out link", got=link.name)
    return nccl().scale_up_latency_s if link.kind == "scale-up" else nccl().network_latency_s


def nccl_group(link: Link, ranks: int, nodes: int, nic: Link) -> Group:
    """The channels that NCCL would find: one per lane of the link, or two per NIC.

    On several nodes every GPU has one NIC, of which NCCL reckons with the share that it gives to
    a 100 Gb/s port; the link within the node is shared out over the same channels.
    Raises InputError for a link that NCCL has no constant for.
    """
    if link.name not in BRICKS or link.lanes is None:
        raise unknown("link that NCCL has a constant for", link.name, BRICKS)
    architecture, brick = BRICKS[link.name]
    inner = link.lanes * nccl().link_bandwidth(brick).value
    if nodes == 1:
        return Group(ranks, link.lanes, inner / link.lanes, architecture=architecture)
    share = nccl().link_bandwidth("net_100gb").value / links()["ib-edr"].bandwidth.value
    channels = 2 * (ranks // nodes)
    return Group(
        ranks,
        channels,
        inner / channels,
        share * nic.bandwidth_bytes_per_s / 2,
        nodes=nodes,
        architecture=architecture,
    )
