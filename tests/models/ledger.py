"""A step of training counted kernel by kernel and message by message, for one GPU of a job.

The closed forms of `figgen.models.step.layer_time` and `timed_step` are products of sums; here
every kernel says what it multiplies, reads and writes, every ring is walked hop by hop, and experts
are dealt to nodes in every possible way.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import ceil, fsum, log2

from figgen.models.shape.model_shape import ModelShape
from figgen.models.step.attained import Attained
from figgen.models.step.job import Job

HALF = 2  # bytes of a 16-bit number
Kernel = tuple[int, int, float]
"""Tensors read, tensors written, their width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedJob(Job):
    """A job with the model that its numbers are of."""

    shape: ModelShape


TRAINED = ("outputs", "inputs", "weights")


def passes_of(job: Job) -> tuple[str, ...]:
    """Passes of a matmul with weights of the model: frozen ones have no gradient."""
    return TRAINED[:2] if job.lora_rank else TRAINED


def products_s(
    weights: float, tokens: float, rate: float, starts_s: float, passes: tuple[str, ...] = TRAINED
) -> float:
    """Outputs forward, gradients of inputs, gradients of weights: a sum and a product each, and
    what their products wait to start."""
    return fsum(2 * weights * tokens / rate + starts_s for _ in passes)


def core_s(job: Job, at: Attained, passes: int) -> float:
    """Products over the visible pairs of queries and keys: scores and values forward. A query of
    a layer with a window sees the keys before it, or so many of them. A mixer's scan goes at a
    quarter of the rate. Tiles of a query begin, as long as some keys take."""
    window = min(job.window, job.sequence)
    within = (window**2 / 2 + window * (job.sequence - window)) / job.sequence
    whole = 1 - job.windowed_share - job.mixer_share
    chunk, seen = job.sequence / job.cp, job.sequence / 2
    chunk *= trading(job)
    if job.in_order:  # the last rank: all other chunks, half of its own
        seen = fsum(chunk for _ in range(round(job.sequence / chunk) - 1)) + chunk / 2
    begun = (1 - job.mixer_share) * at.attention_start_keys / 2
    pairs = job.tokens * (whole * seen + job.windowed_share * within - job.keys_apart / 2 + begun)
    scans = passes / 2 * job.mixer_share * job.tokens * job.mixer_work * 4
    work = passes * 2 * pairs * job.attention_width + scans
    return work / job.tp / at.attention_flops_per_s


def kernels_s(at: Attained, tokens: float, kernels: list[Kernel]) -> float:
    moved = fsum((read + written) * width * HALF for read, written, width in kernels)
    return at.elementwise * tokens * moved / at.memory_bytes_per_s


def queries_keys_values(shape: ModelShape) -> int:
    """Channels of all heads' queries, keys and values."""
    heads = [(shape.heads, shape.head_dim), (2 * shape.kv_heads, shape.head_dim)]
    if shape.latent:
        key = shape.latent.nope_head_dim + shape.latent.rope_head_dim
        heads = [(2 * shape.heads, key), (shape.heads, shape.latent.value_head_dim)]
    return sum(count * width for count, width in heads)


def block_kernels(job: ShapedJob) -> list[Kernel]:
    """Two norms, two residual sums, positions rotated into queries and keys, or what a mixer makes
    of a token, convolved, scanned and gated."""
    mixers, share = job.shape.state_space, job.mixer_share
    return [
        *[(1, 1, job.hidden)] * 2,
        *[(2, 1, job.hidden)] * 2,
        (1, 1, (1 - share) * queries_keys_values(job.shape)),
        *([(1, 1, share * (mixers.projected + 2 * mixers.inner))] if mixers else []),
    ]


def matrices(job: ShapedJob) -> int:
    """Matrices of a feed-forward block."""
    return 3 if job.shape.ffn == "swiglu" else 2


def gate(job: ShapedJob, width: float) -> list[Kernel]:
    """What a block does between its matrices: the last one has its output for an input."""
    return [(matrices(job) - 1, 1, width)]


