"""What the nodes of a job count as, in words."""

from __future__ import annotations

from figgen.models.machine.hardware import Chip
from figgen.models.machine.hosts import hosts_together


def hosts_words(nodes: int, gpus_per_node: int, counted: int, chip: Chip) -> str:
    """Return what nodes of a job count as, or "" where there is only one way to count.

    `counted` is the number of nodes in the layout whose step is computed.
    """
    domain = chip.scale_up_domain or 0
    if nodes == 1 or not chip.host_gpus or 2 * gpus_per_node > domain:
        return ""
    together = hosts_together(nodes, gpus_per_node, domain)
    shared = f"{nodes // together:,} of {together * gpus_per_node:,}"
    said = f"{nodes:,} nodes of {gpus_per_node:,} GPUs count "
    if counted < nodes:
        return f"{said}as {shared}: up to {domain:,} GPUs share fast links"
    if together == 1:
        return f"{said}as separate: they don't fill domains of up to {domain:,} GPUs evenly"
    return f"{said}as separate; if they share fast links, set {shared}"
