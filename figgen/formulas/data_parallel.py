"""Data parallelism, ZeRO and FSDP: bytes sent per rank per step, and how much of that hides.

Parameters are those of the shard that a data-parallel group holds: N/(T·P) in a 3D job.
"""

from __future__ import annotations

from figgen.equations.ops import Number, ceil, maximum, sqrt, where
from figgen.formulas.notation import formula

RING = "derivation: ring all-reduce of the gradient"
ZERO = "Rajbhandari et al. 2020 (ZeRO), arXiv:1910.02054, §7"


@formula(symbol=r"V_\text{DP}", unit="B", source=RING)
def data_parallel_bytes(parameters: Number, gradient_bytes_per_param: Number, dp: Number) -> Number:
    """Bytes that a rank sends per optimizer step to all-reduce its gradient."""
    return 2 * parameters * gradient_bytes_per_param * (dp - 1) / dp


@formula(symbol=r"T_\text{DP}", unit="s", source=RING)
def data_parallel_time(
    parameters: Number,
    gradient_bytes_per_param: Number,
    dp: Number,
    latency_s: Number,
    bandwidth_bytes_per_s: Number,
) -> Number:
    """Time of the gradient's all-reduce if nothing hides it."""
    return (
        2 * (dp - 1) / dp * parameters * gradient_bytes_per_param / bandwidth_bytes_per_s
        + 2 * (dp - 1) * latency_s
    )


@formula(
    symbol=r"T_\text{exp}",
    unit="s",
    source="derivation: gradients become ready evenly, buckets queue on one stream",
)
def exposed_communication_time(
    communication_s: Number, compute_s: Number, buckets: Number, bucket_overhead_s: Number
) -> Number:
    """Time by which a bucketed all-reduce outlasts the backward that it overlaps."""
    bucket = communication_s / buckets + bucket_overhead_s
    return maximum(bucket, buckets * bucket - compute_s * (buckets - 1) / buckets)


@formula(symbol=r"\eta_\text{hidden}", unit="1", source="derivation from the exposed time")
def hidden_communication_fraction(
    communication_s: Number, compute_s: Number, buckets: Number, bucket_overhead_s: Number
) -> Number:
    """Share of a bucketed all-reduce that hides behind the backward."""
    bucket = communication_s / buckets + bucket_overhead_s
    exposed = maximum(bucket, buckets * bucket - compute_s * (buckets - 1) / buckets)
    return maximum(0, 1 - exposed / communication_s)


@formula(symbol=r"\rho", unit="1", source="definition")
def communication_to_compute_ratio(communication_s: Number, compute_s: Number) -> Number:
    """Communication time divided by the time of the computation that may hide it."""
    return communication_s / compute_s


@formula(symbol="T", unit="s", source="derivation: every chunk is a ring all-reduce of its own")
def chunked_all_reduce_time(
    ranks: Number,
    buckets: Number,
    message_bytes: Number,
    bandwidth_bytes_per_s: Number,
    bucket_overhead_s: Number,
) -> Number:
    """Time of an all-reduce in equal chunks, one after the other, each with a fixed cost."""
    return buckets * (
        2 * (ranks - 1) / ranks * message_bytes / (buckets * bandwidth_bytes_per_s)
        + bucket_overhead_s
    )


@formula(
    symbol=r"n_\text{b}^*",
    unit="bucket",
    source="derivation: minimum of the last bucket's time plus all overheads",
    where="bucket_overhead_s > 0",
)
def best_bucket_count(communication_s: Number, bucket_overhead_s: Number) -> Number:
    """Number of buckets that exposes the least time if overheads cannot hide (not rounded)."""
    return sqrt(communication_s / bucket_overhead_s)


@formula(
    symbol=r"n_\text{b}^*",
    unit="bucket",
    source="derivation: where last bucket and queue meet, or else the queue's minimum",
    where="bucket_overhead_s > 0",
)
def best_overlapped_bucket_count(
    communication_s: Number, compute_s: Number, bucket_overhead_s: Number
) -> Number:
    """Number of buckets that exposes the least time if overheads hide too (not rounded)."""
    return maximum(
        (compute_s - communication_s) / bucket_overhead_s, sqrt(compute_s / bucket_overhead_s)
    )


@formula(
    symbol=r"n_\text{b}",
    unit="bucket",
    source="PyTorch reducer.hpp: a first bucket of 1 MiB, then 25 MiB each",
    where="gradient_bytes >= first_bucket_bytes",
)
def bucket_count(
    gradient_bytes: Number, first_bucket_bytes: Number, bucket_bytes: Number
) -> Number:
    """Number of buckets of PyTorch's DDP if tensors fill them without gaps."""
    return 1 + ceil((gradient_bytes - first_bucket_bytes) / bucket_bytes)


