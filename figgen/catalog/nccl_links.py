"""Links in NCCL's model: the latency of a step, and the channels of a group of GPUs."""

from __future__ import annotations

from figgen.catalog.by_name import link as link_named
from figgen.catalog.by_name import nccl_tuning
from figgen.catalog.hardware import Link
from figgen.catalog.load import links
from figgen.entries.schema import Value
from figgen.errors import InputError, unknown
from figgen.models.machine.nccl_channels import ring_channels, switch_channels
from figgen.models.machine.nccl_tuning import NcclGroup

BRICKS = {
    "nvlink2": ("volta", "sm70_nvlink"),
    "nvlink3": ("ampere", "sm80_nvlink"),
    "nvlink4": ("hopper", "sm90_nvlink"),
    "nvlink5": ("blackwell", "sm100_nvlink"),
}
"""NCCL's architecture and its constant for one of the link's lanes, by link of the catalog."""


def step_latency_s(link: Link) -> float:
    """Return one step of a ring on this link: its own, or NCCL's constant for Simple.

    Raises InputError for a link to the host, which no ring uses.
    """
    if link.kind == "host":
        raise InputError("link", expected="a scale-up or scale-out link", got=link.name)
    in_node = link.kind == "scale-up"
    return nccl_tuning().latency_in_node_s(link) if in_node else nccl_tuning().network_latency_s


def message_gap(network: str) -> Value:
    """Return the time after which a rank passes the next of many messages to this network.

    It was measured only on EFA, and is used for every network that has none of its own.
    """
    known = links()
    measured = known["efa-v2-p5"].message_gap
    own = known[network].message_gap if network in known else measured
    found = own or measured
    if found is None:
        raise InputError("links.toml: efa-v2-p5", expected="message_gap")
    return found


def nccl_group(link: Link, ranks: int, nodes: int, nic: Link) -> NcclGroup:
    """Return the channels that NCCL would find on nodes whose GPUs share a switch.

    On several nodes every GPU has one NIC, for which NCCL counts the share that it gives to a 100
    Gb/s port. Raises InputError for a link for which NCCL has no constant.
    """
    if link.name not in BRICKS or link.lanes is None:
        raise unknown("link that NCCL has a constant for", link.name, BRICKS)
    architecture, brick = BRICKS[link.name]
    share = nccl_tuning().link_bandwidth("net_100gb").value / link_named("ib-edr").bandwidth.value
    machine = (
        architecture,
        link.lanes * nccl_tuning().link_bandwidth(brick).value,
        ranks // nodes,
        share * nic.bandwidth_bytes_per_s if nodes > 1 else None,
    )
    rings = ring_channels(*machine)
    return NcclGroup(
        ranks=ranks,
        channels=rings.count,
        channel_bytes_per_s=rings.inside_bytes_per_s,
        network_bytes_per_s=rings.across_bytes_per_s,
        nodes=nodes,
        architecture=architecture,
        switched=switch_channels(*machine),
    )
