"""A training step counted kernel by kernel and message by message, for one GPU of a job.

The closed forms of `figgen.models.step.layer_time` and `timed_step` multiply sums. Here every
kernel lists what it multiplies, reads and writes, every ring is followed hop by hop, and experts
are dealt to nodes in every possible way.
"""

from __future__ import annotations

import operator
from math import fsum, log2
from typing import Any

from figgen.models.step.attained import Attained
from figgen.models.step.job import Job
from tests.models.ledger_kernels import (
    HALF,
    ShapedJob,
    attention_ends,
    attention_matmuls,
    beside,
    block_ends,
    block_kernels,
    cast_s,
    core_s,
    expert_width,
    fullest_tokens,
    gate,
    kernels_s,
    matmuls_s,
    passes_of,
)
from tests.models.ledger_messages import (
    context_s,
    expert_replicas,
    gradients_s,
    passed_s,
    shuffle_s,
    sorted_s,
    stage_hop_s,
    tensor_call_s,
    trained,
)


def launched(job: Job, at: Attained, *, experts: bool) -> float:
    """Return seconds for those launches of a layer that no graph contains."""
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
    """Return the parts of one layer and microbatch, with the names of `LayerSeconds`."""
    tokens = job.tokens / job.tp  # a rank's, or its part of the width of all
    routed = fullest_tokens(job) * job.top_k if experts else 0.0
    weights = job.attention_weights + (
        job.shared * job.expert_weights if experts else job.dense_weights
    )
    attention = attention_matmuls(job)
    shared = ["shared in", "shared out"] if experts and job.shared else []
    block = [] if experts else ["in", "out"]
    starts = at.matmul_start_s * len([*attention, *shared, *block])
    passes = passes_of(job)
    products = matmuls_s(weights, tokens, at.matmul_flops_per_s, starts, passes)
    kernels = kernels_s(at, tokens, block_kernels(job))
    casts = cast_s(job, at, tokens, attention_ends(job))
    held = weights / job.tp
    if experts:
        grouped = at.matmul_start_s * len(["in", "out"])
        products += matmuls_s(job.expert_weights, routed, at.expert_flops_per_s, grouped, passes)
        kernels += kernels_s(at, routed, gate(job, expert_width(job)))
        inner = cast_s(job, at, routed, block_ends(job, expert_width(job)))
        held += job.experts * job.expert_weights / (job.ep * job.etp)
    else:
        kernels += kernels_s(at, tokens, gate(job, job.shape.ffn_hidden))
        inner = cast_s(job, at, tokens, block_ends(job, job.shape.ffn_hidden))
    casts = casts[0] + inner[0], casts[1] + inner[1]
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
    waited = calls + keys[0] + there_and_back
    forward = once + core + kernels + sorts + ahead
    summed = held * at.accumulate_bytes / at.memory_bytes_per_s
    return {
        "matmuls_s": once + twice,
        "attention_s": core_s(job, at, 2 + 5),
        "memory_s": kernels * (1 + 2) + sorts * 2 + fsum(casts) + ahead + behind + summed,
        "messages_s": waited + fsum(backward_calls) - hides[1] + keys[1] + there_and_back,
        "repeated_s": job.repeats_layer * (forward + waited) + job.repeats_core * core,
        "host_s": host_s(job, at, launched(job, at, experts=experts)),
        "forward_s": forward + casts[0],
        "ahead_s": waited,
        "weight_s": thin + (0.0 if job.lora_rank else products / len(passes)) + summed,
    }


def passes_s(parts: dict[str, float]) -> tuple[float, float, float]:
    """Return forward, input gradients and weight gradients of a layer, which share waits for the
    host evenly."""
    forward = parts["forward_s"] + parts["ahead_s"]
    longer = _layer_s(parts) / _device_s(parts)
    inputs = _device_s(parts) - forward - parts["weight_s"]
    return longer * forward, longer * inputs, longer * parts["weight_s"]


def copies_s(job: Job, at: Attained, parts: dict[str, float], *, experts: bool) -> float:
    """Return exposed copies of activations: down during a forward, up during a backward."""
    together = min(job.gpus, job.gpus_per_node)
    rate = min(at.host_link_bytes_per_s, at.host_bytes_per_s / together)
    way = job.tokens * (job.away_experts if experts else job.away_dense) / rate
    forward, took_s = passes_s(parts)[0], _layer_s(parts)
    if not job.offload_overlapped:
        return fsum(way for _ in ("down", "up"))
    return fsum(max(0.0, way - hiding) for hiding in (forward, took_s - forward))


def projection(job: Job, at: Attained) -> tuple[float, float, float]:
    """Return the projection of two hidden states to one, by pass; once more if backward repeats
    layers."""
    each = matmuls_s(
        2 * job.hidden**2, job.tokens / job.tp, at.matmul_flops_per_s, at.matmul_start_s, ("one",)
    )
    again = 2 * 2 * job.hidden**2 * job.tokens / job.tp / at.matmul_flops_per_s
    return each, each + job.repeats_layer * again, each