def beside(job: Job, at: Attained, *, experts: bool, held: float) -> tuple[float, float, float]:
    """Adapters of a layer with `held` weights: matmuls of one pass, passes forward and backward.

    As many inputs as outputs; quantized weights are read and written in 16 bits in each pass.
    """
    if not job.lora_rank:
        return 0.0, 0.0, 0.0
    met = job.tokens * (job.tuned_experts if experts else job.tuned_dense)
    if experts:
        copies = fullest_tokens(job) * job.top_k
        met += fsum(copies * job.tuned_routed / job.experts for _ in range(job.etp))
    ends = met / job.lora_rank / 2
    first, second, added = (1, 0, ends), (0, 1, ends), (2, 1, ends)
    ahead: list[Kernel] = [first, second, added]
    # Both factors' gradients of weights, the gradients of what lies between and of the input.
    behind: list[Kernel] = [(1, 0, ends), (1, 0, ends), (1, 0, ends), (0, 1, ends), (2, 1, ends)]
    unpacked = held * (job.frozen_bytes + HALF) if job.frozen_bytes < HALF else 0.0
    unpacked_s = unpacked / (0.19 * at.memory_bytes_per_s)
    thin = 2 * met / at.product_flops_per_s
    return thin, kernels_s(at, 1, ahead) + unpacked_s, kernels_s(at, 1, behind) + unpacked_s


def cast_s(job: Job, at: Attained, tokens: float, ends: list[tuple[float, float]]) -> float:
    """Inputs and gradients of products in 8 bits: read, written in rows, in columns, scaled."""
    if not job.quantized:
        return 0.0
    elements = fsum(inputs + outputs for inputs, outputs in ends)
    return tokens * elements * at.cast * (HALF + 1 + 1 + 1) / at.memory_bytes_per_s


def attention_ends(job: ShapedJob) -> list[tuple[float, float]]:
    """Channels into and out of the first and the last matrix, of the mean layer."""
    hidden, mixers, share = job.hidden, job.shape.state_space, job.mixer_share
    found = [(hidden, queries_keys_values(job.shape)), (job.attention_width, hidden)]
    if not mixers:
        return found
    more = [(hidden, mixers.projected), (mixers.inner, hidden)]
    return [
        *[((1 - share) * inputs, (1 - share) * outputs) for inputs, outputs in found],
        *[(share * inputs, share * outputs) for inputs, outputs in more],
    ]


def block_ends(job: ShapedJob, width: float) -> list[tuple[float, float]]:
    return [(job.hidden, (matrices(job) - 1) * width), (width, job.hidden)]


def attention_matmuls(job: ShapedJob) -> list[str]:
    if not job.shape.latent:
        return ["queries, keys and values", "output"]
    queries = ["query down", "query up"] if job.shape.latent.query_rank else ["query"]
    return [*queries, "key-value down", "key-value up", "output"]


def expert_width(job: ShapedJob) -> int:
    return job.shape.experts.ffn_hidden if job.shape.experts else 0


def ring_s(ranks: float, size: float, rate: float, alpha: float) -> float:
    """One gather or scatter: every hop a rank's part of `size`."""
    return fsum(size / ranks / rate + alpha for _ in range(int(ranks) - 1))


def tensor_call_s(job: Job, at: Attained) -> float:
    rate, alpha = at.scale_up_bytes_per_s, at.near_latency_s
    if job.tp > job.gpus_per_node:
        rate, alpha = min(rate, job.gpus_per_node * at.network_bytes_per_s), at.latency_s
    return ring_s(job.tp, job.tokens * job.hidden * HALF, rate, alpha)


def context_s(job: Job, at: Attained) -> tuple[float, float]:
    """Keys and values forward; the same and their gradients backward; to the next each time, or
    gathered; or queries, keys, values and outputs traded, and their gradients."""
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


