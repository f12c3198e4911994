"""Seconds that one microbatch takes on one GPU in a layer: kernels, experts, their messages.

A layer is a list of operations (`figgen.models.operations.tuned_layer`), summed by phase: matmuls
run at an attained rate of their format's peak, everything else at the rate of the memory that it
reads and writes; messages take what does not hide of them. A layer is never faster than the host
launches its kernels. All functions take numbers or arrays.

Adapters add thin matmuls and passes beside each matrix, which is frozen: backward computes no
gradient of its weights.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.equations.ops import Number, maximum, minimum, sqrt, where
from figgen.models.operations.layer_work import PhaseWork
from figgen.models.operations.tuned_layer import ACTIVATION_BYTES
from figgen.models.setup.training_setup import CUDA_GRAPHS, DISPATCHERS, EXPERT_OVERLAPS
from figgen.models.shape.adapters import (
    ADAPTER_KERNELS,
    AHEAD_BYTES,
    BEHIND_BYTES,
    LAYER_KERNELS,
    PLAIN_BYTES,
    UNPACKED_SHARE,
)
from figgen.models.shape.visited_groups import visited_groups, within_reach
from figgen.models.step.attained import CORE_BACKWARD, Attained
from figgen.models.step.job import Job
from figgen.models.step.pass_seconds import PassSeconds

RECEIVED_ONCE = DISPATCHERS["deepep"]
OVERLAPPED = EXPERT_OVERLAPS["on"]
PARTS_CAPTURED, STEP_CAPTURED = CUDA_GRAPHS["layers"], CUDA_GRAPHS["step"]
SORTED_IN_FLIGHT = DISPATCHERS["hybridep"]
SCAN_SHARE = 0.25
"""The rate of a state-space mixer's scan over the rate of attention: its authors found it as
fast as FlashAttention-2 at about 2,048 tokens (arXiv:2405.21060, section 9.3), where attention as
wide has four times the products. No run of the fit has such layers."""


@dataclass(frozen=True, slots=True)
class LayerSeconds:
    """Seconds of one layer and one microbatch, forward and backward together, by part.

    Messages count only what isn't hidden: those of tensor and context parallelism, tokens on their
    way to experts, and tokens within experts that several GPUs share. Sorting counts as memory.
    `forward_s` is the time of the kernels of one forward pass and `ahead_s` what it waits for
    messages, `weight_s` the time of backward by weight. Copies of activations to the host and back
    count only what outlasts the rest.
    """

    products_s: Number
    attention_s: Number
    memory_s: Number
    tensor_s: Number
    context_s: Number
    experts_s: Number
    within_experts_s: Number
    repeated_s: Number
    host_s: Number
    forward_s: Number
    ahead_s: Number
    weight_s: Number
    copies_s: Number = 0.0

    @property
    def messages_s(self) -> Number:
        """All messages of the layer."""
        return self.tensor_s + self.context_s + self.experts_s + self.within_experts_s

    @property
    def device_s(self) -> Number:
        """What the GPU takes by itself."""
        return self.kernels_s + self.messages_s + self.repeated_s

    @property
    def kernels_s(self) -> Number:
        """Its kernels, without what backward repeats."""
        return self.products_s + self.attention_s + self.memory_s

    @property
    def backward_s(self) -> Number:
        """Kernels of backward by input."""
        return self.kernels_s - self.forward_s - self.weight_s

    @property
    def total_s(self) -> Number:
        """The longer of GPU and host, rounded where they meet, and copies beyond it."""
        return longer(self.device_s, self.host_s) + self.copies_s

    @property
    def computing(self) -> PassSeconds:
        """Its passes without their messages; what it waits for besides stretches all of them."""
        kernels_s = self.kernels_s + self.repeated_s
        stretch = (self.total_s - self.messages_s) / kernels_s
        return PassSeconds(
            forward_s=stretch * self.forward_s,
            again_s=stretch * self.repeated_s,
            inputs_s=stretch * self.backward_s,
            weights_s=stretch * self.weight_s,
        )

    @property
    def passes(self) -> PassSeconds:
        """The same with their messages; they add up to the layer."""
        stretch = self.total_s / self.device_s
        return PassSeconds(
            forward_s=stretch * (self.forward_s + self.ahead_s),
            again_s=stretch * self.repeated_s,
            inputs_s=stretch * (self.backward_s + self.messages_s - self.ahead_s),
            weights_s=stretch * self.weight_s,
        )


def longer(one_s: Number, other_s: Number) -> Number:
    """The longer of two times that overlap; a little more where they are alike.

    It is their norm of order six, which says how sharply a layer that is bound by the GPU becomes
    one that is bound by the host.
    """
    high, low = maximum(one_s, other_s), minimum(one_s, other_s)
    ratio = low / maximum(high, 1e-30)
    cubed = ratio * ratio * ratio
    return high * _sixth_root(1 + cubed * cubed)


def _sixth_root(number: Number) -> Number:
    """The sixth root of a number from 1 to 2, without a power, which is slow on arrays.

    Two steps of Halley's method reach the last digits from a straight line that is 0.4% off.
    """
    square = sqrt(number)
    root = 1 + 0.2957 * (square - 1)
    root = _nearer_to_cube_root(root, square)
    return _nearer_to_cube_root(root, square)


def _nearer_to_cube_root(root: Number, number: Number) -> Number:
    cubed = root * root * root
    return root * (cubed + 2 * number) / (2 * cubed + number)


@dataclass(frozen=True, slots=True)
class BesideSeconds:
    """Seconds that adapters add to one layer: matmuls of one pass, and what moves in each.

    With frozen weights that are quantized, each pass also makes 16 bits of them.
    """

    products_s: Number
    ahead_s: Number
    behind_s: Number


@dataclass(frozen=True, slots=True)
class PhaseSeconds:
    """Seconds of the matmuls, the passes over memory and the casts of one phase of a layer."""

    products_s: Number
    passes_s: Number
    casts_s: Number


def dense_layer(job: Job, attained: Attained) -> LayerSeconds:
    """A layer with a plain feed-forward block."""
    tokens, rate, work = job.tokens / job.tp, attained.product_flops_per_s, job.dense_work
    weights = (job.attention_weights + job.dense_weights) / job.tp
    beside = _beside(job, attained, job.tokens * job.tuned_dense, weights)
    trained = where(job.frozen > 0, job.tuned_dense, weights)
    launched = where(job.cuda_graphs >= PARTS_CAPTURED, 0.0, _launched(job.adapters))
    return _layer(
        job,
        attained,
        phase_s(work.forward, job, attained, tokens, rate),
        phase_s(work.backward, job, attained, tokens, rate),
        phase_s(work.weight, job, attained, tokens, rate),
        beside,
        trained,
        2.0,
        attained.host_layer_s * launched,
        0.0,
        0.0,
        0.0,
    )


def expert_layer(job: Job, attained: Attained) -> LayerSeconds:
    """A layer whose feed-forward block is a mixture of experts, on the fullest rank of experts."""
    routed = routed_tokens(job)
    work, inner = job.expert_work, job.routed_work
    forward = _with_routed(job, attained, work.forward, inner.forward, routed)
    held = job.experts * job.expert_weights / (job.ep * job.etp)
    weights = (job.attention_weights + job.shared * job.expert_weights) / job.tp + held
    visits = routed * job.etp / maximum(1, job.experts)
    met = job.tokens * job.tuned_experts + visits * job.tuned_routed
    beside = _beside(job, attained, met, weights)
    tuned = job.tuned_experts + job.tuned_routed / job.ep
    return _layer(
        job,
        attained,
        forward,
        _with_routed(job, attained, work.backward, inner.backward, routed),
        _with_routed(job, attained, work.weight, inner.weight, routed),
        beside,
        where(job.frozen > 0, tuned, weights),
        1.0,
        _launching_s(job, attained),
        _shuffle_s(job, attained, routed, forward.products_s),
        _within_s(job, attained, routed),
        sorted_s(job, attained, routed),
    )


def routed_tokens(job: Job) -> Number:
    """Copies of tokens that experts of the fullest rank get in a microbatch."""
    return job.tokens / job.tp * job.top_k * minimum(job.expert_skew, job.ep)


def phase_s(
    work: PhaseWork, job: Job, attained: Attained, rows: Number, flops_per_s: Number
) -> PhaseSeconds:
    """One phase for so many tokens, with matmuls at a rate."""
    started_s, moving = work.matmuls * attained.product_start_s, rows / attained.memory_bytes_per_s
    return PhaseSeconds(
        rows * work.matmul_flops / flops_per_s + started_s,
        attained.elementwise * work.pass_bytes * moving,
        job.quantized * attained.cast * work.cast_bytes * moving,
    )


def _with_routed(
    job: Job, attained: Attained, work: PhaseWork, inner: PhaseWork, routed: Number
) -> PhaseSeconds:
    """One phase of a layer of experts, which are `inner` and get `routed` tokens."""
    outer = phase_s(work, job, attained, job.tokens / job.tp, attained.product_flops_per_s)
    experts = phase_s(inner, job, attained, routed, attained.expert_flops_per_s)
    return PhaseSeconds(
        outer.products_s + experts.products_s,
        outer.passes_s + experts.passes_s,
        outer.casts_s + experts.casts_s,
    )


def _launching_s(job: Job, attained: Attained) -> Number:
    """Seconds in which the host launches a layer of experts, but for what graphs hold of it."""
    graphs = where(job.cuda_graphs > 0, job.cuda_graphs, attained.cuda_graphs)
    left = where(graphs >= PARTS_CAPTURED, attained.graphed_host, 1.0)
    left = where(graphs >= STEP_CAPTURED, 0.0, left)
    once = (_dispatcher(job, attained) >= RECEIVED_ONCE) & (job.ep > 1)
    flexible = where(once, attained.flexible_host, 1.0)
    return attained.host_expert_layer_s * left * flexible * _launched(job.expert_adapters)


def _launched(adapters: Number) -> Number:
    """How many times the kernels of a layer are launched with so many adapters."""
    return 1 + adapters * ADAPTER_KERNELS / LAYER_KERNELS


def _beside(job: Job, attained: Attained, met: Number, weights: Number) -> BesideSeconds:
    """What adapters add to a layer in which a GPU holds `weights`, nothing where all are trained.

    `met` counts the adapters' weights that each token meets, of all tokens together; over the rank
    it is the inputs and outputs of adapted matrices, of which each takes half the bytes.
    """
    channels = met / maximum(1, job.lora_rank) / 2
    ahead = _elementwise_s(attained, channels * (AHEAD_BYTES[0] + AHEAD_BYTES[1]))
    behind = _elementwise_s(attained, channels * (BEHIND_BYTES[0] + BEHIND_BYTES[1]))
    packed = where(job.frozen_bytes < PLAIN_BYTES, job.frozen * weights, 0.0)
    moved = packed * (job.frozen_bytes + PLAIN_BYTES)
    unpacking = moved / (UNPACKED_SHARE * attained.memory_bytes_per_s)
    return BesideSeconds(
        2 * met / attained.product_flops_per_s, ahead + unpacking, behind + unpacking
    )


def _layer(
    job: Job,
    attained: Attained,
    forward: PhaseSeconds,
    backward: PhaseSeconds,
    weight: PhaseSeconds,
    beside: BesideSeconds,
    trained: Number,
    blocks: float,
    host_s: Number,
    shuffle_s: Number,
    within_s: Number,
    sorted_s: Number,
) -> LayerSeconds:
    """Return a layer from its phases.

    Frozen matrices have no backward by weight. `blocks` is the number of blocks that exchange
    tensor-parallel halves. Gradients of the `trained` weights are added up.
    """
    core = attention_core_s(job, attained)
    keys_s, keys_back_s = context_s(job, attained, core)
    accumulated = attained.accumulate_bytes * trained / attained.memory_bytes_per_s
    calls_s, exposed = 2 * blocks * _tensor_call_s(job, attained), attained.exposed_tensor
    running = forward.products_s + beside.products_s
    by_weight = (1 - job.frozen) * weight.products_s + beside.products_s
    again = backward.products_s + beside.products_s + by_weight
    ahead = waiting_s(calls_s, running, exposed)
    behind = waiting_s(1.5 * calls_s, again, exposed)
    # Casts are made once in the rates that were fitted, whatever is computed again.
    repeatable = running + core + forward.passes_s + sorted_s + beside.ahead_s
    waited = ahead + keys_s + shuffle_s + within_s
    passes = forward.passes_s + backward.passes_s + forward.casts_s + backward.casts_s
    return LayerSeconds(
        products_s=running + again,
        attention_s=(1 + CORE_BACKWARD) * core,
        memory_s=passes + 2 * sorted_s + accumulated + beside.ahead_s + beside.behind_s,
        tensor_s=ahead + behind,
        context_s=keys_s + keys_back_s,
        experts_s=2 * shuffle_s,
        within_experts_s=2 * within_s,
        repeated_s=job.repeats_layer * (repeatable + waited) + job.repeats_core * core,
        host_s=_host_s(job, attained, host_s),
        forward_s=repeatable + forward.casts_s,
        ahead_s=waited,
        weight_s=by_weight + accumulated,
    )


def attention_core_s(job: Job, attained: Attained) -> Number:
    """The attention core of a layer forward, a mean one; the masked half is skipped.

    A window of w keeps w·(2s − w) of the s² pairs, all but (s − w)²; pairs of two documents are
    skipped. Cut in order, the last of C ranks has (2C − 1)/C of the mean in layers without one.
    Starting tiles and partly full ones take as long as `attention_start_keys` more keys.
    """
    outside = (job.sequence - minimum(job.window, job.sequence)) ** 2 / job.sequence
    keys = (1 - job.mixer_share) * job.sequence - job.windowed_share * outside - job.keys_apart
    chunks = job.cp / _trading(job)
    more = where(job.in_order > 0, (chunks - 1) / chunks, 0.0)
    keys = keys + more * (1 - job.mixer_share - job.windowed_share) * job.sequence
    keys = keys + (1 - job.mixer_share) * attained.attention_start_keys
    scanned = job.mixer_share * job.mixer_work * job.tokens / job.tp / SCAN_SHARE
    work = 2 * job.tokens * keys * job.attention_width / job.tp
    return (work + scanned) / attained.attention_flops_per_s


def _elementwise_s(attained: Attained, moved_bytes: Number) -> Number:
    return attained.elementwise * moved_bytes / attained.memory_bytes_per_s


def _tensor_call_s(job: Job, attained: Attained) -> Number:
    """One gather or scatter of a microbatch's hidden states over tensor-parallel ranks."""
    near, far = attained.scale_up_bytes_per_s, attained.network_bytes_per_s
    crosses = job.tp > job.gpus_per_node
    rate = where(crosses, minimum(near, job.gpus_per_node * far), near)
    alpha = where(crosses, attained.latency_s, attained.near_latency_s)
    sent = job.tokens * job.hidden * ACTIVATION_BYTES * (job.tp - 1) / job.tp
    return sent / rate + (job.tp - 1) * alpha


