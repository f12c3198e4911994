"""Schedules that split the backward pass or run in two directions: gains and costs."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Bars, Column, Curves, Named, Scalar, Table
from figgen.figures.parameters import ModelName, ScheduleName
from figgen.figures.pipeline.timelines import check_drawn
from figgen.models.pipeline.schedules import SCHEDULES, TITLES, Schedule, build
from figgen.models.pipeline.simulate import Durations, Trace, simulate
from figgen.models.setup.stage_layers import virtual_stage_shares
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.transformer import dense_layer_weights
from figgen.models.step.attained import CORE_BACKWARD
from figgen.models.step.stage_work import stage_work
from figgen.models.step.step import step
from figgen.plotting.placed import headings
from figgen.plotting.series import line, segments
from figgen.plotting.step_bars import step_bars, step_parts
from figgen.plotting.words import identifier
from figgen.registry import figure
from figgen.scenarios.options.resolve import TrainingStep, training_step


# Two figures of a page ask for the same dozen.
@lru_cache(maxsize=32)
def split_trace(
    schedule: ScheduleName,
    stages: int,
    microbatches: int,
    times: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> Trace:
    """Return the simulated schedule, given a rank's forward and both parts of its backward."""
    check_drawn(stages, microbatches)
    order = build(schedule, stages=stages, microbatches=microbatches)
    forward, backward_input, backward_weight = times
    durations = Durations(
        forward=forward, backward_input=backward_input, backward_weight=backward_weight
    )
    return simulate(order, durations.per_chunk(order.placement.chunks))


def messages(schedule: Schedule) -> int:
    """Return the activations and gradients sent between ranks per step."""
    placement = schedule.placement
    holder, sent = placement.rank_of_stage, 0
    for order in schedule.orders:
        for action in order:
            stage = action.stage
            if action.kind == "F" and not placement.is_last(stage):
                sent += holder[stage + 1] != holder[stage]
            if action.kind in ("B", "I") and not placement.is_first(stage):
                sent += holder[stage - 1] != holder[stage]
    return sent


def _known(schedules: tuple[str, ...]) -> tuple[str, ...]:
    return schedules or tuple(SCHEDULES)


