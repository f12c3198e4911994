"""Limits of a pipeline's closed forms: what sets the wall time, messages, uneven stages.

It also covers numbers of microbatches that P does not divide.
"""

from __future__ import annotations

import itertools

from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Column, Curves, Named, Scalar, Table
from figgen.errors import InputError
from figgen.figures.pipeline.timelines import BACKWARD, FORWARD, simulated
from figgen.formulas.pipeline import one_f_one_b_in_flight
from figgen.models.algorithms.communication_ratio import layer_training_flops_per_token
from figgen.models.pipeline.schedules import microbatch_group_size
from figgen.models.pipeline.simulate import PlacedAction, critical_path
from figgen.plotting.placed import headings
from figgen.plotting.series import line
from figgen.registry import figure


@figure("critical-path")
def critical_path_table(
    *,
    schedule: str = "1f1b",
    stages: int = 4,
    microbatches: int = 8,
    chunks: int | None = None,
    latency: float = 0.0,
) -> Table:
    """The critical path of a schedule, with one row for each stay on a rank."""
    trace = simulated(schedule, stages, microbatches, chunks, latency=latency)
    path = critical_path(trace)
    stays = [list(stay) for _, stay in itertools.groupby(path, key=lambda placed: placed.rank)]
    rows: list[tuple[Scalar, ...]] = [
        (
            f"rank {stay[0].rank}",
            _listed(stay),
            sum(placed.action.kind == "F" for placed in stay),
            sum(placed.action.kind == "B" for placed in stay),
            sum(placed.end - placed.start for placed in stay),
        )
        for stay in stays
    ]
    columns = (
        *headings("on", "actions", "forwards", "backwards"),
        Column(label="time", spec="g"),
    )
    values = {
        "makespan": Named(trace.makespan),
        "forwards": Named(sum(placed.action.kind == "F" for placed in path)),
        "backwards": Named(sum(placed.action.kind == "B" for placed in path)),
        "hops": Named(len(stays) - 1),
        "waiting": Named(trace.makespan - sum(placed.end - placed.start for placed in path)),
    }
    return Table(columns=columns, rows=tuple(rows), values=values)


def _listed(stay: list[PlacedAction]) -> str:
    """Return `F0`, or the first and the last two actions of a longer stay."""
    words = [f"{placed.action.kind}{placed.action.microbatch}" for placed in stay]
    return " ".join(words if len(words) <= 4 else [*words[:2], "…", *words[-2:]])


@figure("pipeline-latency", explorable=True, recomputed=True)
def pipeline_latency(
    *,
    stages: int = 8,
    microbatches: int = 32,
    chunks: tuple[int, ...] = (2, 4),
    most: float = 0.2,
    at: float = 0.05,
) -> Curves:
    """bubble_fraction over the time of a message, which overlaps computing.

    The time is a share of one microbatch's forward and backward on one rank. The values `…_at` are
    those at `at`; `…_waits` is the number of messages that the step waits for there.
    """
    if not 0 < at <= most:
        raise InputError("at", expected=f"more than 0, at most {most}", got=at)
    whole = FORWARD + BACKWARD
    runs: list[tuple[str, str, str, int | None]] = [
        ("GPipe", "gpipe", "gpipe", None),
        ("1F1B", "one_f_one_b", "1f1b", None),
        *((f"interleaved, V = {v}", f"interleaved_{v}", "interleaved-1f1b", v) for v in chunks),
    ]
    shares = tuple(most * k / 10 for k in range(11))
    series, values = [], {"at": Named(at), "most": Named(most)}
    for index, (title, said, name, v) in enumerate(runs):
        traces = [
            simulated(name, stages, microbatches, v, latency=share * whole)
            for share in (*shares, at)
        ]
        idle = tuple(trace.bubble_fraction for trace in traces)
        waited = (traces[-1].makespan - traces[0].makespan) / (at * whole)
        series.append(line(title, shares, idle[:-1], index))
        values |= {
            f"{said}_first": Named(idle[0]),
            f"{said}_at": Named(idle[-1]),
            f"{said}_last": Named(idle[-2]),
            f"{said}_waits": Named(round(waited, 6)),
        }
    return Curves(
        x=Axis(label="time of a message, in microbatches of a rank", low=0.0, spec=".0%"),
        y=Axis(label="share of the step that ranks are idle", low=0.0, spec=".0%"),
        series=tuple(series),
        values=values,
    )


@figure("stage-balance")
def stage_balance(*, model: str, layers: tuple[tuple[int, ...], ...], microbatches: int) -> Table:
    """Ways to divide a dense model's layers among stages, with the output layer on the last.

    Time is counted in layers: the output layer counts its FLOPs over those of a layer; the
    embedding only looks up. The schedule is 1F1B, and messages take no time.
    """
    shape = catalog_model(model).shape
    head = 6 * shape.vocab * shape.hidden / layer_training_flops_per_token(shape)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"head": Named(head)}
    for index, dealt in enumerate(layers):
        if sum(dealt) != shape.layers or min(dealt) < 1:
            raise InputError(
                "layers",
                expected=f"at least 1 on each stage, {shape.layers} in all",
                got=", ".join(map(str, dealt)),
            )
        work = (*map(float, dealt[:-1]), dealt[-1] + head)
        trace = simulated("1f1b", len(work), microbatches, work=work)
        even = sum(work) / len(work) * (FORWARD + BACKWARD) * (microbatches + len(work) - 1)
        idle = trace.bubble_fraction_by_rank
        listed = " · ".join(map(str, dealt))
        row = (listed, max(work), trace.makespan / even, trace.bubble_fraction, max(idle))
        rows.append(row)
        names = ("slowest", "over_even", "bubble_fraction", "most_idle")
        values |= {f"{name}_{index}": Named(x) for name, x in zip(names, row[1:], strict=True)}
    columns = (
        Column(label="layers of each stage"),
        *headings("slowest stage, in layers", "step relative to an even split", spec=".2f"),
        *headings("bubble_fraction", "idle on the idlest rank", spec=".1%"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("interleaved-groups")
def interleaved_groups(*, microbatches: tuple[int, ...], stages: int = 4, chunks: int = 2) -> Table:
    """Interleaved 1F1B for any M: its group of microbatches, simulated idle share and peak."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for m in microbatches:
        trace = simulated("interleaved-1f1b", stages, m, chunks)
        closed = (stages - 1) / (chunks * m + stages - 1)
        plain = one_f_one_b_in_flight(stages=stages, stage=0, microbatches=m)
        group, peak = microbatch_group_size(stages, m), trace.peak_in_flight[0]
        rows.append((m, group, trace.bubble_fraction, closed, peak, plain))
        values |= {
            f"bubble_fraction_{m}": Named(trace.bubble_fraction),
            f"closed_{m}": Named(closed),
            f"peak_{m}": Named(peak),
            f"group_{m}": Named(group),
        }
    columns = (
        *headings("microbatches M", "group"),
        *headings("bubble_fraction, simulated", "(P − 1)/(VM + P − 1)", spec=".1%"),
        *headings("peak on rank 0", "same under 1F1B", spec="g"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
