"""Seconds of a list of operations on one device, by kind; they add up to the step."""

from __future__ import annotations

from figgen.equations.ops import ceil
from figgen.models.operations.kernel_rates import KernelRates
from figgen.models.operations.operation import (
    ATTENTION,
    BROADCAST,
    CONTIGUOUS,
    COPY,
    FUSED,
    GROUPED,
    MATMUL,
    OPTIMIZER,
    SCATTER,
    SOFTMAX,
    STRIDED,
    Operation,
    total_kernels,
)
from figgen.models.operations.stack import Stack

TILES = (
    (256.0, 128.0, 1.0), (128.0, 256.0, 1.0), (192.0, 192.0, 1.0), (128.0, 128.0, 0.85),
    (64.0, 64.0, 0.55),
)  # fmt: skip
"""Tiles of Hopper's matmul kernels: rows, columns, and the share of the rate that they reach.
Smaller tiles load more bytes per FLOP."""

PARTS = {
    MATMUL: "product", GROUPED: "product", ATTENTION: "attention", CONTIGUOUS: "elementwise",
    BROADCAST: "elementwise", STRIDED: "elementwise", SOFTMAX: "elementwise",
    SCATTER: "elementwise", FUSED: "elementwise", OPTIMIZER: "optimizer", COPY: "copy",
}  # fmt: skip
"""Maps kinds of operations to parts of a step; `gap` and `host` are further parts."""


def matmul_s(one: Operation, rates: KernelRates, stack: Stack) -> float:
    """Return the seconds of one matmul in whole waves of the fastest tile.

    A wave runs one tile on each multiprocessor and takes the time of the tile's FLOPs plus a
    start-up.
    """
    if not one.aligned:
        return one.flops / rates.unaligned_flops_per_s
    rate = rates.matmul_flops_per_s * (rates.compiled_share if stack.compiled else 1.0)
    each = rate / rates.multiprocessors
    waves_s: float = min(
        ceil(ceil(one.m / rows) * ceil(one.n / columns) / rates.multiprocessors)
        * (2 * rows * columns * one.k / (each * share) + rates.wave_start_s)
        for rows, columns, share in TILES
    )
    return rates.matmul_start_s + waves_s


def grouped_s(one: Operation, rates: KernelRates, stack: Stack) -> float:
    """Return the seconds of a grouped matmul.

    Autocast leaves its weights in FP32. It then runs in TF32 if PyTorch may use that, else in FP32.
    """
    if not stack.autocast:
        return one.flops / rates.grouped_flops_per_s
    return one.flops / (
        rates.grouped_fp32_flops_per_s if stack.tf32 else rates.grouped_full_flops_per_s
    )


def attention_s(one: Operation, rates: KernelRates, stack: Stack) -> float:
    """Return the seconds of an attention kernel, which depend on the head width and the mask."""
    wide = one.width > 64
    if stack.masked:
        filled = one.n / (one.n + rates.attention_128_half)
        rate = rates.masked_128_flops_per_s * filled if wide else rates.masked_64_flops_per_s
    elif wide:
        rate = rates.attention_128_flops_per_s * one.n / (one.n + rates.attention_128_half)
    else:
        rate = rates.attention_64_flops_per_s * one.m / (one.m + rates.attention_64_half)
    return one.flops / rate


def pass_s(one: Operation, rates: KernelRates, stack: Stack) -> float:
    """Return the seconds of a pass over memory."""
    if one.kind == OPTIMIZER:
        fp32 = stack.autocast
        rate = rates.optimizer_fp32_bytes_per_s if fp32 else rates.optimizer_bf16_bytes_per_s
        return one.moved_bytes / rate
    return one.moved_bytes / rates.access_bytes_per_s[one.kind]


def operation_s(one: Operation, rates: KernelRates, stack: Stack) -> float:
    """Return the seconds of one run of an operation."""
    if one.kind == MATMUL:
        return matmul_s(one, rates, stack)
    if one.kind == GROUPED:
        return grouped_s(one, rates, stack)
    if one.kind == ATTENTION:
        return attention_s(one, rates, stack)
    return pass_s(one, rates, stack)


def step_parts_s(
    operations: tuple[Operation, ...], rates: KernelRates, stack: Stack
) -> dict[str, float]:
    """Return the seconds of a step by part: kernels by kind, gaps between them, host waits.

    The device waits for the host if launching all kernels takes longer than running them.
    """
    found = {
        part: sum(
            operation_s(one, rates, stack) * one.count
            for one in operations
            if PARTS[one.kind] == part
        )
        for part in ("product", "attention", "elementwise", "optimizer", "copy")
    }
    kernels, busy = total_kernels(operations), sum(found.values())
    waits = stack.autocast and any(one.kind == GROUPED for one in operations)
    pace = rates.waiting_host_s if waits else rates.host_s
    gap = kernels * rates.gap_s
    return {**found, "gap": gap, "host": max(0.0, kernels * pace - busy - gap)}
