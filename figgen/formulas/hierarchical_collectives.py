"""Collectives over two levels: fast links within a node, slower ones between nodes."""

from __future__ import annotations

from figgen.equations.ops import Number
from figgen.formulas.notation import formula


@formula(
    symbol=r"T_\text{lat}",
    unit="s",
    source="NCCL tuning.cc, without network overhead and flush",
    where="nodes <= ranks",
)
def nccl_ring_latency(
    ranks: Number,
    nodes: Number,
    base_latency_s: Number,
    intra_latency_s: Number,
    inter_latency_s: Number,
) -> Number:
    """Latency that NCCL's tuner expects of a ring all-reduce with some hops between nodes."""
    return (
        base_latency_s
        + (2 * (ranks - 1) - 2 * (nodes - 1)) * intra_latency_s
        + 2 * (nodes - 1) * inter_latency_s
    )


@formula(
    symbol=r"T_\text{leader}",
    unit="s",
    source="derivation: pipelined reduce in the node, ring of leaders, pipelined broadcast",
    where="gpus_per_node >= 2",
)
def leader_all_reduce_time(
    gpus_per_node: Number,
    nodes: Number,
    message_bytes: Number,
    intra_latency_s: Number,
    intra_bandwidth_bytes_per_s: Number,
    inter_latency_s: Number,
    inter_bandwidth_bytes_per_s: Number,
) -> Number:
    """Time of an all-reduce in which one GPU of each node exchanges data, over one NIC."""
    within = (gpus_per_node - 1) * intra_latency_s + message_bytes / intra_bandwidth_bytes_per_s
    return (
        2 * within
        + 2 * (nodes - 1) * inter_latency_s
        + 2 * (nodes - 1) / nodes * message_bytes / inter_bandwidth_bytes_per_s
    )


@formula(
    symbol=r"T_\text{2D}",
    unit="s",
    source="derivation: reduce-scatter in the node, ring per NIC, all-gather in the node",
)
def two_level_all_reduce_time(
    gpus_per_node: Number,
    nodes: Number,
    message_bytes: Number,
    intra_latency_s: Number,
    intra_bandwidth_bytes_per_s: Number,
    inter_latency_s: Number,
    inter_bandwidth_bytes_per_s: Number,
) -> Number:
    """Time of an all-reduce that uses a NIC per GPU; its phases do not overlap."""
    within = (gpus_per_node - 1) * intra_latency_s + (
        gpus_per_node - 1
    ) / gpus_per_node * message_bytes / intra_bandwidth_bytes_per_s
    return (
        2 * within
        + 2 * (nodes - 1) * inter_latency_s
        + 2 * (nodes - 1) / nodes * message_bytes / (gpus_per_node * inter_bandwidth_bytes_per_s)
    )


@formula(
    symbol=r"V_\text{nic}",
    unit="B",
    source="derivation: every ring crosses each NIC once; measured in stas00/ml-engineering",
)
def flat_ring_bytes_per_nic(ranks: Number, nics_per_node: Number, message_bytes: Number) -> Number:
    """Bytes that each NIC sends when flat rings over all ranks share the node's NICs."""
    return 2 * (ranks - 1) / ranks * message_bytes / nics_per_node
