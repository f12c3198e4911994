"""The update of a step as a list of operations: gradient norm, clipping, Adam, casts, clearing.

An optimizer's kernels take lists of tensors, so that their number grows with the parameters.
"""

from __future__ import annotations

from figgen.models.operations.operation import OPTIMIZER, UPDATE, Operation

FP32 = 4.0
UPDATED_AT_ONCE = 2e7
"""Parameters that one kernel of a fused optimizer passes over, read from a trace."""


def torch_update(parameters: float, width: float = FP32) -> tuple[Operation, ...]:
    """Return clipping and fused Adam in PyTorch; gradients and state have `width` bytes each."""
    return (
        _pass("gradient norm", parameters, width),
        _pass("clipping", parameters, 2 * width),
        _pass("Adam", parameters, 7 * width),
    )


def tuned_update(parameters: float) -> tuple[Operation, ...]:
    """Return Adam with FP32 gradients and state and 16-bit weights, as in Megatron-Core.

    Bytes are the fewest possible: weights are cast as they are written. Gradients are scaled only
    in steps that clip, which the list leaves out (NVIDIA/Megatron-LM, core/optimizer/
    clip_grads.py).
    """
    return (
        _pass("gradient norm", parameters, FP32),
        *adam(parameters),
        _pass("weights to 16 bits", parameters, 2),
        _pass("clear gradients", parameters, FP32),
    )


def adam(parameters: float) -> tuple[Operation, ...]:
    """Return Adam in FP32, which reads gradient, weight and two moments and writes the last three.

    On the host it is the whole update.
    """
    return (_pass("Adam", parameters, 7 * FP32),)


def moved_bytes(operations: tuple[Operation, ...]) -> float:
    """Return the bytes that the operations read and write."""
    return sum(one.count * one.moved_bytes for one in operations)


def _pass(name: str, parameters: float, each: float) -> Operation:
    return Operation(
        name=name, kind=OPTIMIZER, phase=UPDATE, moved_bytes=each * parameters,
        kernels=parameters / UPDATED_AT_ONCE,
    )  # fmt: skip
