"""The predicted time of a step, divided into parts for the pipeline rank with the most work.

`figgen.models.step.timed_step` predicts how long a step takes. This module divides that time into
the parts that `figgen.models.step.step` shows: computing, idle time, and exposed communication by
axis. Computing includes all kernels, waits for the host, the update, stragglers and the fixed cost
of a step; `KINDS` lists them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum, inf

from figgen.errors import InputError
from figgen.models.machine.cluster import Cluster
from figgen.models.setup.stage_layers import StageShare, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.job import Job
from figgen.models.step.layer_time import LayerSeconds
from figgen.models.step.layer_traffic import BOUNDARY
from figgen.models.step.pass_seconds import PassSeconds, added, times
from figgen.models.step.stage_time import StageTime, TimedTraffic, timed_traffic
from figgen.models.step.stage_work import stage_work
from figgen.models.step.step_links import CallTime
from figgen.models.step.step_rows import family_of, rank_rows
from figgen.models.step.timed_step import StepSeconds, replicas

RECOMPUTED, UPDATED = "recomputation", "update"

KINDS = (
    "matmuls", "attention", "elementwise", "head and loss", RECOMPUTED, "waiting for the host",
    UPDATED, "slowest GPU", "fixed cost",
)  # fmt: skip
"""Kinds of computing in a predicted step; `figgen.models.step.kind_formulas` has their formulas."""

LEAST_SHOWN = 1e-4
"""Kinds below this share of computing are not listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedParts:
    """Seconds of a predicted step, in parts that add up to `step_time_s`.

    `kinds` divides `computing_s` by the names of `KINDS`. `exposed` is the communication that
    delays the slowest pipeline rank, by axis. `dense_layer_s`, `expert_layer_s` and `head_s` are
    per microbatch; `dense`, `expert` and `head` are the passes of their computing. Messages take
    `call_factor` times as long as the datasheets of the links say.
    """

    dense_layer_s: float
    expert_layer_s: float
    head_s: float
    dense: PassSeconds
    expert: PassSeconds
    head: PassSeconds
    computing_s: float
    kinds: tuple[tuple[str, float], ...]
    bubble_s: float
    exposed: tuple[tuple[str, float], ...]
    step_time_s: float
    call_factor: float


def predicted_parts(job: Job, found: StepSeconds, call_factor: float = 1.0) -> PredictedParts:
    """Divide the step time `found` of one job into its parts."""
    share = job.expert_layers / job.layers
    each = (1 - share) * found.dense.total_s + share * found.expert.total_s
    beside_head = job.head_layers * each + found.head_s >= job.fullest_layers * each
    passes = job.microbatches * (job.head_layers if beside_head else job.fullest_layers)

    def waited(name: str, ranks: float) -> float:
        if ranks == 1:
            return 0.0
        dense, expert = float(getattr(found.dense, name)), float(getattr(found.expert, name))
        return float(passes * ((1 - share) * dense + share * expert))

    exposed = {
        "tp": waited("tensor_s", job.tp),
        "cp": waited("context_s", job.cp),
        "ep": waited("experts_s", job.ep),
        "etp": waited("within_experts_s", job.etp),
        "dp": float(found.sharding_s + found.gradients_s) if replicas(job) > 1 else 0.0,
        "pp": float(found.stage_messages_s) if job.pp > 1 else 0.0,
    }
    total_s, bubble_s = float(found.total_s), float(found.idle_s)
    computing_s = total_s - bubble_s - fsum(exposed.values())
    in_layers = [
        passes * ((1 - share) * dense + share * expert)
        for dense, expert in zip(_by_kind(found.dense), _by_kind(found.expert), strict=True)
    ]
    head_s = job.microbatches * found.head_s if beside_head else 0.0
    kinds = [
        *in_layers[:3], head_s, *in_layers[3:], float(found.update_s), float(found.straggling_s)
    ]  # fmt: skip
    kinds.append(max(0.0, computing_s - fsum(kinds)))
    return PredictedParts(
        dense_layer_s=float(found.dense.total_s),
        expert_layer_s=float(found.expert.total_s),
        head_s=float(found.head_s),
        dense=found.dense.computing,
        expert=found.expert.computing,
        head=found.head,
        computing_s=computing_s,
        kinds=tuple(zip(KINDS, kinds, strict=True)),
        bubble_s=bubble_s,
        exposed=tuple(exposed.items()),
        step_time_s=total_s,
        call_factor=call_factor,
    )


def _by_kind(layer: LayerSeconds) -> tuple[float, ...]:
    """Return the seconds of a layer by kind, without messages, in the order of `KINDS`."""
    return (
        float(layer.matmuls_s),
        float(layer.attention_s),
        float(layer.memory_s),
        float(layer.repeated_s),
        float(layer.total_s - layer.device_s),
    )


