"""Seconds of a whole step in closed form, for one job or for arrays of jobs.

    total = M · slowest stage + filling · mean of the other stages + exposed sharding
            + messages between stages + exposed gradients + update
            + fixed cost of a step

The filling of a 1F1B pipeline with V chunks per rank is (P − 1)/V microbatches; for other schedules
it comes from the simulator. The slowest stage waits for the others only while the pipeline fills
and drains, unless the order of the schedule stalls them in every microbatch for longer than it
works. If ZeRO scatters gradients in every microbatch, each backward takes at least as long as the
scatter; if it also gathers weights, so do forward and backward. Unless it does both, gradients are
also summed once per step behind the last backward.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.equations.ops import Number, ceil, log2, maximum, minimum, where
from figgen.models.operations.tuned_layer import ACTIVATION_BYTES
from figgen.models.operations.update import adam, moved_bytes, tuned_update
from figgen.models.pipeline.filling import idle_times
from figgen.models.shape.adapters import PLAIN_BYTES
from figgen.models.step.attained import Attained
from figgen.models.step.head_time import head_passes, projection_passes
from figgen.models.step.host_copies import with_copies
from figgen.models.step.job import Job
from figgen.models.step.layer_time import (
    LayerSeconds,
    dense_layer,
    expert_layer,
    longer,
    waiting_s,
)
from figgen.models.step.pass_seconds import PassSeconds, added, split_of, times

UPDATE_BYTES, HOST_UPDATE_BYTES = moved_bytes(tuned_update(1)), moved_bytes(adam(1))
"""Least bytes per parameter that an update moves on the GPU and, if offloaded, on the host."""
TENSORS_PER_LAYER = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSeconds:
    """Parts of a step that add up to `total_s`; `dense` and `expert` are those of one layer.

    `head` includes the modules of multi-token prediction.
    """

    dense: LayerSeconds
    expert: LayerSeconds
    head: PassSeconds
    work_s: Number
    idle_s: Number
    sharding_s: Number
    stage_messages_s: Number
    gradients_s: Number
    update_s: Number
    straggling_s: Number
    fixed_s: Number

    @property
    def head_s(self) -> Number:
        """Forward and backward seconds of the head and the MTP modules."""
        return self.head.total_s

    @property
    def total_s(self) -> Number:
        """Seconds of the step."""
        return (
            self.work_s + self.idle_s + self.sharding_s + self.stage_messages_s
            + self.gradients_s + self.update_s + self.straggling_s + self.fixed_s
        )  # fmt: skip


def timed_step(job: Job, attained: Attained) -> StepSeconds:
    """Predict the step time of each job."""
    dense = with_copies(dense_layer(job, attained), job.away_dense, job, attained)
    expert = with_copies(expert_layer(job, attained), job.away_experts, job, attained)
    share = job.expert_layers / job.layers
    of_dense, of_expert = dense.passes, expert.passes
    mean_layer = added(times(of_dense, 1 - share), times(of_expert, share))
    routed = where(job.expert_layers > 0, 1, 0)
    one_more = added(times(of_dense, 1 - routed), times(of_expert, routed))
    one_more = added(one_more, projection_passes(job, attained))
    once = head_passes(job, attained)
    beside = added(once, times(added(once, one_more), job.mtp_layers))
    passes = added(times(mean_layer, job.layers), beside)
    # Most stages have layers only.
    filling, stalled = idle_times(job.idle, split_of(mean_layer))
    ahead = split_of(passes).forward
    layer, head = (1 - share) * dense.total_s + share * expert.total_s, beside.total_s
    whole = job.layers * layer + head
    slowest = maximum(job.fullest_layers * layer, job.head_layers * layer + head)
    mean, others = whole / job.pp, (whole - slowest) / maximum(1, job.pp - 1)
    hop = _hop_s(job, attained)
    work = job.microbatches * slowest
    stalling = maximum(0, (1 + stalled) * others - slowest)
    idle = filling * others + where(stalled > 0, job.microbatches * stalling, 0.0)
    # If only gradients are scattered, the last backward's count as summed once per step.
    waiting = job.microbatches - where(job.gathers > 0, 0, job.scatters)
    sharding = waiting * _sharding_s(job, attained, slowest, ahead)
    sharding = sharding + filling * _sharding_s(job, attained, mean, ahead)
    crossing = (job.microbatches + filling) * hop * job.chunks
    gradients = _gradients_s(job, attained, work)
    update = _update_s(job, attained)
    running = work + idle + sharding + crossing + gradients + update
    straggling = attained.straggling * log2(maximum(1, job.gpus / 8)) * running
    return StepSeconds(
        dense=dense,
        expert=expert,
        head=beside,
        work_s=work,
        idle_s=idle,
        sharding_s=sharding,
        stage_messages_s=crossing,
        gradients_s=gradients,
        update_s=update,
        straggling_s=straggling,
        fixed_s=attained.step_s,
    )


def _hop_s(job: Job, attained: Attained) -> Number:
    """Return how long a microbatch waits for its messages at one stage, forward and backward."""
    far = job.gpus / job.pp >= job.gpus_per_node
    rate = where(far, attained.network_bytes_per_s, attained.scale_up_bytes_per_s)
    sent = job.tokens * job.hidden * ACTIVATION_BYTES / job.tp
    alone = where(job.gpus > job.gpus_per_node, attained.hop_s, attained.near_hop_s)
    return where(
        job.pp > 1, 2 * (sent / rate * attained.exposed_pipeline + alone / job.chunks), 0.0
    )


def _data_rate(job: Job, attained: Attained) -> Number:
    """Return the bandwidth of a data-parallel ring; its ranks on a node combine their adapters."""
    near, far = attained.scale_up_bytes_per_s, attained.network_bytes_per_s
    together = maximum(1, minimum(job.gpus_per_node / job.tp, job.dp * job.cp))
    return where(job.gpus / job.pp > job.gpus_per_node, minimum(near, far * together), near)


def _sharded_s(job: Job, attained: Attained, held: Number) -> Number:
    """Return the seconds to reduce or gather `held` dense parameters once, at one byte each."""
    shards = job.dp * job.cp
    return held * (shards - 1) / shards / _data_rate(job, attained)


def trained(job: Job) -> Number:
    """Return the dense parameters that a GPU trains, before ZeRO shards them."""
    tuned = (
        job.layers - job.expert_layers
    ) * job.tuned_dense + job.expert_layers * job.tuned_experts
    return where(job.frozen > 0, tuned / job.pp, job.dense_parameters / (job.tp * job.pp))


def trained_routed(job: Job) -> Number:
    """Return the routed-expert parameters that a GPU trains, before ZeRO shards them."""
    tuned = job.expert_layers * job.tuned_routed / (job.ep * job.pp)
    return where(job.frozen > 0, tuned, job.routed_parameters / (job.ep * job.etp * job.pp))


def frozen_bytes(job: Job) -> Number:
    """Return the bytes of a GPU's frozen dense weights; tables and norms have 16 bits."""
    dense = (job.layers - job.expert_layers) * (job.attention_weights + job.dense_weights)
    experts = job.attention_weights + job.shared * job.expert_weights
    inner = dense + job.expert_layers * experts
    held = PLAIN_BYTES * (job.dense_parameters - inner) + job.frozen_bytes * inner
    return job.frozen * held / (job.tp * job.pp)


