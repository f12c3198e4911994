"""What strategies look like in a profile: modelled steps, read as recorded ones are."""

from __future__ import annotations

from math import fsum

from figgen.charts import Column, Named, Scalar, Table
from figgen.errors import InputError
from figgen.figures.training.step import step_interval
from figgen.models.chrome_trace import trace_events
from figgen.models.profile import RankProfile, profiles
from figgen.models.step_rows import sent_by_axis
from figgen.models.step_timeline import step_timeline
from figgen.models.trace_kinds import MADE_BY
from figgen.plotting.words import identifier
from figgen.registry import figure
from figgen.scenarios.resolve import TrainingStep
from figgen.scenarios.written import written_step

AXES = ("dp", "tp", "cp", "ep", "pp")
LEAST = 0.0005
"""Of the step: what an axis is exposed for, to have a column; less is printed as 0.0%."""
HEADER = {"otherData": {"made by": MADE_BY}}


@figure("profile-signatures")
def profile_signatures(
    *, model: str, machine: str, options: str = "", layouts: tuple[str, ...]
) -> Table:
    """Shares of the step on the pipeline rank that computes longest, one row for each layout.

    A layout is written as "tp=8 pp=4", with options of its own behind a bar: "| zero_stage=3".
    Raises InputError for no layouts.
    """
    if not layouts:
        raise InputError("layouts", expected="at least one layout", got=())
    rows: list[tuple[Scalar, ...]] = []
    split = [layout.partition("|") for layout in layouts]
    steps = [
        written_step(model=model, sizes=f"{machine} {sizes}", options=f"{options} {own}")
        for sizes, _, own in split
    ]
    labels = [" ".join(f"{sizes} {own}".split()) for sizes, _, own in split]
    read = [max(_read(found), key=lambda rank: rank.computing_s) for found in steps]
    shown = [
        axis
        for axis in AXES
        if any(dict(rank.exposed_by_axis).get(axis, 0.0) >= LEAST * rank.wall_s for rank in read)
    ]
    values: dict[str, Named] = {"layouts": Named(len(layouts))} | step_interval(*steps)
    used = [found.memory.fullest.total_bytes / found.accelerator.capacity_bytes for found in steps]
    values["most_memory"] = Named(max(used))
    sent = [fsum(sent_by_axis(found.estimate.rows).values()) for found in steps]
    for label, rank, bytes_, memory in zip(labels, read, sent, used, strict=True):
        exposed = dict(rank.exposed_by_axis)
        shares = [exposed.get(axis, 0.0) / rank.wall_s for axis in shown]
        # A gap between two events that is a rounding wide is none.
        idle = round((rank.idle_s + rank.launch_s) / rank.wall_s, 9)
        computing, hidden = rank.computing_s / rank.wall_s, rank.hidden_s / rank.wall_s
        rows.append((label, rank.wall_s, computing, *shares, idle, hidden, bytes_, memory))
        key = identifier(label.replace("=", "_").replace(" ", "_"))
        values |= {
            f"{key}_step": Named(rank.wall_s, "s"),
            f"{key}_computing": Named(computing),
            f"{key}_idle": Named(idle),
            f"{key}_hidden": Named(hidden),
            f"{key}_sent": Named(bytes_, "B"),
            **{f"{key}_{axis}": Named(s) for axis, s in zip(shown, shares, strict=True) if s},
        }
    columns = (
        Column(label="layout"),
        Column(label="step", unit="s", spec="time"),
        Column(label="computing", spec=".1%"),
        *(Column(label=f"exposed {axis.upper()}", spec=".1%") for axis in shown),
        Column(label="idle", spec=".1%"),
        Column(label="hidden", spec=".1%"),
        Column(label="sent per GPU", unit="B", spec="si"),
        Column(label="memory used", spec=".0%"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


def _read(found: TrainingStep) -> tuple[RankProfile, ...]:
    timeline = step_timeline(
        found.setup, found.cluster, compute_efficiency=found.compute_efficiency, each_call=False
    )
    return profiles(((HEADER, event) for event in trace_events(found.setup, timeline)), "step")