def trading(job: Job) -> float:
    """Context ranks that have traded tokens for heads hold the tokens of all of them."""
    if job.trades_heads:
        return float(job.cp)
    return max(1, min(job.cp, job.gpus_per_node / job.tp)) if job.trades_in_node else 1


def reachable(parts: float, job: Job) -> int:
    """Ranks or nodes with experts that the router lets a token have."""
    if job.expert_groups == 1:
        return int(parts)
    groups_each = job.expert_groups / parts
    return int(min(parts, job.reached_groups / min(1, groups_each)))


def copies_elsewhere(nodes: int, choices: int, once: bool, within: int) -> float:
    """Copies of a token that leave its node, over all ways to deal its experts to nodes."""
    if once and within < nodes:
        ways = list(product(range(within), repeat=choices))
        return fsum(len(set(way)) for way in ways) / len(ways) * (nodes - 1) / nodes
    ways = list(product(range(nodes), repeat=choices))
    leaving = [[node for node in way if node] for way in ways]
    return fsum(len(set(gone) if once else gone) for gone in leaving) / len(ways)


def shuffle_s(job: Job, at: Attained, hiding_s: float) -> float:
    """Tokens to their experts or back, in the node and between nodes at the same time; behind the
    products of another microbatch where they overlap."""
    sent = dispatched_s(job, at)
    overlap = job.expert_overlap or at.expert_overlap
    # Both ways together hide behind the products of a forward.
    hidden = min((1 - at.exposed_experts) * sent, hiding_s / 2) if overlap == 2 else 0.0
    each = fullest_tokens(job) * job.top_k * job.hidden * HALF
    shared = fsum(each / at.scale_up_bytes_per_s for _ in range(job.etp - 1))
    return sent - hidden + shared * at.exposed_within_experts


def fullest_tokens(job: Job) -> float:
    """Tokens of which the fullest rank of experts gets copies; at most those of all ranks."""
    return min(job.ep, job.expert_skew) * job.tokens / job.tp


def ranks_reached(job: Job) -> float:
    """Ranks that get a token, over all ways to deal its experts to ranks."""
    ways = list(product(range(reachable(job.ep, job)), repeat=job.top_k))
    return fsum(len(set(way)) for way in ways) / len(ways)


def dispatched_s(job: Job, at: Attained) -> float:
    """What a dispatcher (1: all-to-all, 2: DeepEP, 3: HybridEP) sends once."""
    dispatcher = job.dispatcher or at.dispatcher
    token = fullest_tokens(job) * job.hidden * HALF
    nodes = max(1, job.ep * job.etp / job.gpus_per_node)
    away = (job.ep - 1) / job.ep
    near = token * (job.top_k / nodes if dispatcher == 1 else ranks_reached(job)) * away
    within = reachable(int(nodes), job)
    far = token * copies_elsewhere(int(nodes), job.top_k, dispatcher > 1, within)
    return max(near / at.near_shuffle_bytes_per_s, far / at.shuffle_bytes_per_s)


def sorted_s(job: Job, at: Attained) -> float:
    """What reads and writes of sorting take once, tokens or their outputs."""
    dispatcher = job.dispatcher or at.dispatcher
    token = fullest_tokens(job) * job.hidden * HALF
    copies = token * job.top_k
    again = [copies, copies] if job.experts > job.ep > 1 else []
    by_rank = [token, copies, *again]
    reads_and_writes = {1: by_rank, 2: [token * ranks_reached(job), copies], 3: [copies]}
    moved = fsum(reads_and_writes[int(dispatcher)] if job.ep > 1 else by_rank)
    # Without experts nothing is read either.
    return at.permutation * moved * (job.top_k > 0) / at.memory_bytes_per_s


def launched(job: Job, at: Attained, *, experts: bool) -> float:
    """Seconds for the launches of a layer that no graph holds."""
    graphs = job.cuda_graphs or (at.cuda_graphs if experts else 0)
    least = at.host_expert_layer_s if experts else at.host_layer_s
    if graphs == 3 or (graphs == 2 and not experts):
        return 0.0
    if graphs == 2:
        least *= at.graphed_host
    if experts and job.ep > 1 and (job.dispatcher or at.dispatcher) > 1:
        least *= at.flexible_host
    return least + least / 160 * 9 * (job.expert_adapters if experts else job.adapters)


