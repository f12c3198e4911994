"""Seconds of the head with its loss, and of the projections for multi-token prediction."""

from __future__ import annotations

from figgen.equations.ops import floor, where
from figgen.models.operations.tuned_layer import BACKWARD_PASSES
from figgen.models.step.attained import Attained
from figgen.models.step.job import Job
from figgen.models.step.layer_time import phase_s
from figgen.models.step.pass_seconds import PassSeconds

ALIGNMENT = 8
"""Tensor cores need widths in 16 bits that are multiples of this."""


def head_passes(job: Job, attained: Attained) -> PassSeconds:
    """Return the seconds of the head, a 16-bit matmul, and of the loss on FP32 logits.

    A frozen head computes no weight gradients.
    """
    tokens, work = job.tokens / job.tp, job.head_work
    aligned = job.vocab - ALIGNMENT * floor(job.vocab / ALIGNMENT) == 0
    rate = attained.plain_flops_per_s * where(aligned, 1.0, attained.unaligned_share)
    lost = loss_s(job, attained)
    forward = phase_s(work.forward, job, attained, tokens, rate).matmuls_s
    inputs = phase_s(work.backward, job, attained, tokens, rate).matmuls_s
    weights = phase_s(work.weight, job, attained, tokens, rate).matmuls_s
    return PassSeconds(
        forward_s=forward + lost.forward_s,
        again_s=0.0,
        inputs_s=inputs + lost.inputs_s,
        weights_s=(1 - job.frozen) * weights,
    )


def loss_s(job: Job, attained: Attained) -> PassSeconds:
    """Return the seconds of the loss, which reads and writes FP32 logits."""
    logits = job.tokens / job.tp * job.vocab
    lost = logits * attained.loss_bytes / attained.memory_bytes_per_s
    ahead = lost / (1 + BACKWARD_PASSES)
    return PassSeconds(forward_s=ahead, again_s=0.0, inputs_s=lost - ahead, weights_s=0.0)


def projection_passes(job: Job, attained: Attained) -> PassSeconds:
    """Return the seconds in which an MTP module projects two hidden states to one."""
    each = 4 * job.tokens * job.hidden**2 / job.tp / attained.matmul_flops_per_s
    started = each + attained.matmul_start_s
    return PassSeconds(
        forward_s=started, again_s=job.repeats_layer * each, inputs_s=started, weights_s=started
    )
