"""FLOPs and bytes of a list of operations, summed by phase; rates turn these sums into seconds."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.equations.ops import Number
from figgen.models.operations.operation import (
    BACKWARD,
    CAST,
    FORWARD,
    GROUPED,
    MATMUL,
    WEIGHT,
    Operation,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseWork:
    """The sums of one phase: FLOPs and number of matmuls, bytes of passes and of casts.

    FLOPs and bytes are per token, on a GPU that has the whole layer.
    """

    matmul_flops: Number
    matmuls: Number
    pass_bytes: Number
    cast_bytes: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """The work of a layer by phase; `backward` computes input gradients only."""

    forward: PhaseWork
    backward: PhaseWork
    weight: PhaseWork


def layer_work(operations: tuple[Operation, ...]) -> LayerWork:
    """Return the sums of a list of operations by phase."""
    return LayerWork(
        forward=_phase_work(operations, FORWARD),
        backward=_phase_work(operations, BACKWARD),
        weight=_phase_work(operations, WEIGHT),
    )


def _phase_work(operations: tuple[Operation, ...], phase: str) -> PhaseWork:
    flops, matmuls, passed, cast = 0.0, 0.0, 0.0, 0.0
    for one in operations:
        if one.phase != phase:
            continue
        if one.kind in (MATMUL, GROUPED):
            flops += one.count * one.flops
            matmuls += one.count
        elif one.kind == CAST:
            cast += one.count * one.moved_bytes
        else:
            passed += one.count * one.moved_bytes
    return PhaseWork(matmul_flops=flops, matmuls=matmuls, pass_bytes=passed, cast_bytes=cast)