def waiting_s(calls_s: Number, hiding_s: Number, exposed: Number) -> Number:
    """Return the exposed time of messages: a share of them, or all that outlasts `hiding_s`."""
    return maximum(exposed * calls_s, calls_s - hiding_s)


def context_s(job: Job, attained: Attained, core_s: Number) -> tuple[Number, Number]:
    """Return how long attention waits for other context-parallel ranks, forward and backward.

    A ring sends keys and values from neighbor to neighbor, and in backward their gradients too;
    with two buffers that runs behind the attention, which takes `core_s` forward. A gather sends as
    much over all links. An all-to-all can't hide: each tensor has to arrive first. Ranks that have
    traded heads hold the keys of all their tokens; a ring between nodes passes these on.
    """
    near, far = attained.scale_up_bytes_per_s, attained.network_bytes_per_s
    crosses, trading = job.tp * job.cp > job.gpus_per_node, _trading(job)
    block = job.tokens * 2 * job.key_value_width * ACTIVATION_BYTES / job.tp * _copies(job, trading)
    others, exposed = job.cp / trading - 1, attained.exposed_context
    ring = others * block / where(crosses, far, near * attained.neighbor_share)
    gather = others * block / where(crosses, far, near)
    turns = job.keys_in_turns > 0
    ring_ahead = where(turns, waiting_s(ring, core_s, exposed), ring)
    ring_back = where(turns, waiting_s(2 * ring, CORE_BACKWARD * core_s, exposed), 2 * ring)
    traded = _traded_s(job, attained, trading)
    fetched = where(job.gathers_keys > 0, gather * exposed, ring_ahead)
    returned = where(job.gathers_keys > 0, 2 * gather * exposed, ring_back)
    return traded + fetched, traded + returned


