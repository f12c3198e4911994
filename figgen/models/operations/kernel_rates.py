"""The rate at which one device runs each kind of operation.

Rates are what whole training steps on one H100 reached (`figgen/catalog/steps-h100.json`), as
shares of its peaks. Another device reaches the same share of its own matmul peak. Passes over
memory scale by the share of their time that is bound by bandwidth: an H200 has the processor of an
H100 and 1.43 times its bandwidth, and runs a copy 1.41 times as fast but a cast only 1.08 times.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.models.operations.operation import (
    BROADCAST,
    CONTIGUOUS,
    COPY,
    FUSED,
    SCATTER,
    SOFTMAX,
    STRIDED,
)

MATMUL_SHARE = 0.869
"""Share of the dense peak that a matmul's tile sustains in a step (860 of 989.4 TFLOP/s)."""
COMPILED_SHARE = 0.94
"""Share of that under torch.compile, which keeps the device busy, so that its clock is lower."""
UNALIGNED_FLOPS_PER_S = 144e12
"""Rate of matmuls with widths that are not multiples of eight, on that H100. Their loads can't be
vectorized, so the issue rate bounds them."""
GROUPED_SHARE = 0.6
"""Share of the dense peak for grouped matmuls in 16 bits. No step has measured it yet; timed alone
by `measure.py`, such kernels reach 0.58 to 0.68 on an H100."""
GROUPED_FP32_SHARE = 0.503
"""Share of the TF32 peak, one matmul per expert (249 of 494.7 TFLOP/s)."""
GROUPED_FULL_SHARE = 0.0918
"""Share of the TF32 peak if PyTorch may not use TF32, its default (45.4 TFLOP/s)."""
ATTENTION_64_SHARE, ATTENTION_128_SHARE = 0.4265, 0.647
"""Shares of the dense peak in long causal attention, heads of 64 and 128 (422, 640 TFLOP/s)."""
MASKED_64_SHARE, MASKED_128_SHARE = 0.1233, 0.189
"""Shares of the dense peak in attention with an explicit mask (122, 187 TFLOP/s)."""
ATTENTION_64_HALF, ATTENTION_128_HALF = 432.0, 54_000.0
"""Tokens of a sequence, and tokens times heads, at which attention reaches half of its rate."""

ACCESS_SHARES = (
    (CONTIGUOUS, 0.881), (BROADCAST, 0.612), (STRIDED, 0.328), (SOFTMAX, 0.567), (SCATTER, 0.158),
    (COPY, 0.866), (FUSED, 0.607),
)  # fmt: skip
"""Shares of the memory bandwidth by access (2.95, 2.05, 1.1, 1.9, 0.53 and 2.9 of 3.35 TB/s); fused
passes move 1.45 times their fewest bytes at the rate of contiguous ones."""
OPTIMIZER_FP32_SHARE, OPTIMIZER_BF16_SHARE = 0.788, 0.66
"""Shares of the memory bandwidth in clipping and fused Adam, with FP32 and with BF16 state."""

REFERENCE_BYTES_PER_S = 3.35e12
"""Memory bandwidth of the H100 to which these shares refer."""

BANDWIDTH_BOUND = (
    (CONTIGUOUS, 1.0),
    (BROADCAST, 0.24),
    (STRIDED, 0.2),
    (SOFTMAX, 0.81),
    (SCATTER, 0.81),
    (COPY, 1.0),
    (FUSED, 0.66),
)
"""Share of a pass's time on that H100 that bandwidth bounds, by access; the issue rate of the
multiprocessors bounds the rest. Solved from single kernels that `measure.py` timed on it and on an
H200, never from steps. Scatters have the value of softmaxes, fused passes the mean of contiguous
passes and a compiled loss (0.33)."""
OPTIMIZER_FP32_BOUND, OPTIMIZER_BF16_BOUND = 0.74, 0.59
"""Shares of the time of clipping and fused Adam that are bound by bandwidth."""