def head(job: Job, at: Attained) -> tuple[float, float, float]:
    """Return the head by pass; backward moves twice as many bytes of the loss as forward."""
    logits = job.tokens * job.vocab / job.tp
    tokens, rate = job.tokens / job.tp, at.plain_flops_per_s
    rate *= 1 if job.vocab % 8 == 0 else at.unaligned_share
    each = matmuls_s(job.vocab * job.hidden, tokens, rate, at.matmul_start_s, ("one",))
    third = logits * at.loss_bytes / at.memory_bytes_per_s / 3
    return each + third, each + third + third, each if "weights" in passes_of(job) else 0.0


def meet(one: float, other: float) -> float:
    """Return the sixth norm of two times, a little above the longer one if they are similar."""
    return float((one**6 + other**6) ** (1 / 6))


def sharded_s(job: Job, at: Attained, compute_s: float, ahead_share: float) -> float:
    """Return a microbatch's messages with ZeRO-2 or 3: weights for each pass, gradients after
    backward."""
    forward = compute_s * ahead_share
    ahead = [passed_s(job, at, HALF, weights=True)] if job.gathers else []
    behind = [*ahead, *([passed_s(job, at, job.gradient_bytes)] if job.scatters else [])]
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
    """Return the update: gradient, moments and master weight are read, three are written and the
    weight too, gradients are cleared, and read for the norm."""
    moved = [4, 4, 4, 4, 4, 4, 4, HALF, 4, 4]
    divided = job.zero_stage > 0
    dense, routed = trained(job)
    mine = dense / (job.dp * job.cp) + routed / expert_replicas(job) if divided else dense + routed
    there = job.offloaded * mine
    copies = [there * job.gradient_bytes / at.host_link_bytes_per_s for _ in ("down", "up")]
    shared_s = job.gpus_per_node * sum([4] * 7) / at.host_bytes_per_s
    host = there * max(at.host_update_s, shared_s)
    beside = max(host, sum(copies)) if job.offload_overlapped else host + sum(copies)
    return (mine - there) * at.optimizer * sum(moved) / at.memory_bytes_per_s + beside


def step_parts(job: ShapedJob, at: Attained) -> dict[str, float]:
    """Return the parts of a step, with the names of `StepSeconds`."""
    kinds = {kind: layer(job, at, experts=kind) for kind in (False, True)}
    took = {kind: _layer_s(parts) for kind, parts in kinds.items()}
    copied = {kind: copies_s(job, at, parts, experts=kind) for kind, parts in kinds.items()}
    # Copies that are waited for make all passes of a layer longer.
    by_pass = {
        kind: [s * (1 + copied[kind] / took[kind]) for s in passes_s(parts)]
        for kind, parts in kinds.items()
    }
    kind_of = [index < job.expert_layers for index in range(job.layers)]
    beside = [head(job, at)]
    for _ in range(job.mtp_layers):
        beside += [head(job, at), by_pass[job.expert_layers > 0], projection(job, at)]
    layers = fsum(fsum(by_pass[kind]) for kind in kind_of)
    last = fsum(fsum(each) for each in beside)
    sums = [fsum(by_pass[kind][number] for kind in kind_of) for number in range(3)]
    # The stage with the head is the slowest as a rule, and the others wait.
    filling, stalled = idle_of(job, [each / layers for each in sums])
    ahead = (sums[0] + fsum(each[0] for each in beside)) / (layers + last)
    each = layers / job.layers
    slowest = max(job.fullest_layers * each, job.head_layers * each + last)
    mean = (layers + last) / job.pp
    # ZeRO-2's last backward is ZeRO-1's; ZeRO-3's is as all of its others.
    alike = job.microbatches - (1 if job.scatters and not job.gathers else 0)
    waits = [sharded_s(job, at, slowest, ahead) - slowest for _ in range(alike)]
    waits.append(filling * (sharded_s(job, at, mean, ahead) - mean))
    others = (layers + last - slowest) / max(1, job.pp - 1)
    stalls = [max(0.0, others + stalled * others - slowest) for _ in range(job.microbatches)]
    parts = {
        "work_s": fsum(slowest for _ in range(job.microbatches)),
        "idle_s": filling * others + (fsum(stalls) if stalled else 0.0),
        "sharding_s": fsum(waits),
        "stage_messages_s": (job.microbatches + filling) * stage_hop_s(job, at),
        "gradients_s": 0.0 if job.gathers else gradients_s(job, at, job.microbatches * slowest),
        "update_s": update_s(job, at),
    }
    doublings = max(0.0, log2(job.gpus / 8))
    late = fsum(parts.values()) * at.straggling * doublings
    return {"head_s": last, **parts, "straggling_s": late, "fixed_s": at.step_s}


def idle_of(job: Job, shares: list[float]) -> tuple[float, float]:
    """Return a stage's idle time per step and per microbatch, from the chains of dependencies that
    are longest."""

    def longest(lines: Any) -> float:
        chains = [(line.forward, line.inputs, line.weights) for line in lines]
        return max(0.0, *(fsum(map(operator.mul, chain, shares)) for chain in chains))

    whole = longest(job.idle.filling)
    each = min(longest(job.idle.stalling), whole / job.idle.held)
    return whole - job.idle.held * each, each


SHOWN = ("matmuls_s", "attention_s", "memory_s", "messages_s", "repeated_s")


def _device_s(parts: dict[str, float]) -> float:
    return fsum(parts[name] for name in SHOWN)


def _layer_s(parts: dict[str, float]) -> float:
    return meet(_device_s(parts), parts["host_s"])
