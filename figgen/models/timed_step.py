"""Seconds of a whole step in closed form, for one job or for arrays of jobs.

    total = M · slowest stage + filling · mean stage + messages between stages
            + gradients that do not hide + the update + what every step costs

The filling of a pipeline is (P − 1)/V microbatches of 1F1B with V chunks a rank, and what the
simulator finds for other schedules. ZeRO-3 gathers and scatters
behind each microbatch's work; every other stage of ZeRO reduces once a step.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.formulas.ops import Number, ceil, log2, maximum, minimum, where
from figgen.models.attained import Attained
from figgen.models.job import Job
from figgen.models.layer_time import (
    ACTIVATION_BYTES,
    LayerSeconds,
    dense_layer,
    expert_layer,
    head_s,
    longer,
)

UPDATE_BYTES = 36
"""Bytes a parameter that an Adam step moves at least: FP32 gradient, two moments and the master
copy read (16), the last three written (12), a 16-bit weight written (2), the gradient cleared (4),
its norm read (2)."""
TENSORS_PER_LAYER = 9


@dataclass(frozen=True, slots=True)
class StepSeconds:
    """Parts of a step that add up to `total_s`; `dense` and `expert` are of one layer."""

    dense: LayerSeconds
    expert: LayerSeconds
    head_s: Number
    work_s: Number
    idle_s: Number
    stage_messages_s: Number
    gradients_s: Number
    update_s: Number
    straggling_s: Number
    fixed_s: Number

    @property
    def total_s(self) -> Number:
        """The step."""
        return (
            self.work_s + self.idle_s + self.stage_messages_s + self.gradients_s
            + self.update_s + self.straggling_s + self.fixed_s
        )  # fmt: skip


def timed_step(job: Job, attained: Attained) -> StepSeconds:
    """Predict a step of each job."""
    dense, expert = dense_layer(job, attained), expert_layer(job, attained)
    share = job.expert_layers / job.layers
    layer = (1 - share) * dense.total_s + share * expert.total_s
    head = head_s(job, attained)
    slowest = maximum(job.fullest_layers * layer, job.head_layers * layer + head)
    mean = (job.layers * layer + head) / job.pp
    hop = _hop_s(job, attained)
    gathered = _gathered_s(job, attained)
    work = job.microbatches * where(job.per_microbatch > 0, longer(slowest, gathered), slowest)
    crossing = (job.microbatches + job.filling) * hop * job.chunks
    gradients = where(job.per_microbatch > 0, 0.0, _gradients_s(job, attained))
    update = _update_s(job, attained)
    running = work + job.filling * mean + crossing + gradients + update
    straggling = attained.straggling * log2(maximum(1, job.gpus / 8)) * running
    return StepSeconds(
        dense, expert, head, work, job.filling * mean, crossing, gradients, update, straggling,
        attained.step_s,
    )  # fmt: skip


def _hop_s(job: Job, attained: Attained) -> Number:
    """What a microbatch waits for its messages at one stage, forward and backward."""
    far = job.gpus / job.pp >= job.gpus_per_node
    rate = where(far, attained.network_bytes_per_s, attained.scale_up_bytes_per_s)
    sent = job.tokens * job.hidden * ACTIVATION_BYTES / job.tp
    alone = where(job.gpus > job.gpus_per_node, attained.hop_s, attained.near_hop_s)
    return where(
        job.pp > 1, 2 * (sent / rate * attained.exposed_pipeline + alone / job.chunks), 0.0
    )


def _data_rate(job: Job, attained: Attained) -> Number:
    """Bandwidth of a data-parallel ring: its ranks on a node lend each other their adapters."""
    near, far = attained.scale_up_bytes_per_s, attained.network_bytes_per_s
    together = maximum(1, minimum(job.gpus_per_node / job.tp, job.dp * job.cp))
    return where(job.gpus / job.pp > job.gpus_per_node, minimum(near, far * together), near)


def _sharded_bytes(job: Job) -> tuple[Number, Number]:
    """Bytes of gradients and of 16-bit weights that a rank sends to scatter and to gather."""
    shards = job.dp * job.cp
    held = job.dense_parameters / (job.tp * job.pp) * (shards - 1) / shards
    gradient = where(job.per_microbatch > 0, 2, 4)
    return held * gradient, held * ACTIVATION_BYTES


def _latency_s(job: Job, attained: Attained) -> Number:
    far = job.gpus / job.pp > job.gpus_per_node
    alpha = where(far, attained.latency_s, attained.near_latency_s)
    return alpha * minimum(job.dp * job.cp, 64)


def _gathered_s(job: Job, attained: Attained) -> Number:
    """ZeRO-3 for one microbatch: weights gathered forward and backward, gradients scattered."""
    gradients, weights = _sharded_bytes(job)
    layers = job.layers / job.pp
    moved = (gradients + 2 * weights) / _data_rate(job, attained)
    return moved + 3 * layers * _latency_s(job, attained)


def _gradients_s(job: Job, attained: Attained) -> Number:
    """Once a step: all-reduce without ZeRO, else scatter and gather, less what hides."""
    gradients, weights = _sharded_bytes(job)
    rate, stage_layers = _data_rate(job, attained), ceil(job.layers / job.pp)
    sent = where(job.zero_stage == 0, 2 * gradients, gradients + weights)
    once = sent / rate + 2 * stage_layers * _latency_s(job, attained)
    shards = job.dp * job.cp
    near = where(job.gpus / job.pp > job.gpus_per_node, 1.0, 0.2)
    messages = 2 * (shards - 1) * TENSORS_PER_LAYER * stage_layers * near
    tensors = (gradients + weights) / rate + messages * attained.scatter_latency_s
    dense = where(job.per_tensor * job.zero_stage == 1, tensors, once * attained.exposed_data)
    return dense + _expert_gradients_s(job, attained) * attained.exposed_data


def _expert_replicas(job: Job) -> Number:
    return maximum(1, job.gpus / (job.ep * job.etp * job.pp))


def _expert_gradients_s(job: Job, attained: Attained) -> Number:
    replicas = _expert_replicas(job)
    held = job.routed_parameters / (job.ep * job.etp * job.pp)
    far = job.ep * job.etp >= job.gpus_per_node
    rate = where(far, attained.network_bytes_per_s, _data_rate(job, attained))
    return held * (4 + ACTIVATION_BYTES) * (replicas - 1) / replicas / rate


def _update_s(job: Job, attained: Attained) -> Number:
    """The optimizer over what a rank keeps of the state."""
    divided = job.zero_stage >= 1
    dense = job.dense_parameters / (job.tp * job.pp) / where(divided, job.dp * job.cp, 1)
    routed = job.routed_parameters / (job.ep * job.etp * job.pp)
    routed = routed / where(divided, _expert_replicas(job), 1)
    return (dense + routed) * attained.optimizer * UPDATE_BYTES / attained.memory_bytes_per_s
