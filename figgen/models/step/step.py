"""Time of a training step: computing, exposed communication and idle time.

With a prediction, the step takes the time that `figgen.models.step.timed_step` gives, divided by
`figgen.models.step.predicted_parts`. Without one, links reach their datasheet bandwidth and matmuls
a given share of the dense peak; the times of every virtual stage, with the communication that each
forward and backward exposes, go through the simulator of pipeline schedules. Gradients and weights
that move once per step are added where they outlast the schedule. The optimizer's update, the loss,
data loading, congestion and slow GPUs are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum

from figgen.errors import check_share
from figgen.models.machine.cluster import Cluster
from figgen.models.pipeline.simulate import Durations, Trace, simulate
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.compute import MFU_CONVENTION, training_flops_per_token, utilisation
from figgen.models.step.data_traffic import TIED
from figgen.models.step.predicted_parts import (
    RECOMPUTED,
    PredictedParts,
    longest_rank,
    predicted_stages,
    stretched,
)
from figgen.models.step.stage_time import (
    StageTime,
    TimedTraffic,
    bucketed_exposed_s,
    overlaps,
    stage_times,
)
from figgen.models.step.stage_work import repeated_flops_per_token, unneeded_flops_per_token
from figgen.models.step.step_rows import (
    CommunicationRow,
    family_of,
    rank_rows,
    scaled,
    shared,
)
from figgen.models.step.step_traffic import BACKWARD, END, FORWARD, START

AS_PUBLISHED = "as much as published runs wait for it"
"""The overlap rule of communication in a predicted step, in words."""

ROUNDING = 1e-12
"""Differences below this share of a step are rounding errors of summing in a different order."""


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """A step in seconds, divided into parts that add up to it.

    `bottleneck` is the pipeline rank that works longest; `compute_s`, `recompute_s` and `rows` are
    its own. `kinds` divides the computing of a predicted step, recomputation included, by kind of
    kernel or wait. `bubble_s` is its idle time if messages took no time. `exposed` is, by axis, the
    time in which it waits for messages and computes nothing: within its microbatches, between
    stages, and before and after the schedule. `rows` lists the calls.
    """

    setup: TrainingSetup
    bottleneck: int
    compute_s: float
    recompute_s: float
    kinds: tuple[tuple[str, float], ...]
    bubble_s: float
    exposed: tuple[tuple[str, float], ...]
    rows: tuple[CommunicationRow, ...]
    step_time_s: float
    model_flops_utilisation: float

    @property
    def tokens_per_s_per_gpu(self) -> float:
        """Throughput of one GPU, tokens/s."""
        return self.setup.tokens_per_step / self.step_time_s / self.setup.parallel.world_size

    @property
    def hardware_flops_utilisation(self) -> float:
        """HFU: the MFU plus the FLOPs that this setup recomputes, with all of attention in both.

        Source: Korthikanti et al. 2022, arXiv:2205.05198, section 6. Their printed values count the
        backward of the recomputed core too; this one does not.
        """
        setup = self.setup
        model = training_flops_per_token(
            setup.shape, sequence=setup.sequence, documents=setup.document_tokens
        )
        model -= unneeded_flops_per_token(setup)
        return self.model_flops_utilisation * (1 + repeated_flops_per_token(setup) / model)

    @property
    def exposed_s(self) -> float:
        """All exposed communication, s."""
        return fsum(seconds for _, seconds in self.exposed)

    @property
    def bubble_fraction(self) -> float:
        """Idle share of the bottleneck's wall time."""
        return self.bubble_s / self.step_time_s

    @property
    def bubble_overhead(self) -> float:
        """Idle time of the bottleneck over its computing time."""
        return self.bubble_s / (self.compute_s + self.recompute_s)