def host_s(job: Job, at: Attained, layer_s: float) -> float:
    launched = [layer_s * (1.4 if job.repeats_layer else 1)]
    if job.tp > job.gpus_per_node:
        launched.append(at.host_crossing_s * job.tp)
    chained = job.tp > 1 and job.pp > 1 and job.gpus > job.gpus_per_node
    return max(launched) + (at.host_chained_s * job.tp if chained else 0)


def layer(job: ShapedJob, at: Attained, *, experts: bool) -> dict[str, float]:
    """The parts of one layer and microbatch, as `LayerSeconds` names them."""
    tokens = job.tokens / job.tp  # a rank's, or its part of the width of all
    routed = fullest_tokens(job) * job.top_k if experts else 0.0
    weights = job.attention_weights + (
        job.shared * job.expert_weights if experts else job.dense_weights
    )
    attention = attention_matmuls(job)
    shared = ["shared in", "shared out"] if experts and job.shared else []
    block = [] if experts else ["in", "out"]
    starts = at.product_start_s * len([*attention, *shared, *block])
    passes = passes_of(job)
    products = products_s(weights, tokens, at.product_flops_per_s, starts, passes)
    kernels = kernels_s(at, tokens, block_kernels(job))
    casts = cast_s(job, at, tokens, attention_ends(job))
    held = weights / job.tp
    if experts:
        grouped = at.product_start_s * len(["in", "out"])
        products += products_s(job.expert_weights, routed, at.expert_flops_per_s, grouped, passes)
        kernels += kernels_s(at, routed, gate(job, expert_width(job)))
        casts += cast_s(job, at, routed, block_ends(job, expert_width(job)))
        held += job.experts * job.expert_weights / (job.ep * job.etp)
    else:
        kernels += kernels_s(at, tokens, gate(job, job.shape.ffn_hidden))
        casts += cast_s(job, at, tokens, block_ends(job, job.shape.ffn_hidden))
    there_and_back = shuffle_s(job, at, products / len(passes)) * 2 if experts else 0.0
    sorts = sorted_s(job, at) * 2 if experts else 0.0
    thin, ahead, behind = beside(job, at, experts=experts, held=held)
    if job.lora_rank:
        held = job.tuned_experts + job.tuned_routed / job.ep if experts else job.tuned_dense
    once = products / len(passes) + thin
    twice = products * (len(passes) - 1) / len(passes) + 2 * thin
    blocks = ["attention"] if experts else ["attention", "feed-forward"]
    call = tensor_call_s(job, at)
    forward_calls = [call for _ in blocks for _ in ("gather", "scatter")]
    backward_calls = [call for _ in blocks for _ in ("gather", "scatter", "inputs again")]
    # At most as much hides as there are products to hide behind.
    hides = [
        min(fsum(each) * (1 - at.exposed_tensor), hiding)
        for each, hiding in ((forward_calls, once), (backward_calls, twice))
    ]
    core, calls = core_s(job, at, 2), fsum(forward_calls) - hides[0]
    keys = context_s(job, at)
    forward = once + core + kernels + sorts + ahead + calls + keys[0] + there_and_back
    return {
        "products_s": once + twice,
        "attention_s": core_s(job, at, 2 + 5),
        "memory_s": kernels * (1 + 2)
        + sorts * 2
        + casts
        + ahead
        + behind
        + held * at.accumulate_bytes / at.memory_bytes_per_s,
        "messages_s": calls + fsum(backward_calls) - hides[1] + fsum(keys) + 2 * there_and_back,
        "repeated_s": job.repeats_layer * forward + job.repeats_core * core,
        "host_s": host_s(job, at, launched(job, at, experts=experts)),
    }


