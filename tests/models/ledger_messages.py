"""Messages of a step, counted one by one: rings hop by hop, experts dealt to nodes in every way."""

from __future__ import annotations

from itertools import product
from math import ceil, fsum

from figgen.models.step.attained import Attained
from figgen.models.step.job import Job
from tests.models.ledger_kernels import HALF, core_s, fullest_tokens, trading


def ring_s(ranks: float, size: float, rate: float, alpha: float) -> float:
    """Return seconds of one gather or scatter, in which every hop sends a rank's part of `size`."""
    return fsum(size / ranks / rate + alpha for _ in range(int(ranks) - 1))


def tensor_call_s(job: Job, at: Attained) -> float:
    rate, alpha = at.scale_up_bytes_per_s, at.near_latency_s
    if job.tp > job.gpus_per_node:
        rate, alpha = min(rate, job.gpus_per_node * at.network_bytes_per_s), at.latency_s
    return ring_s(job.tp, job.tokens * job.hidden * HALF, rate, alpha)


def context_s(job: Job, at: Attained) -> tuple[float, float]:
    """Return seconds of keys and values forward, and of these and their gradients backward: passed
    on, or gathered.

    With an exchange for heads, queries, keys, values and outputs move instead.
    """
    near = job.tp * job.cp <= job.gpus_per_node
    rate = at.scale_up_bytes_per_s if near else at.network_bytes_per_s
    one = job.tokens * job.key_value_width * HALF / job.tp
    passes = ("K", "V"), ("K again", "V again", "gradient of K", "gradient of V")
    members, wait = trading(job), 0.0
    if members > 1:
        one *= max(1, members / max(1, job.key_value_heads / job.tp))
        query = job.tokens * job.attention_width * HALF / job.tp
        traded = fsum((query, one, one, query))
        here = max(1, min(job.cp, job.gpus_per_node / job.tp))
        inside = traded / members * (min(here, members) - 1) / at.scale_up_bytes_per_s
        beyond = traded / members * max(0, members - here) / at.network_bytes_per_s
        wait = max(inside, beyond)
    if near and not job.gathers_keys:
        rate *= at.neighbor_share
    hops = [len(sent) * one / rate * (job.cp / members - 1) for sent in passes]
    if job.gathers_keys:
        return wait + hops[0] * at.exposed_context, wait + hops[1] * at.exposed_context
    if not job.keys_in_turns:
        return wait + hops[0], wait + hops[1]
    cores = core_s(job, at, 2), core_s(job, at, 5)
    left = [max(at.exposed_context * s, s - core) for s, core in zip(hops, cores, strict=True)]
    return wait + left[0], wait + left[1]


def reachable(parts: float, job: Job) -> int:
    """Return ranks or nodes among which the router may choose a token's experts."""
    if job.expert_groups == 1:
        return int(parts)
    groups_each = job.expert_groups / parts
    return int(min(parts, job.reached_groups / min(1, groups_each)))


def copies_elsewhere(nodes: int, choices: int, once: bool, within: int) -> float:
    """Return the copies of a token that leave its node, over all ways to deal its
    experts to nodes."""
    if once and within < nodes:
        ways = list(product(range(within), repeat=choices))
        return fsum(len(set(way)) for way in ways) / len(ways) * (nodes - 1) / nodes
    ways = list(product(range(nodes), repeat=choices))
    leaving = [[node for node in way if node] for way in ways]
    return fsum(len(set(gone) if once else gone) for gone in leaving) / len(ways)


def shuffle_s(job: Job, at: Attained, hiding_s: float) -> float:
    """Return seconds to send tokens to their experts or back, within and between nodes at the same
    time, minus what another microbatch's matmuls hide."""
    sent = dispatched_s(job, at)
    overlap = job.expert_overlap or at.expert_overlap
    # Both ways together hide behind the products of a forward.
    hidden = min((1 - at.exposed_experts) * sent, hiding_s / 2) if overlap == 2 else 0.0
    each = fullest_tokens(job) * job.top_k * job.hidden * HALF
    shared = fsum(each / at.scale_up_bytes_per_s for _ in range(job.etp - 1))
    return sent - hidden + shared * at.exposed_within_experts


def ranks_reached(job: Job) -> float:
    """Return the number of ranks that a token reaches, over all ways to deal its
    experts to ranks."""
    ways = list(product(range(reachable(job.ep, job)), repeat=job.top_k))
    return fsum(len(set(way)) for way in ways) / len(ways)


def dispatched_s(job: Job, at: Attained) -> float:
    """Return the bytes that a dispatcher (1: all-to-all, 2: DeepEP, 3: HybridEP) sends once."""
    dispatcher = job.dispatcher or at.dispatcher
    token = fullest_tokens(job) * job.hidden * HALF
    nodes = max(1, job.ep * job.etp / job.gpus_per_node)
    away = (job.ep - 1) / job.ep
    near = token * (job.top_k / nodes if dispatcher == 1 else ranks_reached(job)) * away
    within = reachable(int(nodes), job)
    far = token * copies_elsewhere(int(nodes), job.top_k, dispatcher > 1, within)
    return max(near / at.near_shuffle_bytes_per_s, far / at.shuffle_bytes_per_s)