def step(
    setup: TrainingSetup,
    cluster: Cluster,
    *,
    compute_efficiency: float = 0.5,
    predicted: PredictedParts | None = None,
) -> StepEstimate:
    """Return the parts of a step of `setup` on `cluster`; MFU follows `MFU_CONVENTION`.

    With a prediction the step takes the `predicted` time. Without one, matmuls reach the share
    `compute_efficiency` of the peak. Raises InputError for a share outside 0 … 1.
    """
    if predicted is None:
        check_share("compute_efficiency", compute_efficiency)
    if predicted is not None:
        return _as_predicted(setup, cluster, predicted)
    stages = stage_times(setup, cluster, compute_efficiency)
    at_once = simulate(setup.order, durations(setup, stages, delay_s=0.0))
    delay_s = hop_s(stages)
    trace = simulate(setup.order, durations(setup, stages, delay_s)) if delay_s else at_once
    rank = _busiest(at_once.busy)
    compute_s, recompute_s = _work(setup, stages, rank)
    rows = _within_microbatches(setup, stages, rank, at_once.busy[rank] - compute_s - recompute_s)
    before_s, after_s = outlasting(setup, stages, trace)
    messages_s = trace.makespan - at_once.makespan
    exposed = _by_axis(rows)
    idle_s = at_once.makespan - compute_s - recompute_s - fsum(exposed.values())
    bubble_s = idle_s if abs(idle_s) > ROUNDING * at_once.makespan else 0.0
    exposed["dp"] += before_s + after_s
    exposed["pp"] += messages_s
    rows = shared(rows, [row.when == START for row in rows], before_s)
    rows = shared(rows, [row.when == END for row in rows], after_s)
    rows = shared(rows, [row.axis == "pp" for row in rows], messages_s)
    step_time_s = before_s + trace.makespan + after_s
    return StepEstimate(
        setup=setup,
        bottleneck=rank,
        compute_s=compute_s,
        recompute_s=recompute_s,
        kinds=(),
        bubble_s=bubble_s,
        exposed=tuple(exposed.items()),
        rows=rows,
        step_time_s=step_time_s,
        model_flops_utilisation=_utilisation(setup, cluster, step_time_s),
    )


def _as_predicted(setup: TrainingSetup, cluster: Cluster, parts: PredictedParts) -> StepEstimate:
    """Return the predicted step with the calls of the rank that works longest."""
    rank = longest_rank(setup, parts)
    recompute_s = dict(parts.kinds)[RECOMPUTED]
    found = rank_rows(setup, predicted_stages(setup, cluster, parts), rank)
    rows = tuple(replace(row, exposed_s=0.0, rule=AS_PUBLISHED) for row in found)
    for axis, seconds in parts.exposed:
        rows = shared(rows, [family_of(row.axis) == axis for row in rows], seconds)
    return StepEstimate(
        setup=setup,
        bottleneck=rank,
        compute_s=parts.computing_s - recompute_s,
        recompute_s=recompute_s,
        kinds=parts.kinds,
        bubble_s=parts.bubble_s,
        exposed=parts.exposed,
        rows=rows,
        step_time_s=parts.step_time_s,
        model_flops_utilisation=_utilisation(setup, cluster, parts.step_time_s),
    )


def step_stages(
    setup: TrainingSetup,
    cluster: Cluster,
    compute_efficiency: float,
    predicted: PredictedParts | None = None,
) -> tuple[StageTime, ...]:
    """Return the times of all virtual stages, which add up to the step when they are simulated.

    If stages differ or the backward is split, the closed form of a prediction idles slightly more
    or less than the simulator; all times are then scaled alike to the `predicted` step.
    """
    if predicted is None:
        return stage_times(setup, cluster, compute_efficiency)
    stages = predicted_stages(setup, cluster, predicted)
    trace, before_s, after_s = carried_out(setup, stages)
    return stretched(stages, predicted.step_time_s / (before_s + trace.makespan + after_s))


def carried_out(setup: TrainingSetup, stages: Sequence[StageTime]) -> tuple[Trace, float, float]:
    """Return the trace of a step, and the seconds before and after it, by `outlasting`."""
    trace = simulate(setup.order, durations(setup, stages, hop_s(stages)))
    return (trace, *outlasting(setup, stages, trace))


def _busiest(busy: Sequence[float]) -> int:
    """Return the first rank that works longest, ignoring differences of rounding."""
    longest = max(busy) * (1 - 1e-9)
    return next(rank for rank, busy_s in enumerate(busy) if busy_s >= longest)


def _within_microbatches(
    setup: TrainingSetup, stages: Sequence[StageTime], rank: int, added_s: float
) -> tuple[CommunicationRow, ...]:
    """Return the rows of `rank` with the `added_s` seconds that its microbatches expose.

    The forward-backward pairs of DualPipe hide some communication. Only the simulation tells how
    much, and the rows share it in proportion.
    """
    rows = rank_rows(setup, stages, rank)
    nominal = fsum(row.exposed_s for row in rows)
    if setup.overlaps and nominal:
        return scaled(rows, added_s / nominal)
    return rows


def _utilisation(setup: TrainingSetup, cluster: Cluster, step_time_s: float) -> float:
    rate = setup.tokens_per_step / step_time_s / setup.parallel.world_size
    return needed_utilisation(
        setup, tokens_per_s_per_gpu=rate, peak_flops_per_s=cluster.peak_flops_per_s
    )


