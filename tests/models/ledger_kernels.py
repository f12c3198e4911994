"""Kernels of a step, counted one by one: what each multiplies, reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

from figgen.models.shape.model_shape import ModelShape
from figgen.models.step.attained import Attained
from figgen.models.step.job import Job

HALF = 2  # bytes of a 16-bit number
TRAINED = ("outputs", "inputs", "weights")
Kernel = tuple[int, int, float]
"""A kernel: tensors read, tensors written, and their width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedJob(Job):
    """A job with the model that its numbers describe."""

    shape: ModelShape


def passes_of(job: Job) -> tuple[str, ...]:
    """Return the passes of a matmul with model weights; frozen weights have no gradient."""
    return TRAINED[:2] if job.lora_rank else TRAINED


def matmuls_s(
    weights: float, tokens: float, rate: float, starts_s: float, passes: tuple[str, ...] = TRAINED
) -> float:
    """Return seconds of outputs, input gradients and weight gradients: a matmul and a sum each, and
    the wait before matmuls start."""
    return fsum(2 * weights * tokens / rate + starts_s for _ in passes)


def core_s(job: Job, at: Attained, passes: int) -> float:
    """Return seconds of matmuls over visible pairs of queries and keys: scores and values forward.

    A query of a windowed layer sees at most a window of earlier keys. A mixer's scan runs at a
    quarter of the rate. Starting a tile of queries costs as much as some keys.
    """
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


def trading(job: Job) -> float:
    """Return context ranks that exchange tokens for heads, and so hold each other's tokens."""
    if job.trades_heads:
        return float(job.cp)
    return max(1, min(job.cp, job.gpus_per_node / job.tp)) if job.trades_in_node else 1


def fullest_tokens(job: Job) -> float:
    """Return the tokens copied to the fullest rank of experts, at most those of all ranks."""
    return min(job.ep, job.expert_skew) * job.tokens / job.tp


def kernels_s(at: Attained, tokens: float, kernels: list[Kernel]) -> float:
    moved = fsum((read + written) * width * HALF for read, written, width in kernels)
    return at.elementwise * tokens * moved / at.memory_bytes_per_s


def queries_keys_values(shape: ModelShape) -> int:
    """Return the channels of all heads' queries, keys and values."""
    heads = [(shape.heads, shape.head_dim), (2 * shape.kv_heads, shape.head_dim)]
    if shape.latent:
        key = shape.latent.nope_head_dim + shape.latent.rope_head_dim
        heads = [(2 * shape.heads, key), (shape.heads, shape.latent.value_head_dim)]
    return sum(count * width for count, width in heads)


def block_kernels(job: ShapedJob) -> list[Kernel]:
    """Return the other kernels of a block: two norms, two residual sums and rotated positions, or a
    mixer's convolution, scan and gate."""
    mixers, share = job.shape.state_space, job.mixer_share
    return [
        *[(1, 1, job.hidden)] * 2,
        *[(2, 1, job.hidden)] * 2,
        (1, 1, (1 - share) * queries_keys_values(job.shape)),
        *([(1, 1, share * (mixers.projected + 2 * mixers.inner))] if mixers else []),
    ]


def matrices(job: ShapedJob) -> int:
    """Return the number of matrices of a feed-forward block."""
    return 3 if job.shape.ffn == "swiglu" else 2


def gate(job: ShapedJob, width: float) -> list[Kernel]:
    """Return the kernels between the matrices of a block; the last matrix reads their output."""
    return [(matrices(job) - 1, 1, width)]


def beside(job: Job, at: Attained, *, experts: bool, held: float) -> tuple[float, float, float]:
    """Return adapters of a layer with `held` weights: matmuls of one pass, passes forward and
    backward.

    They have as many inputs as outputs. Each pass reads and writes quantized weights in 16 bits.
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
    thin = 2 * met / at.matmul_flops_per_s
    return thin, kernels_s(at, 1, ahead) + unpacked_s, kernels_s(at, 1, behind) + unpacked_s


def cast_s(
    job: Job, at: Attained, tokens: float, ends: list[tuple[float, float]]
) -> tuple[float, float]:
    """Return seconds to cast inputs of 8-bit matmuls in forward, and output gradients in backward:
    read, write by rows and by columns, and scale."""
    if not job.quantized:
        return 0.0, 0.0
    each = tokens * at.cast * (HALF + 1 + 1 + 1) / at.memory_bytes_per_s
    return fsum(each * inputs for inputs, _ in ends), fsum(each * outputs for _, outputs in ends)


def attention_ends(job: ShapedJob) -> list[tuple[float, float]]:
    """Return channels into and out of the first and the last matrix, for the mean layer."""
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
