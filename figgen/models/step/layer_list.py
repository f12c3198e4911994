"""The operations of one layer and microbatch and the seconds of each, which add up to the layer's.

`figgen.models.operations.tuned_layer` lists the operations that depend only on the model. This
module adds the ones that depend on the layout: the attention core, sorting and sending tokens,
gradient sums and adapters. The messages of an axis share one line, which shows their exposed time.
Recomputation has one line too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from figgen.models.operations.operation import (
    ATTENTION,
    BACKWARD,
    CAST,
    CONTIGUOUS,
    COPY,
    FORWARD,
    GROUPED,
    MATMUL,
    MESSAGE,
    SCATTER,
    WAIT,
    WEIGHT,
    Operation,
)
from figgen.models.operations.tuned_layer import (
    ACTIVATION_BYTES,
    dense_operations,
    expert_operations,
    routed_operations,
)
from figgen.models.shape.model_shape import ModelShape
from figgen.models.step.attained import CORE_BACKWARD, Attained
from figgen.models.step.job import Job
from figgen.models.step.layer_time import (
    LayerSeconds,
    attention_core_s,
    routed_tokens,
    sorted_s,
)

BOTH = "forward and backward"
"""The phase of lines that cover both passes of a layer."""

LEAST = 1e-9
"""Lines below this share of a layer are rounding errors and are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOperation:
    """An operation with the FLOPs, least bytes and seconds of all its runs.

    `bound` says which peak of the chip's datasheet bounds it: "compute", "memory", or "" for
    messages and waits. A forward operation keeps `kept_bytes` until its input gradients are
    computed, and `kept_for_weights_bytes` until those of its weights are.
    """

    name: str
    kind: str
    phase: str
    flops: float
    moved_bytes: float
    time_s: float
    bound: str
    kept_bytes: float = 0.0
    kept_for_weights_bytes: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedJob:
    """A job of one layout whose layers are listed, and the peaks of its chip."""

    shape: ModelShape
    job: Job
    attained: Attained
    peak_flops_per_s: float
    peak_bytes_per_s: float


def layer_list(
    listed: ListedJob, layer: LayerSeconds, *, experts: bool
) -> tuple[TimedOperation, ...]:
    """Return the operations of a layer in running order; they add up to the seconds of `layer`.

    Input gradients run in reverse order; weight gradients are listed after them.
    """
    found = _kernels(listed, experts=experts)
    beside = _of_layout(listed, layer, found, experts=experts)
    found = _between(found, [one for one in beside if one.kind == ATTENTION], "output")
    found = _between(found, [one for one in beside if one.kind == SCATTER], "expert")
    found += [one for one in beside if one.kind not in (ATTENTION, SCATTER)]
    by_phase = [one for one in found if one.phase == FORWARD]
    by_phase += [one for phase in (BACKWARD, WEIGHT) for one in found[::-1] if one.phase == phase]
    waits = (
        ("tensor-parallel messages", MESSAGE, layer.tensor_s),
        ("context-parallel messages", MESSAGE, layer.context_s),
        ("tokens to experts and back", MESSAGE, layer.experts_s),
        ("tokens within experts", MESSAGE, layer.within_experts_s),
        ("computed again", WAIT, layer.repeated_s),
        ("waiting for the host", WAIT, layer.total_s - layer.copies_s - layer.device_s),
        ("activations to the host and back", COPY, layer.copies_s),
    )
    least_s = LEAST * layer.total_s
    rest = [lasting(name, kind, BOTH, seconds) for name, kind, seconds in waits]
    return tuple(one for one in (*by_phase, *rest) if one.time_s > least_s)


def _kernels(listed: ListedJob, *, experts: bool) -> list[TimedOperation]:
    """Return the kernels that depend only on the model, with their seconds."""
    job, shape = listed.job, listed.shape
    found = expert_operations if experts else dense_operations
    operations = found(shape, job.tokens, job.tp)
    if experts:
        routed = routed_operations(shape, routed_tokens(job))
        operations = (*operations[:-2], *routed, *operations[-2:])
    return [
        _timed(listed, one)
        for one in operations
        if not (one.phase == WEIGHT and job.frozen) and not (one.kind == CAST and not job.quantized)
    ]


def _between(
    found: list[TimedOperation], more: list[TimedOperation], before: str
) -> list[TimedOperation]:
    """Insert operations before the first whose name starts with `before`, or before its cast."""
    names = [one.name.removeprefix("cast of ") for one in found]
    place = next((at for at, name in enumerate(names) if name.startswith(before)), len(found))
    return [*found[:place], *more, *found[place:]]


