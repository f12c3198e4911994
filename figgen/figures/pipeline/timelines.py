"""Pipeline schedules: timelines, idle time and activations."""

from __future__ import annotations

from dataclasses import replace

from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Bars, Curves, Named, Series, Slot, Table, Timeline
from figgen.errors import InputError, check_between, check_equal_lengths
from figgen.figures.parameters import ModelName, ScheduleName
from figgen.formulas.activation_memory import (
    selective_recompute_layer_activation_bytes,
    stage_activation_bytes,
)
from figgen.formulas.pipeline import (
    interleaved_bubble_fraction,
    interleaved_bubble_overhead,
)
from figgen.models.pipeline.schedule_work import carried_out, stage_shares
from figgen.models.pipeline.schedules import ACTION_NAMES, TITLES, build
from figgen.models.pipeline.simulate import Durations, PlacedAction, Trace, simulate
from figgen.models.shape.model_shape import check_gpt_layer
from figgen.plotting.placed import headings
from figgen.plotting.series import doublings, line, segments
from figgen.plotting.words import identifier
from figgen.registry import figure

FORWARD, BACKWARD = 1.0, 2.0
"""Times of a rank's whole share of the model: a backward takes twice a forward."""

MOST_DRAWN = 2**14
"""The largest number of stages times microbatches that a figure shows."""


def check_drawn(stages: int, microbatches: int, chunks: int = 1) -> None:
    """Raise InputError for more visits than can be shown; the schedule refuses sizes below 1."""
    visits = abs(stages * microbatches * chunks)
    check_between("stages · microbatches · chunks", visits, 0, MOST_DRAWN)


def simulated(
    schedule: ScheduleName,
    stages: int,
    microbatches: int,
    chunks: int | None = None,
    *,
    forward: float = FORWARD,
    backward: float = BACKWARD,
    latency: float = 0.0,
    work: tuple[float, ...] | None = None,
    layers: tuple[float, ...] | None = None,
) -> Trace:
    """Return the simulated schedule.

    `forward` and `backward` are those of a rank's whole share of the model, and `work` is the part
    of it in each stage if stages differ. With `layers`, per rank or per virtual stage, they are
    those of an average rank.
    """
    check_drawn(stages, microbatches, chunks or 1)
    order = build(schedule, stages=stages, microbatches=microbatches, chunks=chunks)
    if layers is not None:
        work = tuple(
            share * order.placement.chunks for share in stage_shares(order.placement, layers)
        )
    shares = work or (1.0,) * order.placement.stages
    half = tuple(backward / 2 * share for share in shares)
    times = Durations(
        forward=tuple(forward * share for share in shares),
        backward_input=half,
        backward_weight=half,
        latency=latency,
    )
    return simulate(order, times.per_chunk(order.placement.chunks))


def _slot(placed: PlacedAction, chunk: int) -> Slot:
    action = placed.action
    kind = ACTION_NAMES[action.kind]
    return Slot(
        lane=placed.rank,
        start=placed.start,
        end=placed.end,
        role=kind,
        label=str(action.microbatch),
        chunk=chunk,
        detail=(
            f"{kind} of microbatch {action.microbatch} on stage {action.stage}, "
            f"rank {placed.rank}, {placed.start:g} to {placed.end:g}"
        ),
    )


@figure("pipeline-timeline", explorable=True, recomputed=True)
def pipeline_timeline(
    *,
    schedule: ScheduleName,
    stages: int = 4,
    microbatches: int = 8,
    chunks: int | None = None,
    forward: float = 1.0,
    backward: float = 2.0,
    layers_per_stage: tuple[float, ...] | None = None,
) -> Timeline:
    """One lane per rank, one slot per action, from the simulator.

    Times are for a rank's whole share of the model; with V chunks each action takes 1/V of it.
    `layers_per_stage` has the layers of each rank, or of each virtual stage, where they differ;
    times are then those of an average rank.
    """
    trace = simulated(
        schedule,
        stages,
        microbatches,
        chunks,
        forward=forward,
        backward=backward,
        layers=layers_per_stage,
    )
    held = trace.schedule.placement.held
    chunk_of = {stage: chunk for stages_ in held for chunk, stage in enumerate(stages_)}
    slots = tuple(
        _slot(placed, chunk_of[placed.action.stage]) for lane in trace.placed for placed in lane
    )
    return Timeline(
        lanes=tuple(f"rank {rank}" for rank in range(stages)),
        slots=slots,
        end=trace.makespan,
        time_label="time, in forward passes of one microbatch through one rank",
        values=_measures(trace),
    )