def needed_utilisation(
    setup: TrainingSetup,
    convention: str = MFU_CONVENTION,
    *,
    tokens_per_s_per_gpu: float,
    peak_flops_per_s: float,
) -> float:
    """Return MFU or HFU without gradients of frozen weights and with adapters.

    Raises InputError for a convention that does not cover the model.
    """
    found = utilisation(
        setup.shape,
        convention,
        tokens_per_s_per_gpu=tokens_per_s_per_gpu,
        peak_flops_per_s=peak_flops_per_s,
        sequence=setup.sequence,
        documents=setup.document_tokens,
    )
    return found - tokens_per_s_per_gpu * unneeded_flops_per_token(setup) / peak_flops_per_s


def durations(setup: TrainingSetup, stages: Sequence[StageTime], delay_s: float) -> Durations:
    """Return the simulator's times: computing plus the communication that each pass exposes."""
    forward = tuple(stage.forward_s + stage.exposed_s(FORWARD) for stage in stages)
    inputs = tuple(
        stage.recomputed_s + stage.backward_input_s + stage.exposed_s(BACKWARD) for stage in stages
    )
    weights = tuple(stage.backward_weight_s for stage in stages)
    if not setup.overlaps:
        return Durations(
            forward=forward, backward_input=inputs, backward_weight=weights, latency=delay_s
        )
    pairs = []
    for stage in range(len(stages)):
        behind = setup.placement.beside(stage)
        # Added in the simulator's order, so that rounding makes no pair shorter than its half.
        halves = forward[stage], inputs[behind] + weights[behind]
        pairs.append(max(*halves, *_pair_s(stages[stage], stages[behind])))
    return Durations(
        forward=forward,
        backward_input=inputs,
        backward_weight=weights,
        latency=delay_s,
        overlapped_pair=tuple(pairs),
    )


def _pair_s(forward: StageTime, backward: StageTime) -> tuple[float, float]:
    """Return the computing and the sending time of a forward and a backward that overlap.

    Each computes while the other sends.
    """
    compute = forward.forward_s + backward.backward_s
    return compute, forward.exposed_s(FORWARD) + backward.exposed_s(BACKWARD)


def hop_s(stages: Sequence[StageTime]) -> float:
    """Return the delay of a message between pipeline ranks, s."""
    return max(
        (e.call.total_s for stage in stages for e in stage.traffic if e.traffic.axis == "pp"),
        default=0.0,
    )


def _work(setup: TrainingSetup, stages: Sequence[StageTime], rank: int) -> tuple[float, float]:
    """Return the seconds per step that a pipeline rank computes and recomputes."""
    compute = again = 0.0
    for index in setup.placement.stages_of_rank(rank):
        stage, passing = stages[index], setup.microbatches_of_stage
        compute += passing * (stage.forward_s + stage.backward_input_s + stage.backward_weight_s)
        again += passing * stage.recomputed_s
    return compute, again


def _by_axis(rows: Sequence[CommunicationRow]) -> dict[str, float]:
    """Return the exposed seconds by axis."""
    found = dict.fromkeys(("tp", "cp", "ep", "etp", "dp", "pp"), 0.0)
    for row in rows:
        found[family_of(row.axis)] += row.exposed_s
    return found


def outlasting(
    setup: TrainingSetup, stages: Sequence[StageTime], trace: Trace
) -> tuple[float, float]:
    """Return the seconds by which weights delay the first forward and gradients the step's end.

    A rank that starts late or ends early has that much more time before it delays the others.
    """
    before, after = list[float](), list[float]()
    for rank, (starts, ends) in enumerate(zip(trace.starts, trace.ends, strict=True)):
        mine = [stages[stage] for stage in setup.placement.stages_of_rank(rank)]
        entries = [entry for stage in mine for entry in stage.traffic]
        weights = [entry for entry in entries if entry.traffic.phase == START]
        forward = fsum(stage.forward_s + stage.exposed_s(FORWARD) for stage in mine)
        before.append(once_exposed_s(setup, weights, forward) - starts[0])
        gradients = [entry for entry in entries if entry.traffic.phase == END]
        backward = fsum(stage.backward_s + stage.exposed_s(BACKWARD) for stage in mine)
        after.append(ends[-1] + once_exposed_s(setup, gradients, backward) - trace.makespan)
    # Neither is negative, since some rank starts at once and some rank ends last.
    return max(before), max(after)


def once_exposed_s(
    setup: TrainingSetup, entries: Sequence[TimedTraffic], compute_s: float
) -> float:
    """Return the time that calls once per step add to the forward or backward that can hide them.

    If a prediction has set their exposed time, the result is that time.
    """
    if known_s := fsum(entry.exposed_s for entry in entries):
        return known_s
    tied = fsum(entry.time_s for entry in entries if entry.traffic.purpose == TIED)
    bucketed = [entry for entry in entries if entry.traffic.purpose != TIED]
    if not all(overlaps(setup, entry.traffic) for entry in bucketed):
        return tied + fsum(entry.time_s for entry in bucketed)
    return tied + bucketed_exposed_s(bucketed, compute_s)
