"""Predicted step times of a job with one change.

A mistake has two times, for its least and its largest effect. A choice of the job has the time
without it, for the same number of tokens. Either is None if it does not apply to the job.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from figgen.models.pipeline.pass_lines import Passes
from figgen.models.step.attained import Attained
from figgen.models.step.job import Job
from figgen.models.step.timed_step import timed_step

Seconds = tuple[float, float]
"""Step times with the least and the largest effect of a mistake."""

FUSED = ("megatron-lm", "megatron-bridge", "nemo", "megascale", "megatron-deepspeed", "deepseek")
"""Frameworks with their own fused kernels, which need no compiler."""

SOCKET = 1.2e9
"""Bytes per second of one node over sockets on 10 Gb/s Ethernet."""

PEERS, SLOW_PEERS = 12e9, 1.5e9
"""Bytes per second that a GPU sends to others over PCIe 4.0, and through the memory of two sockets
without peer access."""

MASKED = 1 / 4
"""Rate of attention with an explicit mask, divided by the rate without: 122 to 155 TFLOP/s and 420
to 640, measured on one H100."""

SCORE_BYTES = 40
"""Bytes that unfused attention moves per score: matmuls, mask, softmax and dropout read and write
it in 16 bits and FP32, in ten passes forward and backward."""

LAUNCHES, HOST_S = 160, (5e-6, 20e-6)
"""Kernels of an eager layer, forward and backward, and the host time per kernel."""

EXPERT_LAUNCHES, LAUNCH_S = 36, 50e-6
"""Kernels of an expert computed on its own, forward and backward, and the host time per kernel if
it waits for counts, as in a step of Mixtral under transformers on one H100."""

CPU_ADAM_S = (0.1e-9, 17e-9)
"""Seconds to update a parameter on the CPU of a node: 28 bytes at 280 GB/s, the bandwidth of two
sockets, and DeepSpeed's slowest report (1.35 B in 22.9 s)."""

LARGER = 4
"""Factor by which the sequences of a microbatch grow for comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedJob:
    """A job, the rates it attains, and the predicted seconds of its step.

    `network_per_node` says whether the network's rate is per node. Peaks are those of the job's
    number format and of TF32. `eager_elementwise` and `eager_loss_bytes` are constants of software
    that does not compile.
    """

    job: Job
    rates: Attained
    seconds: float
    head_dim: int
    framework: str
    network_per_node: bool
    peak_flops_per_s: float
    tf32_flops_per_s: float
    eager_elementwise: float
    eager_loss_bytes: float


def _seconds(job: Job, rates: Attained) -> float:
    return float(timed_step(job, rates).total_s)


def slow_network(timed: TimedJob) -> Seconds | None:
    """Return times with a rate per node instead of per GPU, up to sockets over plain Ethernet."""
    job, rates = timed.job, timed.rates
    if job.gpus <= job.gpus_per_node:
        return None
    least = 0.5 if timed.network_per_node else 1 / job.gpus_per_node
    return (
        _seconds(job, _networks(rates, float(rates.network_bytes_per_s * least))),
        _seconds(job, _networks(rates, SOCKET / float(job.gpus_per_node))),
    )


def _networks(rates: Attained, network: float) -> Attained:
    slower = min(network, float(rates.network_bytes_per_s))
    shuffle = min(slower, float(rates.shuffle_bytes_per_s))
    return replace(rates, network_bytes_per_s=slower, shuffle_bytes_per_s=shuffle)


def slow_inside(timed: TimedJob) -> Seconds | None:
    """Return times with PCIe instead of a node's fast links, up to no peer access at all."""
    if min(timed.job.gpus, timed.job.gpus_per_node) < 2:
        return None
    own = float(timed.rates.scale_up_bytes_per_s)
    return _inside(timed, min(PEERS, own / 2)), _inside(timed, min(SLOW_PEERS, own))


def _inside(timed: TimedJob, rate: float) -> float:
    rates = replace(timed.rates, scale_up_bytes_per_s=rate, near_shuffle_bytes_per_s=rate)
    return _seconds(timed.job, rates)