def _of_layout(
    listed: ListedJob, layer: LayerSeconds, kernels: Sequence[TimedOperation], *, experts: bool
) -> list[TimedOperation]:
    """Return the operations that depend on the layout, with their seconds."""
    job, at = listed.job, listed.attained
    core_s = layer.attention_s / (1 + CORE_BACKWARD)
    # The start-up of tiles takes time but counts no FLOPs.
    busy_s = float(attention_core_s(job, replace(at, attention_start_keys=0.0)))
    core_bytes = ACTIVATION_BYTES * job.tokens * 2 * (job.attention_width + job.key_value_width)
    found = [
        placed(
            listed,
            "attention core",
            ATTENTION,
            phase,
            core_s * times,
            flops=busy_s * times * at.attention_flops_per_s,
            # Forward moves queries, keys, values and outputs; backward also moves their gradients.
            moved_bytes=core_bytes / job.tp * (1 if phase == FORWARD else 2),
        )
        for phase, times in ((FORWARD, 1.0), (BACKWARD, CORE_BACKWARD))
    ]
    sorts_s = sorted_s(job, at, routed_tokens(job)) if experts else 0.0
    for phase in (FORWARD, BACKWARD):
        moved = sorts_s * at.memory_bytes_per_s / at.permutation
        found.append(placed(listed, "sorting tokens", SCATTER, phase, sorts_s, moved_bytes=moved))
    matmuls = [one for one in kernels if one.kind in (MATMUL, GROUPED)]
    thin_s = max(0.0, layer.matmuls_s - sum(one.time_s for one in matmuls)) / 3
    weight_s = sum(one.time_s for one in matmuls if one.phase == WEIGHT) + thin_s
    summed_s = layer.weight_s - weight_s
    passes_s = sum(one.time_s for one in kernels) - sum(one.time_s for one in matmuls)
    beside_s = layer.memory_s - passes_s - 2 * sorts_s - summed_s
    found.append(
        placed(
            listed,
            "sum of gradients",
            CONTIGUOUS,
            WEIGHT,
            summed_s,
            moved_bytes=summed_s * at.memory_bytes_per_s,
        )
    )
    for phase in (FORWARD, BACKWARD, WEIGHT):
        flops = thin_s * at.matmul_flops_per_s
        found.append(placed(listed, "adapters", MATMUL, phase, thin_s, flops=flops))
    found.append(lasting("passes of adapters", CONTIGUOUS, BACKWARD, beside_s))
    return found


def _timed(listed: ListedJob, one: Operation) -> TimedOperation:
    """Return a kernel with its seconds at the rate of its kind."""
    at, flops = listed.attained, one.count * one.flops
    moved = one.count * one.moved_bytes
    if one.kind in (MATMUL, GROUPED):
        grouped = one.kind == GROUPED
        rate = at.expert_flops_per_s if grouped else at.matmul_flops_per_s
        seconds = flops / rate + one.count * at.matmul_start_s
        groups = listed.job.experts / listed.job.ep if grouped else 1.0
        moved = _matmul_bytes(one, groups)
    else:
        times = at.cast if one.kind == CAST else at.elementwise
        seconds = times * moved / at.memory_bytes_per_s
    return placed(listed, one.name, one.kind, one.phase, seconds, flops=flops, moved_bytes=moved)


def _matmul_bytes(one: Operation, groups: float) -> float:
    """Return the bytes of a 16-bit matmul that reads both operands and writes the result.

    A grouped matmul reads the weights of each of its groups.
    """
    rows, weights = one.m, one.n * one.k
    if one.phase == WEIGHT:
        rows, weights = one.k, one.m * one.n
    inner = one.m if one.phase == WEIGHT else one.k
    return ACTIVATION_BYTES * one.count * (rows * (one.n + inner) + groups * weights)


def placed(
    listed: ListedJob,
    name: str,
    kind: str,
    phase: str,
    time_s: float,
    *,
    flops: float = 0.0,
    moved_bytes: float = 0.0,
) -> TimedOperation:
    """Return an operation with its bound, "compute" or "memory", by the chip's datasheet."""
    least_s = moved_bytes / listed.peak_bytes_per_s
    bound = "compute" if flops / listed.peak_flops_per_s > least_s else "memory"
    return TimedOperation(
        name=name,
        kind=kind,
        phase=phase,
        flops=float(flops),
        moved_bytes=float(moved_bytes),
        time_s=float(time_s),
        bound=bound,
    )


def lasting(name: str, kind: str, phase: str, time_s: float) -> TimedOperation:
    """Return a line that takes time but counts no FLOPs or bytes."""
    return TimedOperation(
        name=name,
        kind=kind,
        phase=phase,
        flops=0.0,
        moved_bytes=0.0,
        time_s=float(time_s),
        bound="",
    )
