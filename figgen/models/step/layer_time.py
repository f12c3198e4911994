"""Seconds that one microbatch spends in a layer on one GPU: kernels, experts and their messages.

A layer is a list of operations (`figgen.models.operations.tuned_layer`) summed by phase. Matmuls
run at an attained share of their format's peak, all other kernels at the attained memory bandwidth.
Only the exposed part of messages counts. A layer takes at least as long as the host needs to launch
its kernels. All functions take numbers or arrays.

Adapters add thin matmuls and memory passes next to each matrix. The matrix is frozen, so backward
computes no gradient of its weights.
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
"""Rate of a state-space mixer's scan over that of attention. Its authors measured the scan to be as
fast as FlashAttention-2 at about 2,048 tokens (arXiv:2405.21060, section 9.3), where attention of
the same width needs four times the FLOPs. No run of the fit has such layers."""


@dataclass(frozen=True, slots=True)
class LayerSeconds:
    """Seconds of one layer and one microbatch by part, forward and backward together.

    Messages count only their exposed time: tensor parallelism, context parallelism, tokens sent to
    experts, and tokens within experts that several GPUs share. Sorting tokens counts as memory.
    `forward_s` is the kernel time of one forward, `ahead_s` the time that forward waits for
    messages, and `weight_s` the time of weight gradients. Copies of activations to the host count
    only the time that exceeds the pass behind which they run.
    """

    matmuls_s: Number
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
        """Exposed seconds of all messages of the layer."""
        return self.tensor_s + self.context_s + self.experts_s + self.within_experts_s

    @property
    def device_s(self) -> Number:
        """Seconds that the GPU needs, whatever the host takes."""
        return self.kernels_s + self.messages_s + self.repeated_s

    @property
    def kernels_s(self) -> Number:
        """Seconds of the kernels without recomputation."""
        return self.matmuls_s + self.attention_s + self.memory_s

    @property
    def backward_s(self) -> Number:
        """Kernel seconds of input gradients."""
        return self.kernels_s - self.forward_s - self.weight_s

    @property
    def total_s(self) -> Number:
        """The longer of GPU and host time, smoothed where they are close, plus exposed copies."""
        return longer(self.device_s, self.host_s) + self.copies_s

    @property
    def computing(self) -> PassSeconds:
        """Seconds of each pass without messages.

        Waits for the host and for copies lengthen all passes in proportion.
        """
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
        """Seconds of each pass with its messages; the passes add up to the layer."""
        stretch = self.total_s / self.device_s
        return PassSeconds(
            forward_s=stretch * (self.forward_s + self.ahead_s),
            again_s=stretch * self.repeated_s,
            inputs_s=stretch * (self.backward_s + self.messages_s - self.ahead_s),
            weights_s=stretch * self.weight_s,
        )


def longer(one_s: Number, other_s: Number) -> Number:
    """Return the longer of two times that overlap, smoothed where they are alike.

    It is their norm of order six, an order that sets how sharply a layer changes from GPU-bound to
    host-bound.
    """
    high, low = maximum(one_s, other_s), minimum(one_s, other_s)
    ratio = low / maximum(high, 1e-30)
    cubed = ratio * ratio * ratio
    return high * _sixth_root(1 + cubed * cubed)


def _sixth_root(number: Number) -> Number:
    """Return the sixth root of a number from 1 to 2 without `pow`, which is slow on arrays.

    Two steps of Halley's method reach the last digits from a linear guess that is 0.4% off.
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
    """Seconds that adapters add to a layer: `matmuls_s` of one pass's matmuls, and memory passes.

    `ahead_s` and `behind_s` are the memory passes of forward and backward. If frozen weights are
    quantized, both include unpacking them to 16 bits.
    """

    matmuls_s: Number
    ahead_s: Number
    behind_s: Number


@dataclass(frozen=True, slots=True)
class PhaseSeconds:
    """Seconds of the matmuls, memory passes and casts in one phase of a layer."""

    matmuls_s: Number
    passes_s: Number
    casts_s: Number


def dense_layer(job: Job, attained: Attained) -> LayerSeconds:
    """Return the seconds of a layer with a dense feed-forward block."""
    tokens, rate, work = job.tokens / job.tp, attained.matmul_flops_per_s, job.dense_work
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
    """Return the seconds of a mixture-of-experts layer on the expert rank with the most tokens."""
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
        _shuffle_s(job, attained, routed, forward.matmuls_s),
        _within_s(job, attained, routed),
        sorted_s(job, attained, routed),
    )


def routed_tokens(job: Job) -> Number:
    """Return the token copies that the fullest expert rank receives per microbatch."""
    return job.tokens / job.tp * job.top_k * minimum(job.expert_skew, job.ep)