def slow_attention(timed: TimedJob) -> Seconds:
    """Return times with an explicit mask, up to scores that are written to memory."""
    rates = timed.rates
    rate, width = float(rates.attention_flops_per_s), timed.head_dim
    moved = SCORE_BYTES / (7 * width) / float(rates.memory_bytes_per_s)
    unfused = 1 / (moved + 2 / float(rates.plain_flops_per_s))
    masked, plain = rate * MASKED, min(unfused, rate)
    return (
        _seconds(timed.job, replace(rates, attention_flops_per_s=max(masked, plain))),
        _seconds(timed.job, replace(rates, attention_flops_per_s=min(masked, plain))),
    )


def wide_numbers(timed: TimedJob) -> Seconds:
    """Return times with matmuls in TF32 instead of 16 bits, up to FP32 without tensor cores."""
    tf32 = timed.tf32_flops_per_s / timed.peak_flops_per_s
    return _wide(timed, tf32), _wide(timed, tf32 / 8)


def _wide(timed: TimedJob, share: float) -> float:
    """Return the time with matmuls at a share of the peak and twice as many bytes."""
    rates = timed.rates
    slower = replace(
        rates,
        matmul_flops_per_s=rates.matmul_flops_per_s * share,
        plain_flops_per_s=rates.plain_flops_per_s * share,
        expert_flops_per_s=rates.expert_flops_per_s * share,
        memory_bytes_per_s=rates.memory_bytes_per_s / 2,
        scale_up_bytes_per_s=rates.scale_up_bytes_per_s / 2,
        network_bytes_per_s=rates.network_bytes_per_s / 2,
        shuffle_bytes_per_s=rates.shuffle_bytes_per_s / 2,
        near_shuffle_bytes_per_s=rates.near_shuffle_bytes_per_s / 2,
        attention_flops_per_s=rates.attention_flops_per_s * min(share, MASKED),
    )
    return _seconds(timed.job, slower)


def recomputed(timed: TimedJob) -> Seconds | None:
    """Return times with every layer recomputed, unless the job already does so."""
    if timed.job.repeats_layer >= 1:
        return None
    once = _seconds(replace(timed.job, repeats_layer=1.0, repeats_core=0.0), timed.rates)
    return once, once


def not_recomputed(timed: TimedJob) -> float | None:
    """Return the time without the job's recomputation."""
    if timed.job.repeats_layer + timed.job.repeats_core <= 0:
        return None
    return _seconds(replace(timed.job, repeats_layer=0.0, repeats_core=0.0), timed.rates)


def not_compiled(timed: TimedJob) -> Seconds | None:
    """Return times with a separate pass per elementwise operation, in 16 bits and in FP32."""
    if timed.framework in FUSED:
        return None
    rates = timed.rates
    eager = max(timed.eager_elementwise, float(rates.elementwise) * 1.5)
    loss = max(timed.eager_loss_bytes, float(rates.loss_bytes))
    host = max(LAUNCHES * HOST_S[0], float(rates.host_layer_s))
    least = replace(rates, elementwise=eager, loss_bytes=loss, host_layer_s=host)
    most = replace(rates, elementwise=2 * eager, loss_bytes=loss, host_layer_s=2 * host)
    return _seconds(timed.job, least), _seconds(timed.job, most)


def shared_each_microbatch(timed: TimedJob) -> Seconds | None:
    """Return times with weights or gradients exchanged in every microbatch.

    The longest time assumes an exchange at a quarter of the rate, fully exposed.
    """
    job, rates = timed.job, timed.rates
    if job.dp * job.cp < 2:
        return None
    slower = replace(
        rates,
        scale_up_bytes_per_s=rates.scale_up_bytes_per_s / 4,
        network_bytes_per_s=rates.network_bytes_per_s / 4,
    )
    if job.gathers > 0:
        shown = replace(job, overlapped=0.0)
        return _seconds(shown, rates), _seconds(shown, slower)
    whole = replace(job, gathers=2.0, scatters=1.0, overlapped=0.0)
    return _seconds(replace(job, scatters=1.0), rates), _seconds(whole, slower)