def _trading(job: Job) -> Number:
    """Context ranks that trade heads with each other: all, those of a node, or each with itself."""
    alone = where(job.trades_in_node > 0, _context_in_node(job), 1)
    return where(job.trades_heads > 0, job.cp, alone)


def _context_in_node(job: Job) -> Number:
    return maximum(1, minimum(job.cp, job.gpus_per_node / job.tp))


def _copies(job: Job, trading: Number) -> Number:
    """Copies of keys and values if they have fewer heads than there are ranks that trade them."""
    return maximum(1, trading / maximum(1, job.key_value_heads / job.tp))


def _traded_s(job: Job, attained: Attained, trading: Number) -> Number:
    """Return the time of the all-to-alls of queries, keys, values and outputs.

    Messages inside a node and between nodes move at once.
    """
    copied = 2 * job.key_value_width * _copies(job, trading)
    sent = job.tokens * (2 * job.attention_width + copied) * ACTIVATION_BYTES / job.tp
    members = minimum(trading, _context_in_node(job))
    inside = sent * (members - 1) / trading / attained.scale_up_bytes_per_s
    return maximum(inside, sent * (trading - members) / trading / attained.network_bytes_per_s)


def _shuffle_s(job: Job, attained: Attained, routed: Number, hiding_s: Number) -> Number:
    """Return what is not hidden of routed tokens on their way to their experts and back, once.

    Messages between nodes and inside move at the same time. Where they run behind the computing of
    another microbatch, that hides at most `hiding_s` of them.
    """
    dispatcher = _dispatcher(job, attained)
    nodes, ranks = _expert_nodes(job), _ranks_reached(job)
    near = where(dispatcher >= RECEIVED_ONCE, ranks, 1 / nodes) * (job.ep - 1) / job.ep
    far = _leaving(job, dispatcher) / attained.shuffle_bytes_per_s
    sent = routed * job.hidden * ACTIVATION_BYTES
    calls_s = 2 * sent * maximum(near / attained.near_shuffle_bytes_per_s, far)
    chosen = where(job.expert_overlap > 0, job.expert_overlap, attained.expert_overlap)
    behind = waiting_s(calls_s, hiding_s, attained.exposed_experts)
    return where(chosen >= OVERLAPPED, behind, calls_s)


