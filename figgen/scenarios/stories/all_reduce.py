"""All-reduce algorithms as straight lines: a latency plus a slope times the size.

The lines are exact in the α–β model, and so are the sizes at which one algorithm overtakes another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from figgen.catalog import HardwarePreset, hardware_preset
from figgen.equations.ops import Number
from figgen.errors import InputError
from figgen.formulas.collectives import (
    all_reduce_bytes_sent,
    double_binary_tree_all_reduce_time,
    halving_doubling_all_reduce_time,
    naive_all_reduce_time,
    recursive_doubling_all_reduce_time,
    ring_all_reduce_time,
    tree_all_reduce_time,
)
from figgen.formulas.hierarchical_collectives import (
    flat_ring_bytes_per_nic,
    leader_all_reduce_time,
    nccl_ring_latency,
    two_level_all_reduce_time,
)
from figgen.models.collectives import most_sent


@dataclass(frozen=True, slots=True)
class Machine:
    """A number of equal nodes.

    The links between nodes limit a single-level algorithm; on a single node, the node's own links
    do.
    """

    hardware: HardwarePreset
    nodes: int

    @property
    def ranks(self) -> int:
        return self.hardware.gpus_per_node * self.nodes

    @property
    def latency_s(self) -> float:
        hardware = self.hardware
        return hardware.network_latency_s if self.nodes > 1 else hardware.scale_up_latency_s

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Bandwidth per rank, in one direction."""
        if self.nodes > 1:
            return self.hardware.network_bandwidth_bytes_per_s
        return self.hardware.scale_up_bandwidth_bytes_per_s


Time = Callable[[Machine, float, int], float]
"""Maps (machine, message bytes, 1 to include the latency or 0 to omit it) to seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """An algorithm of a collective: its two terms as printed in the literature, and its time.

    `traced` names its trace in `figgen.models.collectives`. `levels` says that it uses links within
    and between nodes differently, `segments` that it is pipelined.
    """

    title: str
    latency: str
    transfer: str
    time: Time
    traced: str
    collective: str = "all-reduce"
    levels: bool = False
    segments: int | None = None

    def options(self, m: Machine) -> dict[str, int]:
        """Return the options of its trace on this machine, apart from the number of ranks."""
        width = m.hardware.gpus_per_node if self.traced.startswith("hierarchical") else None
        given = {"ranks_per_node": width, "segments": self.segments}
        return {name: value for name, value in given.items() if value is not None}

    def busiest_share(self, m: Machine) -> float:
        """Return the most bytes that a rank sends in the algorithm's trace, as a multiple of S."""
        return most_sent(self.collective, self.traced, m.ranks, **self.options(m))


def machine(preset: str, nodes: int) -> Machine:
    """Return a number of nodes of a hardware preset.

    Raises InputError unless the number of ranks is a power of two, which some algorithms need.
    """
    hardware = hardware_preset(preset)
    ranks = hardware.gpus_per_node * nodes
    if ranks < 2 or ranks != 2 ** (ranks.bit_length() - 1):
        raise InputError("nodes", expected="a power of two", got=nodes)
    return Machine(hardware, nodes)


def flat(formula: Callable[[Number, Number, Number, Number], Number]) -> Time:
    """Return the time from a formula of (ranks, bytes, latency, bandwidth) that ignores nodes."""

    def time(m: Machine, size: float, counted: int) -> float:
        return float(formula(m.ranks, size, counted * m.latency_s, m.bandwidth_bytes_per_s))

    return time


def _levelled(formula: Callable[..., Number]) -> Time:
    def time(m: Machine, size: float, counted: int) -> float:
        hardware = m.hardware
        return float(
            formula(
                hardware.gpus_per_node,
                m.nodes,
                size,
                counted * hardware.scale_up_latency_s,
                hardware.scale_up_bandwidth_bytes_per_s,
                counted * hardware.network_latency_s,
                hardware.network_bandwidth_bytes_per_s,
            )
        )

    return time