@figure("schedule-table")
def schedule_table(
    *, stages: int = 8, microbatches: int = 32, schedules: tuple[str, ...] = ()
) -> Table:
    """Every schedule at the same P and M: idle share, peak, parameters held, messages.

    F, I and W take one unit each. Two or more chunks on a rank are counted together.
    """
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"stages": Named(stages), "microbatches": Named(microbatches)}
    for name in _known(schedules):
        trace = split_trace(name, stages, microbatches)
        placement = trace.schedule.placement
        row = (
            trace.bubble_fraction,
            trace.bubble_overhead,
            trace.bubble_fraction_without_flush,
            max(trace.peak_in_flight),
            placement.pipes,
            messages(trace.schedule) / microbatches,
        )
        rows.append((TITLES[name], placement.chunks, *row))
        said = ("idle", "overhead", "open", "peak", "copies", "messages")
        values |= {
            f"{identifier(name)}_{what}": Named(x) for what, x in zip(said, row, strict=True)
        }
    columns = (
        *headings("schedule", "chunks V"),
        *headings("idle", "overhead", "idle, no flush", spec=".1%"),
        Column(label="peak in flight", spec="g"),
        Column(label="weights held"),
        Column(label="messages per microbatch", spec="g"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


COMPARED = (
    "gpipe", "looped-bfs", "interleaved-1f1b", "zb1p", "zb2p", "zbv", "v-half", "v-min",
    "dualpipe", "dualpipev",
)  # fmt: skip
"""Measures that are compared with 1F1B."""


@figure("schedule-frontier", explorable=True, recomputed=True)
def schedule_frontier(*, stages: int = 8, microbatches: int = 32) -> Bars:
    """Idle share and peak in flight side by side, both relative to 1F1B."""
    reference = split_trace("1f1b", stages, microbatches)
    labels, idle, peak = [], [], []
    values: dict[str, Named] = {"stages": Named(stages), "microbatches": Named(microbatches)}
    for name in COMPARED:
        trace = split_trace(name, stages, microbatches)
        labels.append(TITLES[name])
        idle.append(trace.bubble_fraction / reference.bubble_fraction)
        peak.append(max(trace.peak_in_flight) / max(reference.peak_in_flight))
        values |= {
            f"{identifier(name)}_idle": Named(idle[-1]),
            f"{identifier(name)}_peak": Named(peak[-1]),
        }
    return Bars(
        labels=tuple(labels),
        segments=segments({"idle share": idle, "activations": peak}, ("idle", "series-1")),
        axis=Axis(label="as a multiple of 1F1B's", low=0.0, spec=".2f"),
        stacked=False,
        values=values,
    )


def layer_parts(shape: ModelShape, sequence: int) -> tuple[float, float, float]:
    """Return the FLOPs per token of F, I and W in a dense layer, masked attention skipped.

    Raises InputError for a mixture of experts, whose layers differ.
    """
    weights, core = 2 * dense_layer_weights(shape), 2 * sequence * shape.attention_width
    return weights + core, weights + CORE_BACKWARD * core, weights


@figure("backward-parts")
def backward_parts(*, model: str, sequences: tuple[int, ...]) -> Table:
    """F, I and W of one layer relative to W, by sequence length; attention's backward is all I."""
    shape = catalog_model(model).shape
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for sequence in sequences:
        parts = layer_parts(shape, sequence)
        ratios = tuple(part / parts[2] for part in parts)
        share = parts[2] / (parts[1] + parts[2])
        rows.append((sequence, *ratios, share))
        values |= {f"input_{sequence}": Named(ratios[1]), f"share_{sequence}": Named(share)}
    columns = (
        Column(label="sequence", spec=","),
        *headings("F / W", "I / W", "W / W", spec=".2f"),
        Column(label="W in the backward", spec=".0%"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("idle-by-sequence", explorable=True, recomputed=True)
def idle_by_sequence(
    *,
    model: ModelName,
    sequences: tuple[int, ...],
    schedules: tuple[ScheduleName, ...],
    stages: int = 8,
    microbatches: int = 32,
) -> Curves:
    """bubble_fraction over the sequence length, with the durations of a dense layer."""
    shape = catalog_model(model).shape
    series = []
    values: dict[str, Named] = {}
    for index, name in enumerate(schedules):
        idle = []
        for sequence in sequences:
            times = layer_parts(shape, sequence)
            whole = sum(times)
            parts = (times[0] / whole, times[1] / whole, times[2] / whole)
            idle.append(split_trace(name, stages, microbatches, parts).bubble_fraction)
        series.append(line(TITLES[name], map(float, sequences), idle, index))
        values |= {
            f"{identifier(name)}_first": Named(idle[0]),
            f"{identifier(name)}_last": Named(idle[-1]),
        }
    return Curves(
        x=Axis(label="tokens of a sequence", scale="log2", spec=","),
        y=Axis(label="bubble_fraction", low=0.0, spec=".0%"),
        series=tuple(series),
        values=values,
    )


@figure("schedule-steps", explorable=True)
def schedule_steps(
    *, run: str, schedules: tuple[str, ...], layers_per_stage: tuple[int, ...] = ()
) -> Bars:
    """The step of a published run under other schedules: computing, idle, exposed messages.

    Computing is only the run's kernels; hosts, the update and slow GPUs add to it.
    `layers_per_stage` adds the last schedule with its layers cut so.
    """
    steps: list[dict[str, float]] = []
    usual = training_step(run=run)
    share = _kernels_share(usual)
    values: dict[str, Named] = {}
    shown: list[tuple[str, str, dict[str, Any]]] = [
        (TITLES[name], identifier(name), {"schedule": name}) for name in schedules
    ]
    if layers_per_stage:
        title, key, last = shown[-1]
        recut = last | {"layers_per_stage": layers_per_stage}
        shown.append((f"{title}, recut", f"{key}_recut", recut))
    for _, key, options in shown:
        found = training_step(run=run, **options)
        estimate = step(found.setup, found.cluster, compute_efficiency=share)
        named = step_parts(estimate)
        steps.append(named)
        values |= {
            f"{key}_step": Named(estimate.step_time_s, "s"),
            f"{key}_bubble": Named(estimate.bubble_s, "s"),
            f"{key}_ep": Named(named["ep"], "s"),
            f"{key}_computing": Named(named["computing"], "s"),
        }
        values["microbatches"] = Named(found.setup.microbatches)
    return step_bars(tuple(title for title, *_ in shown), steps, values)


def _kernels_share(found: TrainingStep) -> float:
    """Return the share of the dense peak at which a stage's kernels run."""
    setup, stage = found.setup, virtual_stage_shares(found.setup)[1]
    work, parts = stage_work(setup, stage), found.predicted.parts
    kernels_s = stage.dense_layers * float(parts.dense.device_s - parts.dense.messages_s)
    kernels_s += stage.expert_layers * float(parts.expert.device_s - parts.expert.messages_s)
    whole = work.forward + work.recomputed + work.backward_input + work.backward_weight
    return whole / (found.cluster.peak_flops_per_s * kernels_s)