def copies_s(job: Job, at: Attained, took_s: float, *, experts: bool) -> float:
    """Activations down behind a forward, and up behind a backward; what is left of both."""
    together = min(job.gpus, job.gpus_per_node)
    rate = min(at.host_link_bytes_per_s, at.host_bytes_per_s / together)
    way = job.tokens * (job.away_experts if experts else job.away_dense) / rate
    forward = took_s / (len(passes_of(job)) + job.repeats_layer)
    if not job.offload_overlapped:
        return fsum(way for _ in ("down", "up"))
    return fsum(max(0.0, way - hiding) for hiding in (forward, took_s - forward))


def projection(job: Job, at: Attained) -> float:
    """Two hidden states to one; once more where backward repeats layers."""
    whole = products_s(
        2 * job.hidden**2, job.tokens / job.tp, at.product_flops_per_s, at.product_start_s
    )
    again = 2 * 2 * job.hidden**2 * job.tokens / job.tp / at.product_flops_per_s
    return whole + job.repeats_layer * again


def head(job: Job, at: Attained) -> float:
    logits = job.tokens * job.vocab / job.tp
    return (
        products_s(
            job.vocab * job.hidden,
            job.tokens / job.tp,
            at.plain_flops_per_s,
            at.product_start_s,
            passes_of(job),
        )
        + logits * at.loss_bytes / at.memory_bytes_per_s
    )


def meet(one: float, other: float) -> float:
    """The sixth norm of two times: a little over the longer one where they are alike."""
    return float((one**6 + other**6) ** (1 / 6))


def stage_hop_s(job: Job, at: Attained) -> float:
    """Activations to the next stage and their gradients back, between chunks of a rank."""
    if job.pp == 1:
        return 0.0
    near = job.gpus // job.pp < job.gpus_per_node
    rate = at.scale_up_bytes_per_s if near else at.network_bytes_per_s
    launch = at.near_hop_s if job.gpus <= job.gpus_per_node else at.hop_s
    size = job.tokens * job.hidden * HALF / job.tp
    ways = ("activations", "gradients")
    return fsum(size / rate * at.exposed_pipeline * job.chunks + launch for _ in ways)


def data_link(job: Job, at: Attained) -> tuple[float, float, bool]:
    """Rate and latency of a data-parallel ring, and whether it leaves the node."""
    if job.gpus // job.pp <= job.gpus_per_node:
        return at.scale_up_bytes_per_s, at.near_latency_s, False
    lanes = max(1, min(job.gpus_per_node / job.tp, job.dp * job.cp))
    return min(at.scale_up_bytes_per_s, lanes * at.network_bytes_per_s), at.latency_s, True


def trained(job: Job) -> tuple[float, float]:
    """Parameters that a GPU trains without routed ones, and routed ones, layer by layer."""
    if not job.lora_rank:
        dense = job.dense_parameters / job.tp / job.pp
        return dense, job.routed_parameters / (job.ep * job.etp) / job.pp
    kinds = [index < job.expert_layers for index in range(job.layers)]
    dense = fsum(job.tuned_experts if experts else job.tuned_dense for experts in kinds)
    routed = fsum(job.tuned_routed / job.ep for experts in kinds if experts)
    return dense / job.pp, routed / job.pp


def frozen(job: Job) -> tuple[float, float]:
    """Bytes of frozen weights beside them; all but matrices of layers are in 16 bits."""
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
    """Once a step: rings over the shards of dense parameters, and over replicas of experts; at
    least what is left of them when all has been computed."""
    shards, layers = job.dp * job.cp, ceil(job.layers / job.pp)
    rate, alpha, far = data_link(job, at)
    dense, routed = trained(job)
    passes = [4, 4] if job.zero_stage == 0 else [4, HALF]
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
    left = once + experts - computing_s
    return max(left, (once + experts) * share)


def passed_s(job: Job, at: Attained, width: float, *, weights: bool = False) -> float:
    """All that a stage trains once around its rings, experts in theirs, a message a layer; with
    `weights` what is frozen too."""
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