def sorted_s(job: Job, at: Attained) -> float:
    """Return seconds for one sort of tokens or their outputs, which reads and writes them."""
    dispatcher = job.dispatcher or at.dispatcher
    token = fullest_tokens(job) * job.hidden * HALF
    copies = token * job.top_k
    again = [copies, copies] if job.experts > job.ep > 1 else []
    by_rank = [token, copies, *again]
    reads_and_writes = {1: by_rank, 2: [token * ranks_reached(job), copies], 3: [copies]}
    moved = fsum(reads_and_writes[int(dispatcher)] if job.ep > 1 else by_rank)
    # Without experts nothing is read either.
    return at.permutation * moved * (job.top_k > 0) / at.memory_bytes_per_s


def stage_hop_s(job: Job, at: Attained) -> float:
    """Return seconds to send activations to the next stage and gradients back, between chunks of a
    rank."""
    if job.pp == 1:
        return 0.0
    near = job.gpus // job.pp < job.gpus_per_node
    rate = at.scale_up_bytes_per_s if near else at.network_bytes_per_s
    launch = at.near_hop_s if job.gpus <= job.gpus_per_node else at.hop_s
    size = job.tokens * job.hidden * HALF / job.tp
    ways = ("activations", "gradients")
    return fsum(size / rate * at.exposed_pipeline * job.chunks + launch for _ in ways)


def data_link(job: Job, at: Attained) -> tuple[float, float, bool]:
    """Return rate and latency of a data-parallel ring, and whether it leaves the node."""
    if job.gpus // job.pp <= job.gpus_per_node:
        return at.scale_up_bytes_per_s, at.near_latency_s, False
    lanes = max(1, min(job.gpus_per_node / job.tp, job.dp * job.cp))
    return min(at.scale_up_bytes_per_s, lanes * at.network_bytes_per_s), at.latency_s, True


def trained(job: Job) -> tuple[float, float]:
    """Return the parameters that a GPU trains, without and in routed experts, layer by layer."""
    if not job.lora_rank:
        dense = job.dense_parameters / job.tp / job.pp
        return dense, job.routed_parameters / (job.ep * job.etp) / job.pp
    kinds = [index < job.expert_layers for index in range(job.layers)]
    dense = fsum(job.tuned_experts if experts else job.tuned_dense for experts in kinds)
    routed = fsum(job.tuned_routed / job.ep for experts in kinds if experts)
    return dense / job.pp, routed / job.pp


def frozen(job: Job) -> tuple[float, float]:
    """Return bytes of the frozen weights next to them; all except layers' matrices are
    in 16 bits."""
    if not job.lora_rank:
        return 0.0, 0.0
    inner = 0.0
    for index in range(job.layers):
        experts = index < job.expert_layers
        block = job.shared * job.expert_weights if experts else job.dense_weights
        inner += job.attention_weights + block
    dense = job.frozen_bytes * inner + HALF * (job.dense_parameters - inner)
    routed = job.frozen_bytes * job.routed_parameters / (job.ep * job.etp)
    return dense / job.tp / job.pp, routed / job.pp


def expert_replicas(job: Job) -> int:
    return max(1, job.gpus // (job.ep * job.etp * job.pp))


def gradients_s(job: Job, at: Attained, computing_s: float) -> float:
    """Return seconds once per step for rings over the shards of dense parameters and over replicas
    of experts, at least those left when computation ends."""
    shards, layers = job.dp * job.cp, ceil(job.layers / job.pp)
    rate, alpha, far = data_link(job, at)
    dense, routed = trained(job)
    passes = [job.gradient_bytes, HALF if job.zero_stage else job.gradient_bytes]
    once = fsum(ring_s(shards, dense * width, rate, 0) for width in passes)
    once += fsum(alpha * min(shards, 64) for _ in range(layers) for _ in ("scatter", "gather"))
    share = at.exposed_data if job.overlapped else 1
    if job.per_tensor and job.zero_stage == 1:
        tensors = 9 * layers * (1 if far else 0.2)
        messages = fsum(at.scatter_latency_s for _ in range(shards - 1) for _ in passes)
        sent = fsum(ring_s(shards, dense * width, rate, 0) for width in passes)
        alone = sent + messages * tensors
    apart = at.network_bytes_per_s if job.ep * job.etp >= job.gpus_per_node else rate
    experts = fsum(ring_s(expert_replicas(job), routed * width, apart, 0) for width in passes)
    if job.per_tensor and job.zero_stage == 1:
        return alone + experts * share
    alone = 0.0
    if job.gathers_alone and job.overlapped and job.zero_stage:
        alone = ring_s(shards, dense * HALF, rate, 0) + layers * alpha * min(shards, 64)
        alone += ring_s(expert_replicas(job), routed * HALF, apart, 0)
    hidden = once + experts - alone
    return alone + max(hidden - computing_s, hidden * share)


def passed_s(job: Job, at: Attained, width: float, *, weights: bool = False) -> float:
    """Return seconds to send all that a stage trains around its rings, a message per layer; with
    `weights` also what is frozen."""
    shards = job.dp * job.cp
    rate, alpha, _ = data_link(job, at)
    apart = at.network_bytes_per_s if job.ep * job.etp >= job.gpus_per_node else rate
    sizes = [
        part * width + beside * weights
        for part, beside in zip(trained(job), frozen(job), strict=True)
    ]
    dense = ring_s(shards, sizes[0], rate, 0)
    experts = ring_s(expert_replicas(job), sizes[1], apart, 0)
    return dense + experts + job.layers / job.pp * alpha * min(shards, 64)