@formula(symbol="E", unit="1", source="definition")
def scaling_efficiency(speedup: Number, ranks: Number) -> Number:
    """Speed-up divided by the number of ranks."""
    return speedup / ranks


@formula(symbol=r"\rho", unit="1", source="definition")
def quantization_ratio(bits_from: Number, bits_to: Number) -> Number:
    """Factor by which narrower elements shrink a message, not counting scales."""
    return bits_from / bits_to


@formula(symbol=r"\rho", unit="1", source="derivation: index and value for every kept element")
def top_k_compression_ratio(
    bytes_per_element: Number, kept_fraction: Number, value_bytes: Number, index_bytes: Number
) -> Number:
    """Factor by which sending only the largest elements shrinks one rank's message."""
    return bytes_per_element / (kept_fraction * (value_bytes + index_bytes))


@formula(symbol="V", unit="B", source="derivation: every rank receives all others' elements")
def top_k_all_gather_bytes(
    dp: Number,
    kept_fraction: Number,
    parameters: Number,
    value_bytes: Number,
    index_bytes: Number,
) -> Number:
    """Bytes that a rank receives when the kept elements are all-gathered; it grows with D."""
    return (dp - 1) * kept_fraction * parameters * (value_bytes + index_bytes)


@formula(symbol=r"\rho", unit="1", source="Vogels et al. 2019 (PowerSGD), arXiv:1905.13727")
def power_sgd_ratio(rows: Number, columns: Number, low_rank: Number) -> Number:
    """Factor by which two rank-r factors are smaller than the gradient matrix."""
    return rows * columns / (low_rank * (rows + columns))


@formula(symbol=r"V_\text{DP}", unit="B", source=ZERO)
def zero_bytes_sent(
    parameters: Number, bytes_per_param: Number, dp: Number, zero_stage: Number
) -> Number:
    """Bytes that a rank sends per step under ZeRO without gradient accumulation."""
    return where(
        zero_stage == 3,
        3 * parameters * bytes_per_param * (dp - 1) / dp,
        2 * parameters * bytes_per_param * (dp - 1) / dp,
    )


@formula(
    symbol=r"V_\text{DP}",
    unit="B",
    source="derivation: a reduce-scatter per microbatch and one all-gather",
)
def zero2_accumulation_bytes(
    parameters: Number, bytes_per_param: Number, dp: Number, accumulation_steps: Number
) -> Number:
    """Bytes that a rank sends per step under ZeRO-2 when gradients accumulate in shards."""
    return (accumulation_steps + 1) * parameters * bytes_per_param * (dp - 1) / dp


@formula(symbol="V_i", unit="B", source=f"{ZERO}: all-gather twice, reduce-scatter once")
def fsdp_layer_bytes(layer_parameters: Number, bytes_per_param: Number, dp: Number) -> Number:
    """Bytes that a rank sends per step for one layer under FSDP with resharding."""
    return 3 * layer_parameters * bytes_per_param * (dp - 1) / dp


@formula(symbol=r"V_\text{i}", unit="B", source="derivation: FSDP within the shard group")
def hsdp_shard_bytes(parameters: Number, bytes_per_param: Number, shard_ranks: Number) -> Number:
    """Bytes that a rank of hybrid sharding sends within its shard group per step."""
    return 3 * parameters * bytes_per_param * (shard_ranks - 1) / shard_ranks


@formula(symbol=r"V_\text{e}", unit="B", source="derivation: all-reduce of a shard's gradient")
def hsdp_replica_bytes(
    parameters: Number, bytes_per_param: Number, shard_ranks: Number, replicas: Number
) -> Number:
    """Bytes that a rank of hybrid sharding sends to the other replicas per step."""
    return 2 * parameters * bytes_per_param / shard_ranks * ((replicas - 1) / replicas)


@formula(symbol="T", unit="s", source="derivation: gather, then compute, layer after layer")
def serial_gather_time(layers: Number, gather_s: Number, layer_compute_s: Number) -> Number:
    """Forward time of FSDP if every layer waits for its own weights."""
    return layers * (gather_s + layer_compute_s)


@formula(symbol="T", unit="s", source="derivation: the next gather runs behind this layer")
def prefetched_gather_time(layers: Number, gather_s: Number, layer_compute_s: Number) -> Number:
    """Forward time of FSDP if the next layer's weights are gathered during the current layer."""
    return gather_s + (layers - 1) * maximum(layer_compute_s, gather_s) + layer_compute_s