@figure("schedules-compared", explorable=True, recomputed=True)
def schedules_compared(
    *,
    schedules: tuple[ScheduleName, ...],
    stages: int = 4,
    microbatches: int = 8,
    times: tuple[float, float, float] = (10e-3, 10e-3, 10e-3),
    layers_per_stage: tuple[float, ...] | None = None,
) -> Timeline:
    """Several schedules under each other on one axis of time, for the same work.

    `times` are those of F, I and W of a rank's whole share of the model, in seconds;
    `layers_per_stage` has the layers of each rank where they differ from each other.
    """
    lanes: list[str] = []
    slots: list[Slot] = []
    ends: list[float] = []
    values: dict[str, Named] = {"stages": Named(stages), "microbatches": Named(microbatches)}
    forward, backward_input, backward_weight = times
    durations = Durations(
        forward=forward, backward_input=backward_input, backward_weight=backward_weight
    )
    end = 0.0
    for name in schedules:
        check_drawn(stages, microbatches)
        order = build(name, stages=stages, microbatches=microbatches)
        trace = carried_out(order, durations, layers_per_stage)
        chunk_of = {stage: i for held in order.placement.held for i, stage in enumerate(held)}
        for rank, lane in enumerate(trace.placed):
            for placed in lane:
                slot = _slot(placed, chunk_of[placed.action.stage])
                slots.append(replace(slot, lane=len(lanes)))
            lanes.append(f"{TITLES[name]}, rank {rank}")
            ends.append(trace.makespan)
        key = identifier(name)
        values[f"{key}_time"] = Named(trace.makespan, "s")
        values[f"{key}_idle"] = Named(trace.bubble_fraction)
        values[f"{key}_held"] = Named(max(trace.peak_in_flight))
        end = max(end, trace.makespan)
    return Timeline(
        lanes=tuple(lanes),
        slots=tuple(slots),
        end=end,
        time_label="time",
        time_unit="s",
        ends=tuple(ends),
        values=values,
    )


def _measures(trace: Trace) -> dict[str, Named]:
    return {
        "makespan": Named(trace.makespan),
        "bubble_fraction": Named(trace.bubble_fraction),
        "bubble_overhead": Named(trace.bubble_overhead),
        "peak_first": Named(trace.peak_in_flight[0]),
        "peak_last": Named(trace.peak_in_flight[-1]),
        "stages": Named(len(trace.busy)),
        "microbatches": Named(trace.schedule.microbatches),
    }


@figure("bubble-table")
def bubble_table(
    *, stages: tuple[int, ...], microbatches: tuple[int, ...], chunks: tuple[int, ...]
) -> Table:
    """Both measures side by side, by closed form and by simulation.

    The three lists are read in parallel: row i is (stages[i], microbatches[i], chunks[i]).
    """
    check_equal_lengths(stages=stages, microbatches=microbatches, chunks=chunks)
    rows = []
    for p, m, v in zip(stages, microbatches, chunks, strict=True):
        name = "interleaved-1f1b" if v > 1 else "1f1b"
        trace = simulated(name, p, m, v)
        sizes = {"stages": p, "microbatches": m, "chunks": v}
        closed = (interleaved_bubble_fraction(**sizes), interleaved_bubble_overhead(**sizes))
        rows.append((p, m, v, closed[0], trace.bubble_fraction, closed[1], trace.bubble_overhead))
    columns = (
        *headings("stages P", "microbatches M", "chunks V"),
        *headings("bubble_fraction", "simulated", "bubble_overhead", "simulated", spec=".1%"),
    )
    return Table(columns=columns, rows=tuple(rows), values={"rows": Named(len(rows))})


@figure("bubble-curves", explorable=True, recomputed=True)
def bubble_curves(
    *,
    stages: tuple[int, ...] = (4,),
    chunks: tuple[int, ...] = (1,),
    most_microbatches: int = 128,
) -> Curves:
    """bubble_fraction over the number of microbatches, one line per (stages, chunks)."""
    check_between("most_microbatches", most_microbatches, 1, 2**30)
    series = []
    pairs = [(p, v) for p in stages for v in chunks]
    for index, (p, v) in enumerate(pairs):
        # Interleaving takes M ≥ P.
        x = tuple(m for m in doublings(most_microbatches, 1) if v == 1 or m >= p)
        y = tuple(interleaved_bubble_fraction(stages=p, microbatches=m, chunks=v) for m in x)
        name = f"P = {p}" + (f", V = {v}" if len(chunks) > 1 else "")
        series.append(line(name, map(float, x), y, index))
    return Curves(
        x=Axis(label="microbatches per step M", scale="log2", spec=","),
        y=Axis(label="bubble_fraction", low=0.0, spec=".0%"),
        series=tuple(series),
        values={
            "first": Named(series[0].y[0]),
            "last": Named(series[0].y[-1]),
            "worst_last": Named(series[-1].y[-1]),
        },
    )


