"""A measured collective in one sentence, and the busbw at which its links are full."""

from __future__ import annotations

from figgen.formulas.alpha_beta import all_to_all_port_bandwidth
from figgen.quantity_shown import shown


def full_bus_bandwidth(
    *, collective: str, ranks: int, gpus_per_node: int, ports: int | None, line_rate: float
) -> float:
    """Return the busbw (B/s) at which links of `line_rate` are full.

    `ports` is the number of network ports of a node, or None where all ranks share a node, whose
    GPUs have one link each.
    """
    if ports is None:
        return line_rate
    if collective == "all-to-all":
        sent = all_to_all_port_bandwidth(
            ranks=ranks,
            gpus_per_node=gpus_per_node,
            bus_bandwidth_bytes_per_s=1.0,
            nics_per_node=ports,
        )
        return float(line_rate / sent)
    return ports * line_rate


def collective_sentence(
    *,
    collective: str,
    ranks: int,
    message_bytes: float,
    time_s: float,
    bus_bandwidth: float,
    full: float | None,
) -> str:
    """Return a sentence about a measured collective; `full` is the busbw of full links, or None."""
    article = "An" if collective.startswith("all") else "A"
    text = (
        f"{article} {collective} of {shown(message_bytes, 'B')} among {ranks:,} ranks in "
        f"{shown(time_s, 's')} has a busbw of {shown(bus_bandwidth, 'B/s')}"
    )
    if full is None:
        return f"{text}."
    return f"{text}, {bus_bandwidth / full:.0%} of the {shown(full, 'B/s')} that its links carry."