def frozen_routed_bytes(job: Job) -> Number:
    """Return the bytes of a GPU's frozen routed-expert weights."""
    held = job.routed_parameters / (job.ep * job.etp * job.pp)
    return job.frozen * job.frozen_bytes * held


def _latency_s(job: Job, attained: Attained) -> Number:
    far = job.gpus / job.pp > job.gpus_per_node
    alpha = where(far, attained.latency_s, attained.near_latency_s)
    return alpha * minimum(job.dp * job.cp, 64)


def _passed_s(job: Job, attained: Attained, dense_bytes: Number, routed_bytes: Number) -> Number:
    """Return the seconds of one gather or scatter of a stage's bytes."""
    dense = _sharded_s(job, attained, dense_bytes)
    routed = _sharded_experts_s(job, attained, routed_bytes)
    return dense + job.layers / job.pp * _latency_s(job, attained) + routed


def _sharding_s(job: Job, attained: Attained, compute_s: Number, forward_share: Number) -> Number:
    """Return the time that ZeRO adds to a microbatch of `compute_s`, forward and backward.

    Weights are prefetched one layer ahead, so a stage's first gather and last scatter are exposed,
    as in `figgen.models.algorithms.sharded_step`.
    """
    dense, routed = trained(job), trained_routed(job)
    gathered = dense * ACTIVATION_BYTES + frozen_bytes(job)
    gathered_routed = routed * ACTIVATION_BYTES + frozen_routed_bytes(job)
    gather = job.gathers / 2 * _passed_s(job, attained, gathered, gathered_routed)
    scatter = job.scatters * _passed_s(
        job, attained, dense * job.gradient_bytes, routed * job.gradient_bytes
    )
    forward = compute_s * forward_share
    backward = compute_s - forward
    ahead = longer(forward, gather) - forward
    behind = longer(backward, gather + scatter) - backward
    ends = minimum(forward, gather) + minimum(backward, gather + scatter)
    alone = where(job.gathers > 0, ends * job.chunks * job.pp / job.layers, 0.0)
    return where(job.overlapped > 0, ahead + behind + alone, 2 * gather + scatter)


