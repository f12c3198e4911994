"""How NCCL predicts the time of its own algorithms, and so chooses between them.

NCCL (2.30.7, src/graph/tuning.cc) gives each pair of algorithm and protocol a latency and a
bandwidth, and runs the pair with the smallest `latency + bytes / bandwidth`. Its authors
tuned the constants until the choice was right; they are good published defaults for α and for the
share of a link that a protocol reaches, but they are not measurements of a machine.

Left out: CollNet (reduction in network switches), the extra latency that a network plug-in may
report, the penalty of trees whose root has one port (0.85), trees on POWER hosts. Where NCCL
disables the LL128 protocol depends on the paths between GPUs; here it is always a candidate.
Channels and their bandwidth are given: `figgen.models.machine.nccl_channels` finds those of a
machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from figgen.errors import InputError
from figgen.models.machine.nccl_channels import Channels
from figgen.models.machine.nccl_group import NcclGroup, TuningConstants, candidates, step_count

__all__ = [
    "NcclGroup",
    "Prediction",
    "TuningConstants",
    "bandwidth_bytes_per_s",
    "candidates",
    "latency_s",
    "predicted_time_s",
    "predictions",
    "step_count",
]

# Trees fall short of the model at medium sizes. Share of the bandwidth that is left, by powers of
# two from 64 B (src/graph/tuning.cc, treeCorrectionFactor).
TREE_CORRECTION: dict[str, tuple[float, ...]] = {
    protocol: tuple(int(tenths) / 10 for tenths in row.split())
    for protocol, row in {
        "ll": "10 10 10 10 9 8 7 7 7 7 6 5 4 4 5 6 7 8 9 10 10 10 10 10",
        "ll128": "10 10 10 10 10 9 8 8 8 7 6 6 6 6 6 6 8 9 9 9 9 10 10 10",
        "simple": "9 9 9 9 9 9 9 8 7 6 6 5 5 5 5 6 7 8 7 7 8 9 9 9",
    }.items()
}


@dataclass(frozen=True, slots=True)
class Prediction:
    """NCCL's predicted latency, bandwidth and time of an algorithm with a protocol."""

    algorithm: str
    protocol: str
    time_s: float


def _require(
    constants: TuningConstants, group: NcclGroup, collective: str, algorithm: str, protocol: str
) -> None:
    pairs = candidates(constants, group, collective)
    if (algorithm, protocol) not in pairs:
        raise InputError(
            f"NCCL algorithm and protocol for {collective} on {group.nodes} nodes",
            expected="one of " + ", ".join(" ".join(pair) for pair in pairs),
            got=f"{algorithm} {protocol}",
        )


def latency_s(
    constants: TuningConstants, group: NcclGroup, collective: str, algorithm: str, protocol: str
) -> float:
    """Latency (s) of the whole operation: a base, and a part for each step or level.

    Raises InputError if NCCL has no such algorithm and protocol for this collective and group.
    """
    _require(constants, group, collective, algorithm, protocol)
    step = f"{algorithm}_{protocol}"
    base = constants.base_latency_s[step]
    intra = constants.step_latency_s[group.transport][step]
    # with one rank per node nothing hides the network, which the tree's constant reckons with
    exposed = f"tree_{protocol}" if group.ranks_per_node == 1 else step
    inter = constants.step_latency_s["net"][exposed]
    levels = group.nodes.bit_length() - 1
    if algorithm == "ring":
        return base + _ring_latency_s(constants, group, collective, protocol, intra, inter)
    if algorithm == "tree":
        return base + 2 * ((group.ranks_per_node - 1) * intra + levels * inter)
    if algorithm == "pat":
        return base + levels * inter / 3.5 + group.ranks * 2.8e-6
    return base + intra + 2 * levels * inter


def _ring_latency_s(
    constants: TuningConstants,
    group: NcclGroup,
    collective: str,
    protocol: str,
    intra: float,
    inter: float,
) -> float:
    if collective in ("broadcast", "reduce"):  # pipelined: only the first step counts
        link = group.transport if group.nodes == 1 else "net"
        return constants.step_latency_s[link][f"ring_{protocol}"]
    if group.nodes > 1:
        post = constants.network_overhead_s[group.host]
        intra = max(intra, 3 * post if protocol == "simple" else post)
    steps = step_count(collective, group.ranks)
    across = (2 if collective == "all-reduce" else 1) * (group.nodes - 1)
    return (steps - across) * intra + across * inter


def _cap(constants: TuningConstants, group: NcclGroup, cap: str) -> float:
    architecture = group.architecture
    if cap == "ll_max" and group.nodes > 1:
        # LL over the network is limited by the CPU: NCCL keeps Intel's numbers in the row of
        # Volta and AMD's in that of Ampere, whatever the GPU is
        architecture = "ampere" if group.host == "amd_x86" else "volta"
    span = ("1node", "2nodes", "4nodes")[min(group.nodes, 3) - 1]
    return constants.bandwidth_caps[architecture][f"{cap}_{span}"]


