"""The experts of a layer as eager transformers runs them: routing, sorting, grouped matmuls.

`grouped_mm_experts_forward` sorts token copies by expert and runs one grouped matmul over them.
Autocast does not cover grouped matmuls, so FP32 weights make the whole block FP32. PyTorch then
waits for the token counts and runs a TF32 matmul for each expert.
"""

from __future__ import annotations

from figgen.errors import InputError
from figgen.models.operations.device_job import DeviceJob
from figgen.models.operations.operation import (
    BACKWARD,
    BROADCAST,
    CONTIGUOUS,
    COPY,
    FORWARD,
    SCATTER,
    STRIDED,
    WEIGHT,
    Operation,
    Pass,
    grouped_matmuls,
    kept,
    matmul,
    passes,
    small,
)

ROUTING_KERNELS = 24
"""Forward: softmax, top k, sort, counts and inverse order, radix sort passes included."""
ROUTING_BACKWARD_KERNELS = 40
"""Backward: the router's scores, and two accumulating scatters, which sort first."""


def expert_block(job: DeviceJob) -> tuple[Operation, ...]:
    """Return router, dispatch, routed experts and their sum. Raises InputError without experts."""
    experts = job.shape.experts
    if experts is None:
        raise InputError("experts of a layer", expected="a mixture of experts", got="none")
    hidden, autocast = job.shape.hidden, job.stack.autocast
    each = job.stack.residual_bytes
    rows = job.tokens * experts.top_k
    routed, inner = rows * hidden, rows * experts.ffn_hidden
    return (
        *_router(job, experts.count),
        small("routing", FORWARD, ROUTING_KERNELS),
        small("routing", BACKWARD, ROUTING_BACKWARD_KERNELS),
        *passes(_dispatch(each), FORWARD, routed),
        kept("inputs and outputs of experts", 2 * each * routed),
        *_grouped(job, "gate and up", hidden, 2 * experts.ffn_hidden, rows, experts.count),
        *passes((("SiLU", BROADCAST, 2 * each), ("gate", BROADCAST, 3 * each)), FORWARD, inner),
        kept("gate, SiLU, up and their product", 4 * each * inner),
        *_grouped(job, "down", experts.ffn_hidden, hidden, rows, experts.count),
        *passes(_combine(each), FORWARD, routed),
        *passes(_combine_backward(autocast), BACKWARD, routed),
        *passes(_inner_backward(each), BACKWARD, inner),
        *passes(
            (("clear", CONTIGUOUS, each), ("sum of gradients", CONTIGUOUS, 3 * each)),
            BACKWARD, job.tokens * hidden,
        ),
        kept("routing", job.tokens * (4 * experts.count + 12) + rows * 36),
    )  # fmt: skip


def _router(job: DeviceJob, count: int) -> tuple[Operation, ...]:
    tokens, hidden = job.tokens, job.shape.hidden
    found = [
        matmul("router", FORWARD, m=tokens, n=count, k=hidden),
        matmul("router weight", WEIGHT, m=count, n=hidden, k=tokens),
        matmul("router input", BACKWARD, m=tokens, n=hidden, k=count),
    ]
    if job.stack.autocast:
        elements = tokens * hidden
        found += passes((("router input to BF16", CONTIGUOUS, 6),), FORWARD, elements)
        found.append(kept("router input", 2 * elements))
        found += passes((("router gradient to FP32", BROADCAST, 6),), BACKWARD, elements)
    return tuple(found)


def _grouped(
    job: DeviceJob, name: str, inputs: int, outputs: int, rows: int, experts: int
) -> tuple[Operation, ...]:
    """Return a grouped matmul and its gradients; FP32 has kernels and copies for each expert."""
    kernels = 2 * experts if job.stack.autocast else 2
    weights = experts * inputs * outputs
    found = [
        *grouped_matmuls(name, inputs, outputs, rows=rows, groups=experts, kernels=kernels),
    ]
    if job.stack.autocast:
        found += passes((("copy of weights", COPY, 8),), FORWARD, weights, of=name)
        found += passes((("copies of weights", COPY, 16),), BACKWARD, weights, of=name)
    return tuple(found)


def _dispatch(each: float) -> tuple[Pass, ...]:
    return (("gather tokens", CONTIGUOUS, 2 * each),)


def _combine(each: float) -> tuple[Pass, ...]:
    """Return the passes that weight outputs in FP32, restore their order and add them up."""
    return (
        ("weight outputs", BROADCAST, each + 4), ("order outputs", CONTIGUOUS, 8),
        ("sum of experts", BROADCAST, 6),
    )  # fmt: skip


def _combine_backward(autocast: bool) -> tuple[Pass, ...]:
    each = 4.0 if autocast else 2.0
    narrowed: tuple[Pass, ...] = () if autocast else (("to BF16", CONTIGUOUS, 6),)
    return (
        ("expand gradient", BROADCAST, 6), ("clear", CONTIGUOUS, 4), ("clone", COPY, 8),
        ("order gradients", SCATTER, 8), ("gradient of weights", BROADCAST, 8 + each),
        ("sum of rows", BROADCAST, 4), ("weight gradient", BROADCAST, 8), *narrowed,
        ("clone", COPY, each), ("scatter tokens", SCATTER, 2 * each),
    )  # fmt: skip


def _inner_backward(each: float) -> tuple[Pass, ...]:
    return (
        ("up gradient", CONTIGUOUS, 3 * each), ("gate gradient", BROADCAST, 3 * each),
        ("SiLU", BROADCAST, 3 * each), ("join gradients", STRIDED, 4 * each),
    )  # fmt: skip