MATMUL_START_S, WAVE_START_S = 2e-6, 0.6e-6
GAP_S = 1.85e-6
"""From the end of a kernel to the start of the next while the host keeps ahead."""
HOST_S, WAITING_HOST_S = 10e-6, 52e-6
"""Host time per kernel: without waiting, and if it must repeatedly wait for the device, as for the
token counts of experts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRates:
    """Rates of one device in FLOP/s, bytes/s and seconds.

    Attention with heads of up to 64 channels depends on the sequence length: a sequence of
    `attention_64_half` tokens reaches half of the rate. With wider heads it depends on tokens times
    heads. The masked rates are those of attention with an explicit mask.
    """

    multiprocessors: float
    matmul_flops_per_s: float
    matmul_start_s: float
    wave_start_s: float
    compiled_share: float
    unaligned_flops_per_s: float
    grouped_flops_per_s: float
    grouped_fp32_flops_per_s: float
    grouped_full_flops_per_s: float
    attention_64_flops_per_s: float
    attention_64_half: float
    attention_128_flops_per_s: float
    attention_128_half: float
    masked_64_flops_per_s: float
    masked_128_flops_per_s: float
    access_bytes_per_s: dict[str, float]
    optimizer_fp32_bytes_per_s: float
    optimizer_bf16_bytes_per_s: float
    gap_s: float
    host_s: float
    waiting_host_s: float


def speed_up(bound: float, memory: float, issue: float) -> float:
    """Return how many times as fast as on the reference H100 a pass runs.

    `bound` is the share of its time there that bandwidth bounds. The device has `memory` times the
    bandwidth and `issue` times the instruction rate.
    """
    return 1 / (bound / memory + (1 - bound) / issue)


def device_rates(
    *, flops_per_s: float, tf32_flops_per_s: float, bytes_per_s: float, issue: float,
    multiprocessors: float,
) -> KernelRates:  # fmt: skip
    """Return the rates of a device with these peaks, dense and in 16 bits by default.

    `issue` is its multiprocessors times their clock, relative to the reference H100.
    """
    memory, reference = bytes_per_s / REFERENCE_BYTES_PER_S, REFERENCE_BYTES_PER_S
    bound = dict(BANDWIDTH_BOUND)
    return KernelRates(
        multiprocessors=multiprocessors,
        matmul_flops_per_s=MATMUL_SHARE * flops_per_s,
        matmul_start_s=MATMUL_START_S,
        wave_start_s=WAVE_START_S,
        compiled_share=COMPILED_SHARE,
        unaligned_flops_per_s=UNALIGNED_FLOPS_PER_S * issue,
        grouped_flops_per_s=GROUPED_SHARE * flops_per_s,
        grouped_fp32_flops_per_s=GROUPED_FP32_SHARE * tf32_flops_per_s,
        grouped_full_flops_per_s=GROUPED_FULL_SHARE * tf32_flops_per_s,
        attention_64_flops_per_s=ATTENTION_64_SHARE * flops_per_s,
        attention_64_half=ATTENTION_64_HALF,
        attention_128_flops_per_s=ATTENTION_128_SHARE * flops_per_s,
        attention_128_half=ATTENTION_128_HALF,
        masked_64_flops_per_s=MASKED_64_SHARE * flops_per_s,
        masked_128_flops_per_s=MASKED_128_SHARE * flops_per_s,
        access_bytes_per_s={
            kind: share * reference * speed_up(bound[kind], memory, issue)
            for kind, share in ACCESS_SHARES
        },
        optimizer_fp32_bytes_per_s=OPTIMIZER_FP32_SHARE
        * reference
        * speed_up(OPTIMIZER_FP32_BOUND, memory, issue),
        optimizer_bf16_bytes_per_s=OPTIMIZER_BF16_SHARE
        * reference
        * speed_up(OPTIMIZER_BF16_BOUND, memory, issue),
        gap_s=GAP_S,
        host_s=HOST_S,
        waiting_host_s=WAITING_HOST_S,
    )
