"""What kernels, links and a framework attain on a chip: the constants of the model of time.

A peak is a promise; these are what published runs kept of it. Where they come from, and on which
runs they were fitted, is in `figgen/catalog/rates.toml`. Every field may be an array, one entry a
job, so that many jobs are timed at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from figgen.equations.ops import Number
from figgen.errors import InputError
from figgen.models.machine.cluster import Cluster

CORE_BACKWARD = 2.5
"""Work of the attention core backward over forward: five products instead of two, FlashAttention-2
(arXiv:2307.08691, section 3.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attained:
    """Rates, shares and times of one kind of software on one kind of chip.

    Rates: `product_flops_per_s` of products in the job's format, `plain_flops_per_s` of those kept
    in 16 bits (the head), `expert_flops_per_s` of grouped products, `attention_flops_per_s` of its
    core in both passes over long sequences, to whose keys every query adds `attention_start_keys`,
    `memory_bytes_per_s` of everything that reads and writes; bandwidths are of one GPU and one
    direction, those of shuffles of all-to-alls. Each product takes `product_start_s` beside its
    work, which is in its rate where nobody measured it.

    Work: `elementwise`, `cast` and `permutation` multiply the least number of bytes that norms and
    activations, changes of format, and the sorting of tokens move; `loss_bytes` per logit,
    `accumulate_bytes` per weight and microbatch, `optimizer` over the least bytes of an update.

    Host: the least seconds that the host takes to launch forward and backward of a layer
    (`host_layer_s`), of a layer with experts, of a layer whose collectives leave the node or wait
    for messages of a pipeline (per tensor-parallel rank), of a message between stages.

    Shares: what is not hidden of the messages of tensor, context and pipeline parallelism, of those
    of experts that overlap, and of gradients; `straggling` is what a step grows by for every
    doubling beyond a node. A GPU's own link to its host has `host_link_bytes_per_s`; the host's
    processor updates a parameter that is offloaded in `host_update_s`, of one GPU's process
    alone, and all processes of a node together at `host_bytes_per_s` of its memory.
    `neighbor_share` of the bandwidth in a node goes to one peer.
    What the release does has numbers of `DISPATCHERS`, `EXPERT_OVERLAPS` and `CUDA_GRAPHS`. Of
    `host_expert_layer_s` the host needs the share `graphed_host` where graphs hold a layer's parts,
    and `flexible_host` where DeepEP or HybridEP sorts and sends in few kernels.
    """

    product_flops_per_s: Number
    plain_flops_per_s: Number
    expert_flops_per_s: Number
    attention_flops_per_s: Number
    attention_start_keys: Number
    memory_bytes_per_s: Number
    scale_up_bytes_per_s: Number
    network_bytes_per_s: Number
    shuffle_bytes_per_s: Number
    near_shuffle_bytes_per_s: Number
    product_start_s: Number
    elementwise: Number
    cast: Number
    permutation: Number
    loss_bytes: Number
    accumulate_bytes: Number
    optimizer: Number
    host_layer_s: Number
    host_expert_layer_s: Number
    host_crossing_s: Number
    host_chained_s: Number
    hop_s: Number
    near_hop_s: Number
    step_s: Number
    scatter_latency_s: Number
    exposed_tensor: Number
    exposed_context: Number
    exposed_experts: Number
    exposed_within_experts: Number
    dispatcher: Number
    expert_overlap: Number
    cuda_graphs: Number
    graphed_host: Number
    flexible_host: Number
    exposed_pipeline: Number
    exposed_data: Number
    latency_s: Number
    near_latency_s: Number
    straggling: Number
    neighbor_share: Number
    host_link_bytes_per_s: Number
    host_update_s: Number
    host_bytes_per_s: Number


def slowed(rates: Attained, factor: float) -> Attained:
    """Return the rates divided, and the times multiplied, by `factor`: so is every step's time.

    Shares and counts of bytes stay as they are. Raises InputError for a factor of 0 or less.
    """
    if factor <= 0:
        raise InputError("time_factor", expected="above 0", got=factor)
    return replace(
        rates,
        product_flops_per_s=rates.product_flops_per_s / factor,
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
        product_start_s=factor * rates.product_start_s,
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
    """Raise InputError for a factor with which the FLOPs exceed the dense peak.

    `computing_share` is the share of the peak that they then reach.
    """
    if computing_share > 1:
        least = factor * computing_share
        expected = f"at least {least:.3f}: below that, computing would exceed the dense peak"
        raise InputError("time_factor", expected=expected, got=factor)


def on_hardware(rates: Attained, was: Cluster, now: Cluster) -> Attained:
    """What the same software attains where hardware that `was` so is `now` otherwise: every rate
    grows with what it is a share of, every latency with the link's."""
    peak = now.peak_flops_per_s / was.peak_flops_per_s
    near = now.scale_up_bandwidth_bytes_per_s / was.scale_up_bandwidth_bytes_per_s
    far = now.network_bandwidth_bytes_per_s / was.network_bandwidth_bytes_per_s
    return replace(
        with_latencies(rates, was, now),
        product_flops_per_s=peak * rates.product_flops_per_s,
        plain_flops_per_s=peak * rates.plain_flops_per_s,
        expert_flops_per_s=peak * rates.expert_flops_per_s,
        attention_flops_per_s=peak * rates.attention_flops_per_s,
        scale_up_bytes_per_s=near * rates.scale_up_bytes_per_s,
        near_shuffle_bytes_per_s=near * rates.near_shuffle_bytes_per_s,
        network_bytes_per_s=far * rates.network_bytes_per_s,
        shuffle_bytes_per_s=far * rates.shuffle_bytes_per_s,
    )


def with_latencies(rates: Attained, was: Cluster, now: Cluster) -> Attained:
    """Return the rates with latencies that grow in proportion to those of the links."""
    near = now.scale_up_latency_s / was.scale_up_latency_s if was.scale_up_latency_s else 1.0
    far = now.network_latency_s / was.network_latency_s if was.network_latency_s else 1.0
    return replace(
        rates, near_latency_s=near * rates.near_latency_s, latency_s=far * rates.latency_s
    )