def sharded_s(job: Job, at: Attained, compute_s: float) -> float:
    """A microbatch with ZeRO-2 or 3: weights on their way to each pass, gradients from backward."""
    forward = compute_s / (len(passes_of(job)) + (1 if job.repeats_layer else 0))
    ahead = [passed_s(job, at, HALF, weights=True)] if job.gathers else []
    behind = [*ahead, *([passed_s(job, at, job.scattered_bytes)] if job.scatters else [])]
    if not job.overlapped:
        return fsum([compute_s, *ahead, *behind])
    took = meet(forward, fsum(ahead)) + meet(compute_s - forward, fsum(behind))
    if not job.gathers:
        return took
    # A layer ahead: the first gather waits for nothing, the last layer for nobody.
    layers = job.layers / (job.pp * job.chunks)
    ends = min(forward, fsum(ahead)), min(compute_s - forward, fsum(behind))
    return took + fsum(end / layers for end in ends)


def update_s(job: Job, at: Attained) -> float:
    """Gradient, moments and master read; three written, a weight; cleared; read for its norm."""
    moved = [4, 4, 4, 4, 4, 4, 4, HALF, 4, 4]
    divided = job.zero_stage > 0
    dense, routed = trained(job)
    mine = dense / (job.dp * job.cp) + routed / expert_replicas(job) if divided else dense + routed
    there = job.offloaded * mine
    copies = [there * job.scattered_bytes / at.host_link_bytes_per_s for _ in ("down", "up")]
    shared_s = job.gpus_per_node * sum([4] * 7) / at.host_bytes_per_s
    host = there * max(at.host_update_s, shared_s)
    beside = max(host, sum(copies)) if job.offload_overlapped else host + sum(copies)
    return (mine - there) * at.optimizer * sum(moved) / at.memory_bytes_per_s + beside


def step_parts(job: ShapedJob, at: Attained) -> dict[str, float]:
    """The parts of a step, as `StepSeconds` names them."""
    kinds = {kind: layer(job, at, experts=kind) for kind in (False, True)}
    took = {kind: _layer_s(parts) for kind, parts in kinds.items()}
    took = {kind: s + copies_s(job, at, s, experts=kind) for kind, s in took.items()}
    kind_of = [index < job.expert_layers for index in range(job.layers)]
    layers = fsum(took[kind] for kind in kind_of)
    last = head(job, at)
    for _ in range(job.mtp_layers):
        last += head(job, at) + took[job.expert_layers > 0] + projection(job, at)
    each = layers / job.layers
    slowest = max(job.fullest_layers * each, job.head_layers * each + last)
    mean = (layers + last) / job.pp
    # ZeRO-2's last backward is ZeRO-1's; ZeRO-3's is as all of its others.
    alike = job.microbatches - (1 if job.scatters and not job.gathers else 0)
    waits = [sharded_s(job, at, slowest) - slowest for _ in range(alike)]
    waits.append(job.filling * (sharded_s(job, at, mean) - mean))
    others = (layers + last - slowest) / max(1, job.pp - 1)
    stalls = [max(0.0, others + job.stalled * others - slowest) for _ in range(job.microbatches)]
    parts = {
        "work_s": fsum(slowest for _ in range(job.microbatches)),
        "idle_s": job.filling * others + (fsum(stalls) if job.stalled else 0.0),
        "sharding_s": fsum(waits),
        "stage_messages_s": (job.microbatches + job.filling) * stage_hop_s(job, at),
        "gradients_s": 0.0 if job.gathers else gradients_s(job, at, job.microbatches * slowest),
        "update_s": update_s(job, at),
    }
    doublings = max(0.0, log2(job.gpus / 8))
    late = fsum(parts.values()) * at.straggling * doublings
    return {"head_s": last, **parts, "straggling_s": late, "fixed_s": at.step_s}


def _layer_s(parts: dict[str, float]) -> float:
    return meet(fsum(s for name, s in parts.items() if name != "host_s"), parts["host_s"])