def ring_per_nic_time_s(m: Machine, size: float, counted: int) -> float:
    """Return the time in s of one flat ring per NIC, as NCCL builds them, with the data divided.

    Within a node, all rings share each GPU's link, which then carries as much as in a single ring.
    """
    hardware = m.hardware
    inner, outer = counted * hardware.scale_up_latency_s, counted * hardware.network_latency_s
    latency = nccl_ring_latency(m.ranks, m.nodes, 0.0, inner, outer)
    through_nic = flat_ring_bytes_per_nic(m.ranks, hardware.nics_per_node, size)
    within = all_reduce_bytes_sent(m.ranks, size)
    slowest = max(
        through_nic / hardware.nic.bandwidth_bytes_per_s,
        within / hardware.scale_up_bandwidth_bytes_per_s,
    )
    return float(latency + slowest)


NAIVE = Algorithm(
    title="one root, in turn",
    latency="2(n − 1)α",
    transfer="2(n − 1) S/B",
    time=flat(naive_all_reduce_time),
    traced="naive",
)
BINOMIAL = Algorithm(
    title="binomial tree, not pipelined",
    latency="2⌈log₂ n⌉α",
    transfer="2⌈log₂ n⌉ S/B",
    time=flat(tree_all_reduce_time),
    traced="binomial-tree",
)
DOUBLING = Algorithm(
    title="recursive doubling",
    latency="log₂ n α",
    transfer="log₂ n S/B",
    time=flat(recursive_doubling_all_reduce_time),
    traced="recursive-doubling",
)
HALVING = Algorithm(
    title="halving-doubling",
    latency="2 log₂ n α",
    transfer="2(n − 1)/n S/B",
    time=flat(halving_doubling_all_reduce_time),
    traced="recursive-halving-doubling",
)
DOUBLE_TREE = Algorithm(
    title="double binary tree",
    latency="2⌈log₂ n⌉α",
    transfer="2 S/B",
    time=flat(double_binary_tree_all_reduce_time),
    traced="double-binary-tree",
)
RING = Algorithm(
    title="ring",
    latency="2(n − 1)α",
    transfer="2(n − 1)/n S/B",
    time=flat(ring_all_reduce_time),
    traced="ring",
)
LEADERS = Algorithm(
    title="hierarchical, one leader per node",
    latency="2(g − 1)αᵢ + 2(N − 1)α",
    transfer="2 S/Bᵢ + 2(N − 1)/N S/B",
    time=_levelled(leader_all_reduce_time),
    traced="hierarchical-leader",
    levels=True,
)
TWO_LEVEL = Algorithm(
    title="hierarchical, 2-D",
    latency="2(g − 1)αᵢ + 2(N − 1)α",
    transfer="2(g − 1)/g S/Bᵢ + 2(N − 1)/N S/(gB)",
    time=_levelled(two_level_all_reduce_time),
    traced="hierarchical",
    levels=True,
)
RING_PER_NIC = Algorithm(
    title="a ring per NIC",
    latency="2(n − N)αᵢ + 2(N − 1)α",
    transfer="2(n − 1)/n S/min(gB, Bᵢ)",
    time=ring_per_nic_time_s,
    traced="ring",
    levels=True,
)

COMPARED = (NAIVE, BINOMIAL, DOUBLING, HALVING, DOUBLE_TREE, RING, TWO_LEVEL, RING_PER_NIC)


def competitors(m: Machine) -> tuple[Algorithm, ...]:
    """Return the algorithms that differ on this machine; two-level ones need several nodes."""
    return tuple(a for a in COMPARED if m.nodes > 1 or not a.levels)


Lines = Mapping[str, tuple[float, float]]
"""(Seconds at size 0, seconds per byte) by title."""


def lines(m: Machine, algorithms: tuple[Algorithm, ...]) -> Lines:
    """Return the time of every algorithm as a straight line."""
    return {a.title: (a.time(m, 0.0, 1), a.time(m, 1.0, 0)) for a in algorithms}


def envelope(known: Lines) -> tuple[tuple[str, float], ...]:
    """Return (title, smallest size in bytes at which it is the fastest), in order of size."""
    best = min(known, key=lambda title: known[title])
    found = [(best, 0.0)]
    while True:
        start, slope = known[best]
        later = {
            ((a - start) / (slope - b), b, title) for title, (a, b) in known.items() if b < slope
        }
        if not later:
            return tuple(found)
        size, _, best = min(later)
        found.append((best, size))
