"""Buses and fabrics: lanes, fat trees, dragonflies, tori, and the throughput of a bisection.

A *port* joins an endpoint or a switch by one link of the same rate in each direction. Counts of
links across a cut count each cable once, although it has two directions.
"""

from __future__ import annotations

from figgen.equations.ops import Number, ceil, floor
from figgen.formulas.notation import formula

AL_FARES = "Al-Fares et al. 2008, doi:10.1145/1402958.1402967, section 3.1"
KIM = "Kim et al. 2008, doi:10.1109/ISCA.2008.19, section 3.1"
SCALING_BOOK = "How to Scale Your Model, part 3: bandwidth-bound collectives on TPU rings"


@formula(
    symbol=r"B_\text{lanes}", unit="B/s", source="PCI Express base specification: GT/s, coding"
)
def lanes_bandwidth(lanes: Number, transfers_per_s: Number, coding_share: Number) -> Number:
    """Bytes per second per direction of `lanes` lanes that carry one bit per transfer."""
    return lanes * transfers_per_s * coding_share / 8


@formula(symbol=r"T_\text{staged}", unit="s", source="derivation: two copies, one segment apart")
def staged_copy_time(
    segments: Number, message_bytes: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Time of a copy through an intermediate buffer, in segments of which two are in flight."""
    return (segments + 1) * (latency_s + message_bytes / (segments * bandwidth_bytes_per_s))


@formula(symbol=r"n_\text{fat}", unit="port", source=AL_FARES, where="switch_ports % 2 == 0")
def fat_tree_endpoints(switch_ports: Number, tiers: Number) -> Number:
    """Endpoints of a full fat tree: half of each switch's ports face down, at the top all."""
    return 2 * (switch_ports / 2) ** tiers


@formula(symbol=r"n_\text{sw}", unit="1", source=AL_FARES, where="switch_ports % 2 == 0")
def fat_tree_switches(switch_ports: Number, tiers: Number) -> Number:
    """Switches of a full fat tree."""
    return (2 * tiers - 1) * (switch_ports / 2) ** (tiers - 1)


@formula(symbol=r"L_\text{fat}", unit="link", source="definition of oversubscription")
def fat_tree_bisection_links(endpoints: Number, oversubscription: Number) -> Number:
    """Links between two halves of a fat tree, in units of an endpoint's link."""
    return endpoints / (2 * oversubscription)


@formula(symbol=r"n_\text{fly}", unit="port", source=KIM)
def dragonfly_endpoints(
    router_endpoints: Number, group_routers: Number, global_ports: Number
) -> Number:
    """Endpoints of the largest dragonfly: one global link between any two groups."""
    return router_endpoints * group_routers * (group_routers * global_ports + 1)


@formula(symbol=r"k_\text{fly}", unit="port", source=KIM)
def dragonfly_router_ports(
    router_endpoints: Number, group_routers: Number, global_ports: Number
) -> Number:
    """Ports of a dragonfly's router: endpoints, other routers of its group, other groups."""
    return router_endpoints + (group_routers - 1) + global_ports


@formula(symbol=r"L_\text{fly}", unit="link", source=f"{KIM}: one link per pair of groups")
def dragonfly_bisection_links(group_routers: Number, global_ports: Number) -> Number:
    """Global links between two halves of the groups; an odd group belongs to one of them."""
    groups = group_routers * global_ports + 1
    return floor(groups / 2) * ceil(groups / 2)


@formula(
    symbol=r"L_\text{torus}",
    unit="link",
    source="Dally 1990, doi:10.1109/12.53599: k-ary n-cubes",
    where="side % 2 == 0 and side >= 4",
)
def torus_bisection_links(side: Number, dimensions: Number) -> Number:
    """Links between two halves of a torus: every ring across the cut is cut twice."""
    return 2 * side ** (dimensions - 1)


@formula(symbol=r"d_\text{torus}", unit="1", source="definition: half of every ring")
def torus_diameter(side: Number, dimensions: Number) -> Number:
    """Hops between two endpoints of a torus that are farthest apart."""
    return dimensions * floor(side / 2)


@formula(symbol=r"T_\text{AG}", unit="s", source=f"{SCALING_BOOK}; here with (n − 1)/n and hops")
def torus_all_gather_time(
    side: Number,
    dimensions: Number,
    message_bytes: Number,
    latency_s: Number,
    bandwidth_bytes_per_s: Number,
) -> Number:
    """Time of an all-gather or reduce-scatter that uses both directions of every dimension."""
    endpoints = side**dimensions
    links = 2 * dimensions
    return dimensions * floor(side / 2) * latency_s + (
        endpoints - 1
    ) / endpoints * message_bytes / (links * bandwidth_bytes_per_s)


@formula(symbol=r"T_\text{A2A}", unit="s", source="derivation: half of the bytes cross the cut")
def bisection_all_to_all_time(
    endpoints: Number,
    message_bytes: Number,
    bisection_links: Number,
    bandwidth_bytes_per_s: Number,
) -> Number:
    """Least time of a uniform all-to-all: a quarter of all bytes cross the cut each way."""
    return endpoints * message_bytes / (4 * bisection_links * bandwidth_bytes_per_s)


@formula(
    symbol=r"H_\text{loc}",
    unit="step",
    source="derivation; Douillard et al. 2023, arXiv:2311.08105",
)
def local_steps_to_hide(communication_s: Number, compute_s: Number, kept_share: Number) -> Number:
    """Fewest local steps between exchanges that leave `kept_share` of the time for computing."""
    return ceil(communication_s * kept_share / ((1 - kept_share) * compute_s))
