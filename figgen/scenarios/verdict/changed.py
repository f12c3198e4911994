"""How long a job's step takes with one thing changed, by the model of predicted times.

What is a mistake gives two times, with the least and the most that it does; what is a choice of
the job gives the time without it, for as many tokens. Each is None where it cannot concern the job.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from figgen.catalog.rates import constants
from figgen.errors import InputError
from figgen.models.step.attained import Attained
from figgen.models.step.job import Job
from figgen.models.step.timed_step import timed_step
from figgen.scenarios.runs.described import DescribedRun

Seconds = tuple[float, float]
"""A step's time with the least and with the most of a mistake."""

FUSED = ("megatron-lm", "megatron-bridge", "nemo", "megascale", "megatron-deepspeed", "deepseek")
"""Frameworks that bring fused kernels of their own and need no compiler."""

SOCKET = 1.2e9
"""Bytes a second of one node over sockets on Ethernet of 10 Gb/s."""

PEERS, SLOW_PEERS = 12e9, 1.5e9
"""Bytes a second that a GPU sends to others over PCIe 4.0, and through the memory of two sockets
without peer access."""

MASKED = 1 / 4
"""Rate of attention with an explicit mask over that without: 122 to 155 TFLOP/s where 420 to 640
were measured on one H100."""

SCORE_BYTES = 40
"""Bytes that unfused attention moves for each score: matmuls, mask, softmax and dropout read and
write it in 16 bits and FP32, ten passes forward and backward."""

LAUNCHES, HOST_S = 160, (5e-6, 20e-6)
"""Kernels of an eager layer, forward and backward, and what the host takes for each."""

EXPERT_LAUNCHES, LAUNCH_S = 36, 50e-6
"""Kernels of one expert that is computed alone, forward and backward, and what the host takes for
each where it waits for counts: as in a step of Mixtral under transformers on one H100."""

CPU_ADAM_S = (0.1e-9, 17e-9)
"""Seconds a parameter of a node that its CPU updates: 28 bytes at 280 GB/s, which is all that two
sockets read and write, and DeepSpeed's slowest report (1.35 B in 22.9 s)."""

EXPOSED = ("exposed_data", "exposed_tensor", "exposed_context", "exposed_pipeline")
"""Shares of messages that computing does not hide."""

