"""The kernels of each pass of a predicted step: those of its lists of operations, in running order.

A pass takes longer than its kernels where the host or the slowest GPU makes it wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from figgen.models.operations.operation import (
    ATTENTION,
    BACKWARD,
    CAST,
    FORWARD,
    MATMUL,
    SOFTMAX,
    WEIGHT,
)
from figgen.models.setup.stage_layers import StageShare
from figgen.models.shape.model_shape import ModelShape
from figgen.models.step.attained import Attained
from figgen.models.step.head_time import head_passes, loss_s, projection_passes
from figgen.models.step.job import Job
from figgen.models.step.layer_list import ListedJob, TimedOperation, layer_list
from figgen.models.step.predicted_parts import layers_of
from figgen.models.step.timed_step import StepSeconds
from figgen.models.step.update_list import update_list

REPEATED = "recomputation"
"""The pass of forward's kernels that backward repeats."""


@dataclass(frozen=True, slots=True)
class PassKernel:
    """A kernel of a list: its name, the kind of its operation, and the seconds of its runs."""

    name: str
    kind: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepKernels:
    """The kernels of one layer of each kind and of the head, by pass, and those of the update."""

    dense: dict[str, tuple[PassKernel, ...]]
    expert: dict[str, tuple[PassKernel, ...]]
    head: dict[str, tuple[PassKernel, ...]]
    update: tuple[PassKernel, ...]

    @property
    def most(self) -> int:
        """Number of kernels of all passes of the layer that has most."""
        each = [sum([len(found) for found in one.values()]) for one in (self.dense, self.expert)]
        return max(each)

    def of_stage(self, share: StageShare, phase: str, *, apart: bool) -> tuple[PassKernel, ...]:
        """Return the kernels of one pass of a microbatch on a virtual stage.

        If they are not `apart`, the runs of all layers of a kind are one kernel.
        """
        dense, experts = layers_of(share)
        found: list[PassKernel] = []
        for layers, each in ((dense, self.dense[phase]), (experts, self.expert[phase])):
            if apart:
                for _ in range(layers):
                    found += each
            elif layers:
                found += [PassKernel(one.name, one.kind, layers * one.seconds) for one in each]
        ends = self.head[phase] if share.head else ()
        return (*found, *ends) if phase == FORWARD else (*ends, *found)


def step_kernels(
    shape: ModelShape, job: Job, attained: Attained, found: StepSeconds
) -> StepKernels:
    """Return the kernels of the predicted step `found` of a job on a model."""
    # A trace does not show what bounds a kernel, so that any peaks do.
    listed = ListedJob(
        shape=shape,
        job=job,
        attained=attained,
        peak_flops_per_s=float(attained.matmul_flops_per_s),
        peak_bytes_per_s=float(attained.memory_bytes_per_s),
    )
    dense = _layer(job, layer_list(listed, found.dense, experts=False))
    expert = dense
    if job.expert_layers:
        expert = _layer(job, layer_list(listed, found.expert, experts=True))
    update = update_list(listed, found)
    return StepKernels(
        dense=dense,
        expert=expert,
        head=_head(job, attained, expert),
        update=tuple(_kernel(one) for one in update if one.moved_bytes),
    )


def _kernel(one: TimedOperation) -> PassKernel:
    return PassKernel(one.name, one.kind, one.time_s)


def _layer(job: Job, found: Sequence[TimedOperation]) -> dict[str, tuple[PassKernel, ...]]:
    """Return the kernels of a layer by pass; recomputation repeats a share of those of forward."""
    passes = {
        phase: tuple(_kernel(one) for one in found if one.phase == phase)
        for phase in (FORWARD, BACKWARD, WEIGHT)
    }
    again: list[PassKernel] = []
    for one in passes[FORWARD]:
        share = float(job.repeats_layer) if one.kind != CAST else 0.0
        share += float(job.repeats_core) if one.kind == ATTENTION else 0.0
        if share:
            again.append(PassKernel(one.name, one.kind, share * one.seconds))
    passes[REPEATED] = tuple(again)
    return passes


def _head(
    job: Job, attained: Attained, layer: dict[str, tuple[PassKernel, ...]]
) -> dict[str, tuple[PassKernel, ...]]:
    """Return the kernels of the head and the loss, after those of the MTP modules."""
    once, lost = head_passes(job, attained), loss_s(job, attained)
    whole = projection_passes(job, attained)
    seconds = {
        FORWARD: (once.forward_s - lost.forward_s, lost.forward_s, whole.forward_s),
        REPEATED: (0.0, 0.0, whole.again_s),
        BACKWARD: (once.inputs_s - lost.inputs_s, lost.inputs_s, whole.inputs_s),
        WEIGHT: (once.weights_s, 0.0, whole.weights_s),
    }
    found: dict[str, tuple[PassKernel, ...]] = {}
    for phase, (head_s, loss, projection_s) in seconds.items():
        ends = (PassKernel("head", MATMUL, float(head_s)), PassKernel("loss", SOFTMAX, float(loss)))
        module = (PassKernel("projection", MATMUL, float(projection_s)), *layer[phase], *ends)
        kernels = (*(module * int(job.mtp_layers)), *ends)
        found[phase] = tuple(one for one in kernels if one.seconds)
    return found
