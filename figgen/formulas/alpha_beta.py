"""Latency and bandwidth: one message, the general collective, and what a measurement implies."""

from __future__ import annotations

from figgen.equations.ops import Number
from figgen.formulas.notation import formula

HOCKNEY = "Hockney α–β model"
NCCL_TESTS = "nccl-tests doc/PERFORMANCE.md"


@formula(symbol=r"\beta", unit="s/B", source="definition")
def inverse_bandwidth(bandwidth_bytes_per_s: Number) -> Number:
    """Time to send one byte."""
    return 1 / bandwidth_bytes_per_s


@formula(symbol="T", unit="s", source=HOCKNEY)
def point_to_point_time(
    message_bytes: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Time of one message."""
    return latency_s + message_bytes / bandwidth_bytes_per_s


@formula(symbol="S^*", unit="B", source="derivation: α = S/B")
def point_to_point_crossover_bytes(latency_s: Number, bandwidth_bytes_per_s: Number) -> Number:
    """Message size at which latency and transfer take equally long."""
    return latency_s * bandwidth_bytes_per_s


@formula(
    symbol="S^*",
    unit="B",
    source="derivation: both terms of the ring all-reduce equal",
    where="ranks >= 2",
)
def ring_all_reduce_crossover_bytes(
    ranks: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Buffer size at which the latency and the transfer of a ring all-reduce take equally long."""
    return ranks * latency_s * bandwidth_bytes_per_s


@formula(symbol="T", unit="s", source="α–β model, general form")
def collective_time(
    steps: Number, latency_s: Number, sent_bytes: Number, seconds_per_byte: Number
) -> Number:
    """Time of a collective of k steps in which every rank sends m bytes."""
    return steps * latency_s + sent_bytes * seconds_per_byte


@formula(symbol="T", unit="s", source="α–β–γ model (Rabenseifner)")
def reducing_collective_time(
    steps: Number,
    latency_s: Number,
    sent_bytes: Number,
    seconds_per_byte: Number,
    reduced_bytes: Number,
    reduce_seconds_per_byte: Number,
) -> Number:
    """Time of a collective in which every rank also reduces c bytes."""
    return (
        steps * latency_s + sent_bytes * seconds_per_byte + reduced_bytes * reduce_seconds_per_byte
    )


@formula(symbol=r"\text{algbw}", unit="B/s", source=NCCL_TESTS)
def algorithm_bandwidth(message_bytes: Number, time_s: Number) -> Number:
    """Buffer size divided by time; also the bus bandwidth of broadcast and reduce."""
    return message_bytes / time_s


@formula(symbol=r"\text{busbw}", unit="B/s", source=NCCL_TESTS)
def all_reduce_bus_bandwidth(ranks: Number, message_bytes: Number, time_s: Number) -> Number:
    """Bandwidth of the link that an all-reduce of this speed would need."""
    return message_bytes / time_s * (2 * (ranks - 1) / ranks)


@formula(symbol=r"\text{busbw}", unit="B/s", source=NCCL_TESTS)
def all_gather_bus_bandwidth(ranks: Number, message_bytes: Number, time_s: Number) -> Number:
    """Bandwidth of the link behind an all-gather, reduce-scatter or all-to-all of this speed."""
    return message_bytes / time_s * ((ranks - 1) / ranks)


@formula(
    symbol=r"B_\text{port}",
    unit="B/s",
    source="derivation: every ring leaves a node once, and all rings together carry the busbw",
)
def ring_port_bandwidth(bus_bandwidth_bytes_per_s: Number, nics_per_node: Number) -> Number:
    """Rate at which a network port sends if rings through several nodes have this bus bandwidth."""
    return bus_bandwidth_bytes_per_s / nics_per_node


@formula(
    symbol=r"B_\text{port}",
    unit="B/s",
    source="derivation: each of a node's g ranks sends n − g of its n parts to other nodes",
    where="gpus_per_node < ranks",
)
def all_to_all_port_bandwidth(
    ranks: Number, gpus_per_node: Number, bus_bandwidth_bytes_per_s: Number, nics_per_node: Number
) -> Number:
    """Rate at which a network port sends during an all-to-all with this bus bandwidth."""
    return (
        bus_bandwidth_bytes_per_s
        * gpus_per_node
        * (ranks - gpus_per_node)
        / (ranks - 1)
        / nics_per_node
    )


@formula(symbol="B", unit="B/s", source="definition")
def one_way_bandwidth(two_way_bandwidth_bytes_per_s: Number) -> Number:
    """Bandwidth per direction of a link whose datasheet adds up both directions."""
    return two_way_bandwidth_bytes_per_s / 2


@formula(symbol="F", unit="FLOP/s", source="2:4 sparsity: two of four values are zero and skipped")
def dense_peak(sparse_peak_flops_per_s: Number) -> Number:
    """Dense peak of a chip whose quoted peak is doubled by 2:4 sparsity."""
    return sparse_peak_flops_per_s / 2


@formula(
    symbol=r"\beta",
    unit="s/B",
    source="derivation: slope of the ring all-reduce over S",
    where="ranks >= 2",
)
def inverse_bandwidth_from_slope(ranks: Number, slope_s_per_byte: Number) -> Number:
    """Time per byte of the link, from the measured slope of an all-reduce over large S."""
    return slope_s_per_byte * ranks / (2 * (ranks - 1))