COMPARED = {"GPipe": "gpipe", "1F1B": "1f1b", "interleaved 1F1B": "interleaved-1f1b"}
VALUE_KEYS = {"GPipe": "gpipe", "1F1B": "one_f_one_b", "interleaved 1F1B": "interleaved"}


def _compared(stages: int, microbatches: int, chunks: int) -> dict[str, Trace]:
    """Return the three schedules that a training job chooses between."""
    return {
        title: simulated(name, stages, microbatches, chunks if name == "interleaved-1f1b" else None)
        for title, name in COMPARED.items()
    }


def _peak_bars(peaks: dict[str, tuple[float, ...]], axis: Axis) -> Bars:
    """Return a group of bars per rank, with the first and last rank's values by name."""
    return Bars(
        labels=tuple(f"rank {rank}" for rank in range(min(map(len, peaks.values())))),
        segments=segments(peaks),
        axis=axis,
        stacked=False,
        values={
            f"{VALUE_KEYS[title]}_{place}": Named(peak[at], axis.unit)
            for title, peak in peaks.items()
            for place, at in (("first", 0), ("last", len(peak) - 1))
        },
    )


@figure("in-flight-by-rank", explorable=True, recomputed=True)
def in_flight_by_rank(*, stages: int = 4, microbatches: int = 8, chunks: int = 2) -> Bars:
    """Most activations that each rank holds at once, in microbatch equivalents, by schedule."""
    traces = _compared(stages, microbatches, chunks)
    peaks = {title: trace.peak_in_flight for title, trace in traces.items()}
    return _peak_bars(peaks, Axis(label="peak in flight, in microbatches", low=0.0, spec="g"))


@figure("in-flight-over-time", explorable=True, recomputed=True)
def in_flight_over_time(
    *, rank: int = 0, stages: int = 4, microbatches: int = 8, chunks: int = 2
) -> Curves:
    """Activations held on one rank over the step, by schedule."""
    check_between("rank", rank, 0, stages - 1)
    series: list[Series] = []
    values: dict[str, Named] = {}
    for index, (title, trace) in enumerate(_compared(stages, microbatches, chunks).items()):
        moments = [*trace.in_flight(rank), (trace.makespan, 0.0)]
        times = tuple(time for time, _ in moments)
        held = tuple(count for _, count in moments)
        series.append(line(title, times, held, index, "steps"))
        values[f"{VALUE_KEYS[title]}_peak"] = Named(max(held))
    return Curves(
        x=Axis(label="time, in forward passes of one microbatch", low=0.0, spec="g"),
        y=Axis(label=f"microbatches held on rank {rank}", low=0.0, spec="g"),
        series=tuple(series),
        values=values,
    )


@figure("stage-memory", explorable=True, recomputed=True)
def stage_memory(
    *, model: ModelName, stages: int, microbatches: int, chunks: int = 2, tp: int = 8
) -> Bars:
    """Peak bytes of activations on each pipeline rank, with one sequence per microbatch.

    Training is 16-bit with sequence parallelism and selective recomputation; embedding and loss are
    not counted. 34·s·b·h/T is GPT's layer; other layers raise InputError.
    """
    shape = catalog_model(model)
    check_gpt_layer(shape.shape)
    if shape.layers % stages:
        raise InputError(
            f"stages does not divide the {shape.layers} layers of {model}",
            expected="a divisor of the layers",
            got=stages,
            nearest=[str(p) for p in _divisors_near(shape.layers, stages)],
            key="stages",
        )
    per_layer = selective_recompute_layer_activation_bytes(
        sequence_length=shape.sequence, microbatch_size=1, hidden=shape.hidden, tp=tp
    )
    peaks = {
        title: tuple(
            stage_activation_bytes(held, shape.layers, stages, per_layer)
            for held in trace.peak_in_flight
        )
        for title, trace in _compared(stages, microbatches, chunks).items()
    }
    return _peak_bars(peaks, Axis(label="activations per GPU", unit="B", low=0.0, spec="bytes"))


def _divisors_near(layers: int, stages: int) -> list[int]:
    divisors = [d for d in range(1, layers + 1) if layers % d == 0]
    return sorted(divisors, key=lambda d: abs(d - stages))[:2]
