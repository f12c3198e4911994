"""Hosts whose GPUs share fast links: the trays of a rack, the machines of a pod."""

from __future__ import annotations

from dataclasses import replace

from figgen.models.machine.hardware import Chip
from figgen.models.machine.layout import ParallelLayout


def hosts_together(nodes: int, gpus_per_node: int, domain: int) -> int:
    """Return how many of `nodes` share a domain: the most that fit in it and divide them evenly."""
    count = domain // gpus_per_node
    while nodes % count:
        count -= 1
    return count


def joined(launched: ParallelLayout, chip: Chip) -> ParallelLayout:
    """Return the layout on nodes that are parts of a domain, for one that is launched on hosts.

    Nodes that are no wider than a host of a rack or a pod are its hosts; as many whole hosts as
    possible share a domain, equally many in each. Wider nodes are parts of a domain already, and
    other chips have a single host in a domain: their layout is returned as it is.
    """
    nodes, width = launched.nodes, launched.gpus_per_node
    if width > chip.host_gpus:
        return launched
    together = hosts_together(nodes, width, chip.scale_up_domain or width)
    return replace(launched, nodes=nodes // together, gpus_per_node=together * width)
