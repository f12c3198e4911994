"""The rates that kernels, links and a framework attain on a chip: the constants of the step model.

Published runs attain only a share of the peaks on a datasheet, and these constants hold that share.
`figgen/catalog/rates.toml` gives their sources and the runs they were fitted to. Every field may be
an array with one entry per job, so that many jobs are timed at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from figgen.equations.ops import Number
from figgen.errors import InputError
from figgen.models.machine.cluster import Cluster

CORE_BACKWARD = 2.5
"""Backward work of the attention core over forward: five matmuls instead of two, FlashAttention-2
(arXiv:2307.08691, section 3.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attained:
    """Rates, shares and times of one kind of software on one kind of chip.

    Bandwidths are those of one GPU in one direction.
    """

    # Rates of matmuls in the job's format, in 16 bits (the head), grouped over experts, and of the
    # attention core on long sequences; short ones behave like `attention_start_keys` more keys.
    matmul_flops_per_s: Number
    plain_flops_per_s: Number
    unaligned_share: Number  # of that, for widths that are no multiple of `ALIGNMENT`
    expert_flops_per_s: Number
    attention_flops_per_s: Number
    attention_start_keys: Number
    memory_bytes_per_s: Number
    scale_up_bytes_per_s: Number
    network_bytes_per_s: Number
    shuffle_bytes_per_s: Number  # all-to-alls between nodes
    near_shuffle_bytes_per_s: Number  # all-to-alls inside a node
    matmul_start_s: Number  # start-up of a matmul; part of its rate where it was not measured
    # Memory traffic over its minimum: norms and activations, casts, and sorting of tokens.
    elementwise: Number
    cast: Number
    permutation: Number
    loss_bytes: Number  # per logit
    accumulate_bytes: Number  # per weight per microbatch
    optimizer: Number  # memory traffic of an update over its minimum
    # Seconds that the host needs at least to launch both passes of a layer, of an expert layer, and
    # of a layer whose collectives leave the node or wait for pipeline messages (per tensor rank).
    host_layer_s: Number
    host_expert_layer_s: Number
    host_crossing_s: Number
    host_chained_s: Number
    hop_s: Number  # a message between stages on different nodes
    near_hop_s: Number
    step_s: Number  # fixed cost of a step
    scatter_latency_s: Number
    # Exposed shares of messages.
    exposed_tensor: Number
    exposed_context: Number
    exposed_experts: Number  # of the messages that overlap
    exposed_within_experts: Number
    # Defaults of the software's release: codes of `DISPATCHERS`, `EXPERT_OVERLAPS`, `CUDA_GRAPHS`.
    dispatcher: Number
    expert_overlap: Number
    cuda_graphs: Number
    # Shares of `host_expert_layer_s` that the host still needs with CUDA graphs of a layer's parts,
    # and with DeepEP or HybridEP, which sort and send in few kernels.
    graphed_host: Number
    flexible_host: Number
    exposed_pipeline: Number
    exposed_data: Number
    latency_s: Number
    near_latency_s: Number
    straggling: Number  # growth of a step with every doubling of the GPUs beyond a node
    neighbor_share: Number  # of the bandwidth inside a node that one peer gets
    # Offloading: the link of a GPU to its host, seconds per parameter updated by the processor for
    # one GPU's process, and the host's memory bandwidth, which all processes of a node share.
    host_link_bytes_per_s: Number
    host_update_s: Number
    host_bytes_per_s: Number


def slowed(rates: Attained, factor: float) -> Attained:
    """Return `rates` with every rate divided and every time multiplied by `factor`.

    A step then takes `factor` times as long. Shares and byte counts stay the same. Raises
    InputError if `factor` is not positive.
    """
    if factor <= 0:
        raise InputError("time_factor", expected="above 0", got=factor)
    return replace(
        rates,
        matmul_flops_per_s=rates.matmul_flops_per_s / factor,
        plain_flops_per_s=rates.plain_flops_per_s / factor,
        expert_flops_per_s=rates.expert_flops_per_s / factor,
        attention_flops_per_s=rates.attention_flops_per_s / factor,
        memory_bytes_per_s=rates.memory_bytes_per_s / factor,
        scale_up_bytes_per_s=rates.scale_up_bytes_per_s / factor,
        network_bytes_per_s=rates.network_bytes_per_s / factor,
        shuffle_bytes_per_s=rates.shuffle_bytes_per_s / factor,
        near_shuffle_bytes_per_s=rates.near_shuffle_bytes_per_s / factor,
        host_link_bytes_per_s=rates.host_link_bytes_per_s / factor,
        host_bytes_per_s=rates.host_bytes_per_s / factor,
        matmul_start_s=factor * rates.matmul_start_s,
        host_layer_s=factor * rates.host_layer_s,
        host_expert_layer_s=factor * rates.host_expert_layer_s,
        host_crossing_s=factor * rates.host_crossing_s,
        host_chained_s=factor * rates.host_chained_s,
        hop_s=factor * rates.hop_s,
        near_hop_s=factor * rates.near_hop_s,
        step_s=factor * rates.step_s,
        scatter_latency_s=factor * rates.scatter_latency_s,
        latency_s=factor * rates.latency_s,
        near_latency_s=factor * rates.near_latency_s,
        host_update_s=factor * rates.host_update_s,
    )


def check_time_factor(factor: float, computing_share: float) -> None:
    """Raise InputError if `factor` would make the FLOPs exceed the dense peak.

    `computing_share` is the share of the peak that the job reaches with this factor.
    """
    if computing_share > 1:
        least = factor * computing_share
        expected = f"at least {least:.3f}: below that, computing would exceed the dense peak"
        raise InputError("time_factor", expected=expected, got=factor)


def on_hardware(rates: Attained, was: Cluster, now: Cluster) -> Attained:
    """Return the rates of the same software on hardware `now`, scaled from those on `was`.

    Each rate scales with the peak or bandwidth that it is a share of, each latency with the link's.
    """
    peak = now.peak_flops_per_s / was.peak_flops_per_s
    near = now.scale_up_bandwidth_bytes_per_s / was.scale_up_bandwidth_bytes_per_s
    far = now.network_bandwidth_bytes_per_s / was.network_bandwidth_bytes_per_s
    return replace(
        with_latencies(rates, was, now),
        matmul_flops_per_s=peak * rates.matmul_flops_per_s,
        plain_flops_per_s=peak * rates.plain_flops_per_s,
        expert_flops_per_s=peak * rates.expert_flops_per_s,
        attention_flops_per_s=peak * rates.attention_flops_per_s,
        scale_up_bytes_per_s=near * rates.scale_up_bytes_per_s,
        near_shuffle_bytes_per_s=near * rates.near_shuffle_bytes_per_s,
        network_bytes_per_s=far * rates.network_bytes_per_s,
        shuffle_bytes_per_s=far * rates.shuffle_bytes_per_s,
    )


def with_latencies(rates: Attained, was: Cluster, now: Cluster) -> Attained:
    """Return the rates with latencies scaled in proportion to those of the links."""
    near = now.scale_up_latency_s / was.scale_up_latency_s if was.scale_up_latency_s else 1.0
    far = now.network_latency_s / was.network_latency_s if was.network_latency_s else 1.0
    return replace(
        rates, near_latency_s=near * rates.near_latency_s, latency_s=far * rates.latency_s
    )