def shared_once(timed: TimedJob) -> float | None:
    """Return the time with whole weights on every GPU, which ZeRO-3 gathers."""
    if timed.job.gathers <= 0 or timed.job.dp * timed.job.cp < 2:
        return None
    return _seconds(replace(timed.job, gathers=0.0, scatters=0.0, zero_stage=1), timed.rates)


def nothing_hidden(timed: TimedJob) -> Seconds | None:
    """Return times with all messages exposed."""
    if timed.job.gpus < 2:
        return None
    job, rates = timed.job, timed.rates
    half = replace(
        rates,
        exposed_data=(1 + float(rates.exposed_data)) / 2,
        exposed_tensor=(1 + float(rates.exposed_tensor)) / 2,
        exposed_context=(1 + float(rates.exposed_context)) / 2,
        exposed_pipeline=(1 + float(rates.exposed_pipeline)) / 2,
    )
    whole = replace(
        rates, exposed_data=1.0, exposed_tensor=1.0, exposed_context=1.0, exposed_pipeline=1.0
    )
    return _seconds(job, half), _seconds(replace(job, overlapped=0.0), whole)


def slow_experts(timed: TimedJob) -> Seconds | None:
    """Return times with plain token exchange and ungrouped matmuls, up to experts one by one."""
    job, rates = timed.job, timed.rates
    if job.expert_layers <= 0:
        return None
    plain = replace(
        rates,
        expert_overlap=1.0,
        permutation=2 * rates.permutation,
        dispatcher=1.0,
        expert_flops_per_s=rates.expert_flops_per_s / 1.5,
    )
    alone = EXPERT_LAUNCHES * job.experts / job.ep * LAUNCH_S
    host = max(float(rates.host_expert_layer_s), float(alone))
    return _seconds(job, plain), _seconds(job, replace(plain, host_expert_layer_s=host))


def on_the_cpu(timed: TimedJob) -> Seconds:
    """Return times with the optimizer's state in the CPU's memory, shared by a node's GPUs."""
    job = timed.job
    held = (job.dense_parameters + job.routed_parameters) / job.pp
    divided = job.gpus / job.pp if job.zero_stage >= 1 else job.tp
    of_node = float(held / divided * min(job.gpus, job.gpus_per_node))
    moved = 6 * of_node / (PEERS * float(min(job.gpus, job.gpus_per_node)))
    rest = timed.seconds + moved
    return rest + CPU_ADAM_S[0] * of_node, rest + CPU_ADAM_S[1] * of_node


def small_kernels(timed: TimedJob) -> Seconds:
    """Return times with layers too short for the host to launch the next one in time."""
    return _launched(timed, HOST_S[0]), _launched(timed, HOST_S[1])


def _launched(timed: TimedJob, host_s: float) -> float:
    """Return the time with at least this much host time per kernel of a layer."""
    rates = timed.rates
    slower = replace(
        rates,
        host_layer_s=max(LAUNCHES * host_s, float(rates.host_layer_s)),
        host_expert_layer_s=max(LAUNCHES * host_s, float(rates.host_expert_layer_s)),
    )
    return _seconds(timed.job, slower)


def larger_microbatches(timed: TimedJob) -> float:
    """Return the time with four times as many sequences per microbatch, for the same tokens."""
    job = timed.job
    fewer = max(1.0, job.microbatches / LARGER)
    tokens = LARGER * fewer / job.microbatches
    larger = replace(job, microbatch=job.microbatch * LARGER, microbatches=fewer)
    return _seconds(larger, timed.rates) / float(tokens)


def fuller_pipeline(timed: TimedJob) -> float | None:
    """Return the time with twice as many virtual stages, which halve the idle time."""
    job = timed.job
    if job.pp < 2:
        return None
    halves = replace(job.idle, filling=tuple(_half(line) for line in job.idle.filling))
    return _seconds(replace(job, idle=halves), timed.rates)


def _half(line: Passes) -> Passes:
    return Passes(forward=line.forward / 2, inputs=line.inputs / 2, weights=line.weights / 2)