def computing_kinds(kinds: Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Return the kinds without recomputation and without negligible ones, longest first."""
    shown_s = LEAST_SHOWN * fsum(seconds for _, seconds in kinds)
    found = [(name, s) for name, s in kinds if name != RECOMPUTED and s > shown_s]
    return tuple(sorted(found, key=lambda kind: -kind[1]))


def computing_share(setup: TrainingSetup, cluster: Cluster, parts: PredictedParts) -> float:
    """Return the share of the dense peak that the longest rank reaches while it computes.

    Raises InputError if the computing time is too small or too large for floats to hold the share.
    """
    shares, work = virtual_stage_shares(setup), 0.0
    for stage in setup.placement.stages_of_rank(longest_rank(setup, parts)):
        once = stage_work(setup, shares[stage])
        whole = once.forward + once.recomputed + once.backward_input + once.backward_weight
        work += setup.microbatches_of_stage * whole
    peak = cluster.peak_flops_per_s * parts.computing_s
    if not 0 < peak < inf:
        raise InputError("computing time", expected="a share of the peak", got=parts.computing_s)
    return work / peak


def longest_rank(setup: TrainingSetup, parts: PredictedParts) -> int:
    """Return the pipeline rank with the most predicted work, the first of equals."""
    shares = virtual_stage_shares(setup)
    works = [
        fsum(_stage_s(shares[stage], parts) for stage in setup.placement.stages_of_rank(rank))
        for rank in range(setup.placement.ranks)
    ]
    return works.index(max(works))


def _stage_s(share: StageShare, parts: PredictedParts) -> float:
    """Return the seconds of one microbatch on a virtual stage.

    The head's time includes MTP modules.
    """
    dense, experts = layers_of(share)
    dense_s = dense * parts.dense_layer_s
    return dense_s + experts * parts.expert_layer_s + (parts.head_s if share.head else 0.0)


def layers_of(share: StageShare) -> tuple[int, int]:
    """Return the numbers of dense and expert layers, MTP modules excluded."""
    experts = max(0, share.expert_layers - share.mtp_layers)
    return share.layers - share.mtp_layers - experts, experts


def predicted_stages(
    setup: TrainingSetup, cluster: Cluster, parts: PredictedParts
) -> tuple[StageTime, ...]:
    """Return the stages with the passes of their layers and head, and their calls.

    On the longest rank, computing and recomputation take the time that `parts` gives. Time outside
    of any pass, such as the update, lengthens all passes in proportion.
    """
    passes = [_stage_passes(share, parts) for share in virtual_stage_shares(setup)]
    longest = setup.placement.stages_of_rank(longest_rank(setup, parts))
    again_s = setup.microbatches_of_stage * fsum(passes[stage].again_s for stage in longest)
    whole_s = setup.microbatches_of_stage * fsum(passes[stage].total_s for stage in longest)
    recompute_s = dict(parts.kinds)[RECOMPUTED]
    again = recompute_s / again_s if again_s else 0.0
    once = (parts.computing_s - recompute_s) / (whole_s - again_s)
    stages = tuple(
        StageTime(
            forward_s=once * one.forward_s,
            recomputed_s=again * one.again_s,
            backward_input_s=once * one.inputs_s,
            backward_weight_s=once * one.weights_s,
            traffic=timed_traffic(setup, stage, cluster),
        )
        for stage, one in enumerate(passes)
    )
    return _with_waits(setup, stages, parts)


def _stage_passes(share: StageShare, parts: PredictedParts) -> PassSeconds:
    """Return the passes of a microbatch's computing on a virtual stage."""
    dense, experts = layers_of(share)
    layers = added(times(parts.dense, dense), times(parts.expert, experts))
    return added(layers, parts.head) if share.head else layers


def _with_waits(
    setup: TrainingSetup, stages: Sequence[StageTime], parts: PredictedParts
) -> tuple[StageTime, ...]:
    """Return the stages with calls that expose the seconds in `parts.exposed` on the longest rank.

    A call takes at least as long as it is exposed.
    """
    if parts.call_factor != 1:
        stages = tuple(
            replace(
                stage, traffic=tuple(_longer(entry, parts.call_factor) for entry in stage.traffic)
            )
            for stage in stages
        )
    taken = dict.fromkeys(dict(parts.exposed), 0.0)
    for row in rank_rows(setup, stages, longest_rank(setup, parts)):
        taken[family_of(row.axis)] += row.time_s
    visible = {axis: s / taken[axis] if taken[axis] else 0.0 for axis, s in parts.exposed}
    return tuple(
        replace(stage, traffic=tuple(_waited(entry, visible) for entry in stage.traffic))
        for stage in stages
    )


def _waited(entry: TimedTraffic, visible: dict[str, float]) -> TimedTraffic:
    share = visible[family_of(entry.traffic.axis)]
    longer = max(1.0, share)
    call = CallTime(longer * entry.call.bytes_s, longer * entry.call.latency_s)
    exposed_s = 0.0 if entry.traffic.purpose == BOUNDARY else share * entry.time_s
    return TimedTraffic(entry.traffic, entry.link, call, exposed_s)


def stretched(stages: Sequence[StageTime], factor: float) -> tuple[StageTime, ...]:
    """Return the stages with all times multiplied by `factor`."""
    return tuple(
        StageTime(
            factor * stage.forward_s,
            factor * stage.recomputed_s,
            factor * stage.backward_input_s,
            factor * stage.backward_weight_s,
            tuple(_longer(entry, factor) for entry in stage.traffic),
        )
        for stage in stages
    )


def _longer(entry: TimedTraffic, factor: float) -> TimedTraffic:
    call = CallTime(factor * entry.call.bytes_s, factor * entry.call.latency_s)
    return TimedTraffic(entry.traffic, entry.link, call, factor * entry.exposed_s)