LARGER = 4
"""Microbatches are compared with those of so many times as many sequences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedJob:
    """A run, its numbers and what it attains, with the predicted seconds of its step."""

    run: DescribedRun
    job: Job
    rates: Attained
    seconds: float

    def of(self, job: dict[str, Any] | None = None, rates: dict[str, Any] | None = None) -> float:
        """Seconds with other numbers of the job or other rates."""
        changed = timed_step(replace(self.job, **(job or {})), replace(self.rates, **(rates or {})))
        return float(changed.total_s)


def slow_network(timed: TimedJob) -> Seconds | None:
    """A rate per node where one per GPU was meant, up to sockets on plain Ethernet."""
    job, rates = timed.job, timed.rates
    if job.gpus <= job.gpus_per_node:
        return None
    least = 1 / job.gpus_per_node if timed.run.network.per != "node" else 0.5
    return (
        timed.of(rates=_networks(rates, float(rates.network_bytes_per_s * least))),
        timed.of(rates=_networks(rates, SOCKET / float(job.gpus_per_node))),
    )


def _networks(rates: Attained, network: float) -> dict[str, Any]:
    slower = min(network, float(rates.network_bytes_per_s))
    return {
        "network_bytes_per_s": slower,
        "shuffle_bytes_per_s": min(slower, float(rates.shuffle_bytes_per_s)),
    }


def slow_inside(timed: TimedJob) -> Seconds | None:
    """PCIe in place of the fast links of a node, up to no access of GPUs to each other."""
    if min(timed.job.gpus, timed.job.gpus_per_node) < 2:
        return None
    own = float(timed.rates.scale_up_bytes_per_s)

    def with_rate(rate: float) -> float:
        slower = min(rate, own)
        return timed.of(rates={"scale_up_bytes_per_s": slower, "near_shuffle_bytes_per_s": slower})

    return with_rate(min(PEERS, own / 2)), with_rate(SLOW_PEERS)


def slow_attention(timed: TimedJob) -> Seconds:
    """An explicit mask, up to scores that are written to memory."""
    rates = timed.rates
    rate, width = float(rates.attention_flops_per_s), timed.run.shape.head_dim
    moved = SCORE_BYTES / (7 * width) / float(rates.memory_bytes_per_s)
    unfused = 1 / (moved + 2 / float(rates.plain_flops_per_s))
    faster, slower = sorted((rate * MASKED, min(unfused, rate)), reverse=True)
    return (
        timed.of(rates={"attention_flops_per_s": faster}),
        timed.of(rates={"attention_flops_per_s": slower}),
    )


def wide_numbers(timed: TimedJob) -> Seconds:
    """Products in TF32 in place of 16 bits, up to FP32 without tensor cores."""
    rates, chip = timed.rates, timed.run.accelerator
    peak = chip.peak_flops_per_s(timed.run.dtype)
    try:
        tf32 = chip.peak_flops_per_s("tf32")
    except InputError:
        tf32 = peak / 2

    def at(flops_per_s: float) -> float:
        share = flops_per_s / peak
        slower = {
            name: getattr(rates, name) * share
            for name in ("product_flops_per_s", "plain_flops_per_s", "expert_flops_per_s")
        }
        twice = {
            name: getattr(rates, name) / 2
            for name in (
                "memory_bytes_per_s",
                "scale_up_bytes_per_s",
                "network_bytes_per_s",
                "shuffle_bytes_per_s",
                "near_shuffle_bytes_per_s",
            )
        }
        flash = {"attention_flops_per_s": rates.attention_flops_per_s * min(share, MASKED)}
        return timed.of(rates={**slower, **twice, **flash})

    return at(tf32), at(tf32 / 8)


def recomputed(timed: TimedJob) -> Seconds | None:
    """Every layer computed again, where the job says that it is not."""
    if timed.job.repeats_layer >= 1:
        return None
    once = timed.of(job={"repeats_layer": 1.0, "repeats_core": 0.0})
    return once, once


def not_recomputed(timed: TimedJob) -> float | None:
    """Nothing computed again, where the job does."""
    if timed.job.repeats_layer + timed.job.repeats_core <= 0:
        return None
    return timed.of(job={"repeats_layer": 0.0, "repeats_core": 0.0})


def not_compiled(timed: TimedJob) -> Seconds | None:
    """Every elementwise operation a pass of its own, up to FP32 between them."""
    if timed.run.framework in FUSED:
        return None
    values = {name: constant.value for name, constant in constants().items()}
    rates = timed.rates
    eager = max(values["elementwise.eager"], float(rates.elementwise) * 1.5)
    loss = max(values["loss_bytes.eager"], float(rates.loss_bytes))
    host = max(LAUNCHES * HOST_S[0], float(rates.host_layer_s))
    return (
        timed.of(rates={"elementwise": eager, "loss_bytes": loss, "host_layer_s": host}),
        timed.of(rates={"elementwise": 2 * eager, "loss_bytes": loss, "host_layer_s": 2 * host}),
    )


def shared_each_microbatch(timed: TimedJob) -> Seconds | None:
    """Weights or gradients exchanged in every microbatch, up to a quarter of the rate, unhidden."""
    job, rates = timed.job, timed.rates
    if job.dp * job.cp < 2:
        return None
    slower = {
        name: getattr(rates, name) / 4 for name in ("scale_up_bytes_per_s", "network_bytes_per_s")
    }
    if job.gathers > 0:
        return timed.of(job={"overlapped": 0.0}), timed.of(job={"overlapped": 0.0}, rates=slower)
    whole = {"gathers": 2.0, "scatters": 1.0, "overlapped": 0.0}
    return timed.of(job={"scatters": 1.0}), timed.of(job=whole, rates=slower)


def shared_once(timed: TimedJob) -> float | None:
    """Weights that stay whole on every GPU, where ZeRO-3 gathers them."""
    if timed.job.gathers <= 0 or timed.job.dp * timed.job.cp < 2:
        return None
    return timed.of(job={"gathers": 0.0, "scatters": 0.0, "zero_stage": 1})


def nothing_hidden(timed: TimedJob) -> Seconds | None:
    """Messages that no computing hides."""
    if timed.job.gpus < 2:
        return None
    exposed: dict[str, float] = dict.fromkeys(EXPOSED, 1.0)
    half = {name: (1 + float(getattr(timed.rates, name))) / 2 for name in exposed}
    return timed.of(rates=half), timed.of(job={"overlapped": 0.0}, rates=exposed)


def slow_experts(timed: TimedJob) -> Seconds | None:
    """A plain exchange of tokens and ungrouped matmuls, up to one expert after another."""
    job, rates = timed.job, timed.rates
    if job.expert_layers <= 0:
        return None
    plain = {
        "exposed_experts": max(1.0, float(rates.exposed_experts)),
        "permutation": 2 * rates.permutation,
        "dispatcher": 1.0,
        "expert_flops_per_s": rates.expert_flops_per_s / 1.5,
    }
    alone = EXPERT_LAUNCHES * job.experts / job.ep * LAUNCH_S
    host = {"host_expert_layer_s": max(float(rates.host_expert_layer_s), float(alone))}
    return timed.of(rates=plain), timed.of(rates={**plain, **host})


def on_the_cpu(timed: TimedJob) -> Seconds:
    """Optimizer state in the CPU's memory, which all GPUs of a node share."""
    job = timed.job
    held = (job.dense_parameters + job.routed_parameters) / job.pp
    divided = job.gpus / job.pp if job.zero_stage >= 1 else job.tp
    of_node = float(held / divided * min(job.gpus, job.gpus_per_node))
    moved = 6 * of_node / (PEERS * float(min(job.gpus, job.gpus_per_node)))
    least, most = (timed.seconds + moved + each * of_node for each in CPU_ADAM_S)
    return least, most


def small_kernels(timed: TimedJob) -> Seconds:
    """Layers too short for the host to launch the next in time."""
    least, most = (
        timed.of(
            rates={
                "host_layer_s": max(LAUNCHES * each, float(timed.rates.host_layer_s)),
                "host_expert_layer_s": max(LAUNCHES * each, float(timed.rates.host_expert_layer_s)),
            }
        )
        for each in HOST_S
    )
    return least, most


def larger_microbatches(timed: TimedJob) -> float:
    """Microbatches of four times as many sequences, for as many tokens."""
    job = timed.job
    fewer = max(1.0, job.microbatches / LARGER)
    tokens = LARGER * fewer / job.microbatches
    filling = job.filling if job.pp > 1 else 0.0
    return timed.of(
        job={"microbatch": job.microbatch * LARGER, "microbatches": fewer, "filling": filling}
    ) / float(tokens)


def fuller_pipeline(timed: TimedJob) -> float | None:
    """Twice as many virtual stages, which halve the idle part of a pipeline."""
    if timed.job.pp < 2 or timed.job.filling <= 0:
        return None
    return timed.of(job={"filling": timed.job.filling / 2})