def _dispatcher(job: Job, attained: Attained) -> Number:
    """The chosen dispatcher, or that of the software's release."""
    return where(job.dispatcher > 0, job.dispatcher, attained.dispatcher)


def _expert_nodes(job: Job) -> Number:
    return maximum(1, job.ep * job.etp / job.gpus_per_node)


def _ranks_reached(job: Job) -> Number:
    """Ranks that have an expert of a token, over its experts."""
    ranks = within_reach(job.ep, job.expert_groups, job.reached_groups)
    return visited_groups(ranks, job.top_k) / maximum(1, job.top_k)


def _leaving(job: Job, dispatcher: Number) -> Number:
    """Copies of a token that leave the node, over its experts.

    One for each expert elsewhere, or for each other node.
    """
    nodes = _expert_nodes(job)
    copies = job.top_k * (1 - 1 / nodes)
    reached = within_reach(nodes, job.expert_groups, job.reached_groups)
    distinct = visited_groups(reached, job.top_k) * (1 - 1 / nodes)
    return where(dispatcher >= RECEIVED_ONCE, distinct, copies) / maximum(1, job.top_k)


def sorted_s(job: Job, attained: Attained, routed: Number) -> Number:
    """Return the time of sorting routed tokens for their experts and back, once.

    An all-to-all sorts copies by rank (reads a token, writes its copies), and once more by expert
    where a rank has several. DeepEP sends a token once to each rank, which copies it for its
    experts; HybridEP writes these copies as they arrive. Sources: NVIDIA/Megatron-LM
    core/transformer/moe/token_dispatcher.py and fused_a2a.py; deepseek-ai/DeepEP README.md.
    """
    dispatcher = _dispatcher(job, attained)
    twice = where((job.experts > job.ep) & (job.ep > 1), 2, 0)
    by_rank = 1 / maximum(1, job.top_k) + 1 + twice
    arriving = where(dispatcher >= SORTED_IN_FLIGHT, 1, _ranks_reached(job) + 1)
    moved = where((dispatcher >= RECEIVED_ONCE) & (job.ep > 1), arriving, by_rank)
    sent = routed * job.hidden * ACTIVATION_BYTES
    return 2 * sent * moved * attained.permutation / attained.memory_bytes_per_s


def _within_s(job: Job, attained: Attained, routed: Number) -> Number:
    """Routed tokens to all GPUs that share an expert and back, once."""
    sent = routed * job.hidden * ACTIVATION_BYTES
    within = 2 * sent * (job.etp - 1) / attained.scale_up_bytes_per_s
    return within * attained.exposed_within_experts


def _host_s(job: Job, attained: Attained, layer_s: Number) -> Number:
    """Seconds that the host takes for a layer; what is repeated is launched again.

    One thread launches kernels or waits for those of other nodes, and then waits for stages.
    """
    several = where(job.tp > 1, 1.0, 0.0)
    far = where(job.tp > job.gpus_per_node, job.tp, 0.0) * attained.host_crossing_s
    chained = where((job.pp > 1) & (job.gpus > job.gpus_per_node), 1.0, 0.0)
    waiting = chained * several * attained.host_chained_s * job.tp
    return maximum(layer_s * (1 + 0.4 * job.repeats_layer), far) + waiting
