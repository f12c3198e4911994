"""One operation of a training step, and how tables of passes over memory become operations.

Time, memory, FLOPs, traffic and kernel counts of a step are sums over its operations. An operation
is a matmul, an attention kernel or a *pass*: a kernel that reads and writes tensors in memory and
whose time follows from its bytes and its kind of access.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

MATMUL, GROUPED, ATTENTION = "matmul", "grouped matmul", "attention"
CONTIGUOUS, BROADCAST, STRIDED = "contiguous", "broadcast", "strided"
SOFTMAX, SCATTER, FUSED, OPTIMIZER, COPY = "softmax", "scatter", "fused", "optimizer", "copy"
CAST, MESSAGE, WAIT = "cast", "message", "wait"
"""Kinds of operations. `contiguous` passes read and write whole vectors of one format. PyTorch goes
element by element where an operand is broadcast, reduced, transposed or of a different format, so
that 16-bit elements take as long as 32-bit ones: such passes are `broadcast` in FP32 or where they
widen 16 bits to 32, and `strided`, at half the rate, where they read and write 16 bits or multiply
both formats. Compilers and libraries combine several into a `fused` pass; `cast` passes write 8
bits or fewer, with their scales."""

FORWARD, BACKWARD, WEIGHT, UPDATE = "forward", "backward", "backward by weight", "update"
"""Phases. `backward` computes input gradients, for which the previous layer waits; a schedule may
defer `backward by weight`."""

Pass = tuple[str, str, float]
"""A name, a kind of access, and the bytes read and written per element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation; a matmul has sizes `m`, `n` and `k`, a pass moves `moved_bytes`.

    `kept_bytes` stay from its forward until the backward of its layer, `cached_bytes` until the end
    of the microbatch (casts of weights under autocast). `aligned` is False for a matmul with a
    width that is not a multiple of eight, for which no fast kernel exists. `count` is the number of
    runs, `kernels` the kernels that each run launches.
    """

    name: str
    kind: str
    phase: str
    flops: float = 0.0
    m: float = 0.0
    n: float = 0.0
    k: float = 0.0
    width: float = 0.0
    groups: float = 1.0
    moved_bytes: float = 0.0
    kept_bytes: float = 0.0
    cached_bytes: float = 0.0
    kernels: float = 1.0
    count: float = 1.0
    aligned: bool = True


def matmul(
    name: str, phase: str, *, m: float, n: float, k: float, aligned: bool = True
) -> Operation:
    """Return an m × k by k × n matmul: one kernel, and one that clears its counters."""
    return Operation(
        name=name, kind=MATMUL, phase=phase, flops=2 * m * n * k, m=m, n=n, k=k, kernels=2,
        aligned=aligned,
    )  # fmt: skip


def grouped_matmuls(
    name: str, inputs: float, outputs: float, *, rows: float, groups: float, kernels: float
) -> tuple[Operation, ...]:
    """Return a linear layer, with gradients, of each of `groups` experts, which share `rows`."""
    each = rows / groups
    return (
        _grouped(name, FORWARD, groups, kernels, m=rows, n=outputs, k=inputs),
        _grouped(f"{name} input", BACKWARD, groups, kernels, m=rows, n=inputs, k=outputs),
        _grouped(f"{name} weight", WEIGHT, groups, kernels, m=outputs * groups, n=inputs, k=each),
    )


def _grouped(
    name: str, phase: str, groups: float, kernels: float, *, m: float, n: float, k: float
) -> Operation:
    return Operation(
        name=name, kind=GROUPED, phase=phase, flops=2 * m * n * k, m=m, n=n, k=k, groups=groups,
        kernels=kernels,
    )  # fmt: skip


def passes(
    table: tuple[Pass, ...], phase: str, elements: float, *, of: str = ""
) -> tuple[Operation, ...]:
    """Return the operations of a table of passes over `elements` elements."""
    return tuple(
        Operation(
            name=f"{of} {name}" if of else name, kind=kind, phase=phase,
            moved_bytes=each * elements,
        )
        for name, kind, each in table
    )  # fmt: skip


def small(name: str, phase: str, kernels: float) -> Operation:
    """Return kernels that move almost nothing and only cost their launch."""
    return Operation(name=name, kind=CONTIGUOUS, phase=phase, kernels=kernels)


def kept(name: str, kept_bytes: float, cached_bytes: float = 0.0) -> Operation:
    """Return a tensor that forward keeps and that a different operation computes."""
    return Operation(
        name=name, kind=CONTIGUOUS, phase=FORWARD, kept_bytes=kept_bytes,
        cached_bytes=cached_bytes, kernels=0,
    )  # fmt: skip


def times(operations: tuple[Operation, ...], count: float) -> tuple[Operation, ...]:
    """Return the operations, run `count` times as often."""
    return tuple(replace(one, count=one.count * count) for one in operations)


def of_phase(operations: tuple[Operation, ...], *phases: str) -> tuple[Operation, ...]:
    """Return the operations of these phases."""
    return tuple(one for one in operations if one.phase in phases)


def total_kernels(operations: tuple[Operation, ...]) -> float:
    """Return the number of kernels that the operations launch."""
    return sum(one.kernels * one.count for one in operations)


def total_kept_bytes(operations: tuple[Operation, ...]) -> float:
    """Return the bytes that forward keeps until backward."""
    return sum(one.kept_bytes * one.count for one in operations)