def _bus_bandwidth(
    constants: TuningConstants, group: NcclGroup, collective: str, algorithm: str, protocol: str
) -> float:
    channels = group.channels
    channel = group.channel_bytes_per_s if group.nodes <= 2 else group.network_bytes_per_s
    total = channels * channel
    if algorithm == "ring":
        if protocol == "ll":
            return min(0.5 * total, _cap(constants, group, "ll_max"))
        if protocol == "ll128":
            return min(0.92 * total, channels * _cap(constants, group, "ring_ll128"))
        return total
    if algorithm == "tree":
        total = min(0.92 * total, channels * _cap(constants, group, "tree"))
        if protocol == "ll":
            return min(total / 3.8, _cap(constants, group, "ll_max"))
        if protocol == "ll128":
            share = 7 / 9 if group.nodes == 1 else 120 / 128
            return min(share * total, channels * _cap(constants, group, "tree_ll128"))
        return total
    if algorithm == "pat":
        return 0.75 * total
    return _nvls_bandwidth(constants, group, collective, algorithm)


def _nvls_bandwidth(
    constants: TuningConstants, group: NcclGroup, collective: str, algorithm: str
) -> float:
    efficiency = constants.bandwidth_caps[group.architecture]["nvls_efficiency"]
    own = group.switched or Channels(
        group.channels, group.channel_bytes_per_s, group.network_bytes_per_s or inf
    )
    intra = own.inside_bytes_per_s * efficiency * (own.count - 1) / own.count
    # an all-reduce keeps a reduction and a broadcast going at the same time
    intra *= 2 if collective == "all-reduce" else 1 - 1 / group.ranks_per_node
    if algorithm == "nvls":
        return own.count * min(intra, own.across_bytes_per_s)
    network = own.across_bytes_per_s * (2 if group.nodes == 2 else 1)
    return own.count * min(intra, network, _cap(constants, group, "nvls_tree"))


def bandwidth_bytes_per_s(
    constants: TuningConstants, group: NcclGroup, collective: str, algorithm: str, protocol: str
) -> float:
    """Message bytes per second once the latency is paid (nccl-tests calls it algbw).

    Raises InputError if NCCL has no such algorithm and protocol for this collective and group.
    """
    _require(constants, group, collective, algorithm, protocol)
    bus = _bus_bandwidth(constants, group, collective, algorithm, protocol)
    if algorithm == "tree":
        return bus / 2
    if algorithm != "ring" and collective != "all-reduce":
        return bus
    return bus * group.ranks / step_count(collective, group.ranks)


def predicted_time_s(
    constants: TuningConstants,
    group: NcclGroup,
    collective: str,
    algorithm: str,
    protocol: str,
    message_bytes: float,
) -> float:
    """Time (s) that NCCL predicts for `message_bytes` (the largest buffer of a rank).

    Raises InputError if NCCL has no such algorithm and protocol for this collective and group.
    """
    latency = latency_s(constants, group, collective, algorithm, protocol)
    bandwidth = bandwidth_bytes_per_s(constants, group, collective, algorithm, protocol)
    size = (int(message_bytes) >> 6).bit_length() - 1
    x86_blackwell = group.architecture == "blackwell" and group.host != "other"
    if algorithm == "tree" and 0 <= size < 23:
        bandwidth *= TREE_CORRECTION[protocol][size]
    if algorithm == "nvls_tree" and x86_blackwell and 0 <= size < 24:
        bandwidth *= TREE_CORRECTION[protocol][size]
    per_rank = message_bytes // (group.channels * group.ranks)
    simple_ring = (algorithm, protocol, collective) == ("ring", "simple", "all-reduce")
    if simple_ring and group.nodes > 1 and per_rank >= 64:
        latency *= 1.9 if group.architecture == "volta" else 1.4
    return latency + message_bytes / bandwidth


def predictions(
    constants: TuningConstants, group: NcclGroup, collective: str, message_bytes: float
) -> tuple[Prediction, ...]:
    """All candidates for one message, fastest first: NCCL runs the first.

    Raises InputError for an unknown collective or a negative message.
    """
    if message_bytes < 0:
        raise InputError("message_bytes", expected="≥ 0", got=message_bytes)
    times = (
        Prediction(
            algorithm,
            protocol,
            predicted_time_s(constants, group, collective, algorithm, protocol, message_bytes),
        )
        for algorithm, protocol in candidates(constants, group, collective)
    )
    return tuple(sorted(times, key=lambda prediction: prediction.time_s))