def phase_s(
    work: PhaseWork, job: Job, attained: Attained, rows: Number, flops_per_s: Number
) -> PhaseSeconds:
    """Return the seconds of one phase for `rows` tokens, with matmuls at `flops_per_s`."""
    started_s, moving = work.matmuls * attained.matmul_start_s, rows / attained.memory_bytes_per_s
    return PhaseSeconds(
        rows * work.matmul_flops / flops_per_s + started_s,
        attained.elementwise * work.pass_bytes * moving,
        job.quantized * attained.cast * work.cast_bytes * moving,
    )


def _with_routed(
    job: Job, attained: Attained, work: PhaseWork, inner: PhaseWork, routed: Number
) -> PhaseSeconds:
    """Return the seconds of one phase of an expert layer whose experts get `routed` tokens.

    `work` is that of the layer outside its experts and `inner` that of the experts.
    """
    outer = phase_s(work, job, attained, job.tokens / job.tp, attained.matmul_flops_per_s)
    experts = phase_s(inner, job, attained, routed, attained.expert_flops_per_s)
    return PhaseSeconds(
        outer.matmuls_s + experts.matmuls_s,
        outer.passes_s + experts.passes_s,
        outer.casts_s + experts.casts_s,
    )


def _launching_s(job: Job, attained: Attained) -> Number:
    """Return the seconds that the host needs to launch an expert layer, CUDA graphs considered."""
    graphs = where(job.cuda_graphs > 0, job.cuda_graphs, attained.cuda_graphs)
    left = where(graphs >= PARTS_CAPTURED, attained.graphed_host, 1.0)
    left = where(graphs >= STEP_CAPTURED, 0.0, left)
    once = (_dispatcher(job, attained) >= RECEIVED_ONCE) & (job.ep > 1)
    flexible = where(once, attained.flexible_host, 1.0)
    return attained.host_expert_layer_s * left * flexible * _launched(job.expert_adapters)


def _launched(adapters: Number) -> Number:
    """Return a layer's kernel launches with this many adapters, relative to none."""
    return 1 + adapters * ADAPTER_KERNELS / LAYER_KERNELS