def _gradients_s(job: Job, attained: Attained, compute_s: Number) -> Number:
    """Return the exposed time of gradients that are summed once per step; ZeRO sends two messages.

    The second gathers weights, for which the first forward may wait. A fitted share of what doesn't
    wait is exposed, and always what outlasts the step's `compute_s`. Published runs hide more than
    their last microbatch could at the rates that links attain here, so a tighter bound would
    contradict them (32B on 384 H100s: 39% too slow instead of 14%).
    """
    summed = job.gradient_bytes
    each = where(job.zero_stage == 0, 2 * summed, summed + ACTIVATION_BYTES)
    each = where(job.gathers > 0, 0, each)
    calls = where(job.gathers > 0, 0, 2)
    dense, stage_layers = _sharded_s(job, attained, trained(job)), ceil(job.layers / job.pp)
    sent, starting = dense * each, stage_layers * _latency_s(job, attained)
    once = sent + calls * starting
    shards = job.dp * job.cp
    near = where(job.gpus / job.pp > job.gpus_per_node, 1.0, 0.2)
    messages = 2 * (shards - 1) * TENSORS_PER_LAYER * stage_layers * near
    tensors = sent + messages * attained.scatter_latency_s
    experts = _sharded_experts_s(job, attained, trained_routed(job))
    routed = experts * each
    exposed = where(job.overlapped > 0, attained.exposed_data, 1.0)
    behind = where(job.overlapped > 0, compute_s, 0.0)
    alone = where(job.zero_stage > 0, calls / 2 * job.gathers_alone * job.overlapped, 0)
    gathered = alone * ((dense + experts) * ACTIVATION_BYTES + starting)
    waited = gathered + waiting_s(once + routed - gathered, behind, exposed)
    return where(job.per_tensor * job.zero_stage == 1, tensors + routed * exposed, waited)


def replicas(job: Job) -> Number:
    """Return the number of replicas of the parameters that have most."""
    return maximum(job.dp * job.cp, where(job.expert_layers > 0, _expert_replicas(job), 1))


def _expert_replicas(job: Job) -> Number:
    return maximum(1, job.gpus / (job.ep * job.etp * job.pp))


def _sharded_experts_s(job: Job, attained: Attained, held: Number) -> Number:
    """Return the seconds to reduce or gather `held` routed parameters once, at one byte each."""
    replicas, ways = _expert_replicas(job), job.ep * job.etp
    rate = where(ways >= job.gpus_per_node, attained.network_bytes_per_s, _data_rate(job, attained))
    return held * (replicas - 1) / replicas / rate


def updated_parameters(job: Job) -> Number:
    """Return the parameters that a GPU updates, its share where ZeRO divides state."""
    divided = job.zero_stage >= 1
    dense = trained(job) / where(divided, job.dp * job.cp, 1)
    return dense + trained_routed(job) / where(divided, _expert_replicas(job), 1)


def _update_s(job: Job, attained: Attained) -> Number:
    """Return the seconds of the update; `figgen.models.step.update_list` lists its operations."""
    held = updated_parameters(job)
    moved = held * attained.optimizer * UPDATE_BYTES / attained.memory_bytes_per_s
    return (1 - job.offloaded) * moved + _offloaded_s(job, attained, job.offloaded * held)


def _offloaded_s(job: Job, attained: Attained, held: Number) -> Number:
    """Return the seconds of the host update of `held` parameters per GPU, including its copies.

    Gradients go to the host, and weights of the same width come back. All processes of a node share
    its memory bandwidth.
    """
    copied = 2 * held * job.gradient_bytes / attained.host_link_bytes_per_s
    shared = HOST_UPDATE_BYTES * job.gpus_per_node / attained.host_bytes_per_s
    updated = held * maximum(attained.host_update_s, shared)
    return where(job.offload_overlapped > 0, maximum(copied, updated), copied + updated)