def _beside(job: Job, attained: Attained, met: Number, weights: Number) -> BesideSeconds:
    """Return what adapters add to a layer in which a GPU holds `weights`; zero without adapters.

    `met` is the number of adapter weights that tokens are multiplied with, summed over tokens.
    Divided by the rank it counts the inputs and outputs of adapted matrices, half of them each.
    """
    channels = met / maximum(1, job.lora_rank) / 2
    ahead = _elementwise_s(attained, channels * (AHEAD_BYTES[0] + AHEAD_BYTES[1]))
    behind = _elementwise_s(attained, channels * (BEHIND_BYTES[0] + BEHIND_BYTES[1]))
    packed = where(job.frozen_bytes < PLAIN_BYTES, job.frozen * weights, 0.0)
    moved = packed * (job.frozen_bytes + PLAIN_BYTES)
    unpacking = moved / (UNPACKED_SHARE * attained.memory_bytes_per_s)
    return BesideSeconds(
        2 * met / attained.matmul_flops_per_s, ahead + unpacking, behind + unpacking
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
    """Return the seconds of a layer from those of its phases.

    Frozen matrices have no weight gradients. `blocks` is the number of blocks that exchange
    tensor-parallel halves. Gradients of the `trained` weights are accumulated.
    """
    core = attention_core_s(job, attained)
    keys_s, keys_back_s = context_s(job, attained, core)
    accumulated = attained.accumulate_bytes * trained / attained.memory_bytes_per_s
    calls_s, exposed = 2 * blocks * _tensor_call_s(job, attained), attained.exposed_tensor
    running = forward.matmuls_s + beside.matmuls_s
    by_weight = (1 - job.frozen) * weight.matmuls_s + beside.matmuls_s
    again = backward.matmuls_s + beside.matmuls_s + by_weight
    ahead = waiting_s(calls_s, running, exposed)
    behind = waiting_s(1.5 * calls_s, again, exposed)
    # The rates were fitted with casts counted once, even where layers are recomputed.
    repeatable = running + core + forward.passes_s + sorted_s + beside.ahead_s
    waited = ahead + keys_s + shuffle_s + within_s
    passes = forward.passes_s + backward.passes_s + forward.casts_s + backward.casts_s
    return LayerSeconds(
        matmuls_s=running + again,
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
    """Return the forward seconds of the attention core of a mean layer, masked half skipped.

    A window of w keeps w·(2s − w) of the s² pairs, that is, all but (s − w)². Pairs across
    documents are skipped. If the sequence is cut in order, the last of C ranks has (2C − 1)/C of
    the mean work in layers without a window. Starting and partly filled tiles cost as much as
    `attention_start_keys` additional keys.
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
    """Return the seconds of one gather or scatter of hidden states over tensor-parallel ranks."""
    near, far = attained.scale_up_bytes_per_s, attained.network_bytes_per_s
    crosses = job.tp > job.gpus_per_node
    rate = where(crosses, minimum(near, job.gpus_per_node * far), near)
    alpha = where(crosses, attained.latency_s, attained.near_latency_s)
    sent = job.tokens * job.hidden * ACTIVATION_BYTES * (job.tp - 1) / job.tp
    return sent / rate + (job.tp - 1) * alpha


def waiting_s(calls_s: Number, hiding_s: Number, exposed: Number) -> Number:
    """Return the exposed time of messages: a fixed share, but at least what outlasts `hiding_s`."""
    return maximum(exposed * calls_s, calls_s - hiding_s)


def context_s(job: Job, attained: Attained, core_s: Number) -> tuple[Number, Number]:
    """Return how long attention waits for other context-parallel ranks, forward and backward.

    A ring sends keys and values from neighbor to neighbor, in backward their gradients too. With
    two buffers the sends overlap attention, whose forward takes `core_s`. A gather sends as many
    bytes over all links. An all-to-all cannot overlap, since attention needs each tensor whole.
    After ranks have traded heads, a ring between nodes passes on the keys of all their tokens.
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
    """Return the number of context ranks that trade heads with each other, 1 if none do."""
    alone = where(job.trades_in_node > 0, _context_in_node(job), 1)
    return where(job.trades_heads > 0, job.cp, alone)


def _context_in_node(job: Job) -> Number:
    return maximum(1, minimum(job.cp, job.gpus_per_node / job.tp))


def _copies(job: Job, trading: Number) -> Number:
    """Return the copies of keys and values if more ranks trade heads than there are heads."""
    return maximum(1, trading / maximum(1, job.key_value_heads / job.tp))


def _traded_s(job: Job, attained: Attained, trading: Number) -> Number:
    """Return the seconds of the all-to-alls of queries, keys, values and outputs.

    Messages inside a node and between nodes overlap.
    """
    copied = 2 * job.key_value_width * _copies(job, trading)
    sent = job.tokens * (2 * job.attention_width + copied) * ACTIVATION_BYTES / job.tp
    members = minimum(trading, _context_in_node(job))
    inside = sent * (members - 1) / trading / attained.scale_up_bytes_per_s
    return maximum(inside, sent * (trading - members) / trading / attained.network_bytes_per_s)


def _shuffle_s(job: Job, attained: Attained, routed: Number, hiding_s: Number) -> Number:
    """Return the exposed seconds of sending routed tokens to their experts and back, in one pass.

    Messages inside a node and between nodes overlap. If they run behind the computing of another
    microbatch, it hides at most `hiding_s` of them.
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
    """Return the chosen dispatcher, or else the default of the software's release."""
    return where(job.dispatcher > 0, job.dispatcher, attained.dispatcher)


def _expert_nodes(job: Job) -> Number:
    return maximum(1, job.ep * job.etp / job.gpus_per_node)


def _ranks_reached(job: Job) -> Number:
    """Return the number of ranks that hold experts of a token, divided by its experts."""
    ranks = within_reach(job.ep, job.expert_groups, job.reached_groups)
    return visited_groups(ranks, job.top_k) / maximum(1, job.top_k)


def _leaving(job: Job, dispatcher: Number) -> Number:
    """Return the copies of a token that leave the node, divided by its experts.

    Depending on the dispatcher, a copy leaves for each expert elsewhere or for each other node.
    """
    nodes = _expert_nodes(job)
    copies = job.top_k * (1 - 1 / nodes)
    reached = within_reach(nodes, job.expert_groups, job.reached_groups)
    distinct = visited_groups(reached, job.top_k) * (1 - 1 / nodes)
    return where(dispatcher >= RECEIVED_ONCE, distinct, copies) / maximum(1, job.top_k)


def sorted_s(job: Job, attained: Attained, routed: Number) -> Number:
    """Return the seconds of sorting routed tokens for their experts and back, in one pass.

    The all-to-all dispatcher sorts copies by rank (it reads a token and writes its copies), then by
    expert if a rank has several. DeepEP sends a token once to each rank, which copies it for its
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
    """Return the exposed seconds per pass of messages between GPUs that share an expert."""
    sent = routed * job.hidden * ACTIVATION_BYTES
    within = 2 * sent * (job.etp - 1) / attained.scale_up_bytes_per_s
    return within * attained.exposed_within_experts


def _host_s(job: Job, attained: Attained, layer_s: Number) -> Number:
    """Return the seconds that the host needs for a layer; recomputation launches kernels again.

    One host thread launches kernels or waits for those of other nodes, then waits for other stages.
    """
    several = where(job.tp > 1, 1.0, 0.0)
    far = where(job.tp > job.gpus_per_node, job.tp, 0.0) * attained.host_crossing_s
    chained = where((job.pp > 1) & (job.gpus > job.gpus_per_node), 1.0, 0.0)
    waiting = chained * several * attained.host_chained_s * job.tp
    return maximum(layer_s * (1 + 0.4 * job.repeats_layer), far) + waiting
