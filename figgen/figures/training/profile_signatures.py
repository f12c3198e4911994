"""Strategies in a profile: modeled steps, read like recorded ones."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

from figgen.charts import Axis, Bars, Column, Named, Scalar, Segment, Table
from figgen.errors import InputError
from figgen.figures.training.step import step_interval
from figgen.lookups import remembered
from figgen.models.profiles.chrome_trace import trace_events
from figgen.models.profiles.profile import RankProfile, profiles
from figgen.models.profiles.trace_kinds import MADE_BY
from figgen.models.step.step_rows import sent_by_axis
from figgen.models.step.step_timeline import step_timeline
from figgen.plotting.placed import headings
from figgen.plotting.words import identifier
from figgen.registry import figure
from figgen.scenarios.options.resolve import TrainingStep
from figgen.scenarios.options.written import written_step

AXES = ("dp", "tp", "cp", "ep", "pp")
LEAST = 0.0005
"""Share of the step for which an axis must be exposed to get a column; less would print as 0.0%."""
WORDS = {axis: f"{axis.upper()} " for axis in AXES} | {"zero_stage": "ZeRO-"}
HEADER = {"otherData": {"made by": MADE_BY}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One layout's step as a profile of its longest computing rank; shares of its wall time.

    `exposed` has every axis on which any of the compared layouts is exposed.
    """

    label: str
    wall_s: float
    computing: float
    exposed: dict[str, float]
    idle: float
    hidden: float
    sent_bytes: float
    memory: float

    @property
    def title(self) -> str:
        """The layout in words: "TP 8, PP 4" for `tp=8 pp=4`."""
        words = (option.partition("=") for option in self.label.split())
        return ", ".join(f"{WORDS[name]}{value}" for name, _, value in words)

    def values(self) -> dict[str, Named]:
        key = identifier(self.label.replace("=", "_").replace(" ", "_"))
        return {
            f"{key}_step": Named(self.wall_s, "s"),
            f"{key}_computing": Named(self.computing),
            f"{key}_idle": Named(self.idle),
            f"{key}_hidden": Named(self.hidden),
            f"{key}_sent": Named(self.sent_bytes, "B"),
            **{f"{key}_{axis}": Named(share) for axis, share in self.exposed.items() if share},
        }


@remembered(8)
def read_layouts(
    *, model: str, machine: str, options: str = "", layouts: tuple[str, ...]
) -> tuple[tuple[Read, ...], dict[str, Named]]:
    """Return every layout as a profile would show it, and the values of all of them.

    A layout is written as "tp=8 pp=4", with options after a bar: "| zero_stage=3". Raises
    InputError for no layouts.
    """
    if not layouts:
        raise InputError("layouts", expected="at least one layout", got=())
    split = [layout.partition("|") for layout in layouts]
    steps = [
        written_step(model=model, sizes=f"{machine} {sizes}", options=f"{options} {own}")
        for sizes, _, own in split
    ]
    read = [max(_read(found), key=lambda rank: rank.computing_s) for found in steps]
    shown = [
        axis
        for axis in AXES
        if any(dict(rank.exposed_by_axis).get(axis, 0.0) >= LEAST * rank.wall_s for rank in read)
    ]
    used = [found.memory.fullest.total_bytes / found.accelerator.capacity_bytes for found in steps]
    bytes_ = [fsum(sent_by_axis(found.estimate.rows).values()) for found in steps]
    parts = tuple(
        Read(
            label=" ".join(f"{sizes} {own}".split()),
            wall_s=rank.wall_s,
            computing=rank.computing_s / rank.wall_s,
            exposed={a: dict(rank.exposed_by_axis).get(a, 0.0) / rank.wall_s for a in shown},
            # A gap between two events that is a rounding wide is none.
            idle=round((rank.idle_s + rank.launch_s) / rank.wall_s, 9),
            hidden=rank.hidden_s / rank.wall_s,
            sent_bytes=sent,
            memory=memory,
        )
        for (sizes, _, own), rank, sent, memory in zip(split, read, bytes_, used, strict=True)
    )
    values = {"layouts": Named(len(layouts))} | step_interval(*steps)
    values["most_memory"] = Named(max(used))
    for each in parts:
        values |= each.values()
    return parts, values


@figure("profile-shares", about=read_layouts)
def profile_shares(found: tuple[tuple[Read, ...], dict[str, Named]]) -> Bars:
    """Shares of the step time of each layout.

    Calls that are exposed at the same moment share the time that is neither computing nor idle.
    """
    read, values = found
    exposed = [1 - each.computing - each.idle for each in read]
    sums = [fsum(each.exposed.values()) or 1.0 for each in read]
    return Bars(
        labels=tuple(each.title for each in read),
        segments=(
            Segment(name="computing", role="series-2", lengths=tuple(r.computing for r in read)),
            *(
                Segment(
                    name=axis.upper(), role=axis,
                    lengths=tuple(
                        whole * each.exposed[axis] / total
                        for each, whole, total in zip(read, exposed, sums, strict=True)
                    ),
                )
                for axis in read[0].exposed
            ),
            Segment(name="idle", role="idle", lengths=tuple(each.idle for each in read)),
        ),
        axis=Axis(label="share of the step", low=0.0, high=1.0, spec=".0%"),
        values=values,
    )  # fmt: skip


@figure("profile-signatures", about=read_layouts)
def profile_signatures(found: tuple[tuple[Read, ...], dict[str, Named]]) -> Table:
    """Shares of the step on the pipeline rank that computes longest, one row for each layout."""
    read, values = found
    rows: list[tuple[Scalar, ...]] = [
        (
            r.title,
            r.wall_s,
            r.computing,
            *r.exposed.values(),
            r.idle,
            r.hidden,
            r.sent_bytes,
            r.memory,
        )
        for r in read
    ]
    columns = (
        Column(label="layout"),
        Column(label="step", unit="s", spec="time"),
        Column(label="computing", spec=".1%"),
        *(Column(label=f"exposed {axis.upper()}", spec=".1%") for axis in read[0].exposed),
        *headings("idle", "hidden", spec=".1%"),
        Column(label="sent", unit="B", spec="si"),
        Column(label="memory used", spec=".0%"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


def _read(found: TrainingStep) -> tuple[RankProfile, ...]:
    timeline = step_timeline(found.setup, found.stages, each_call=False)
    return profiles(((HEADER, event) for event in trace_events(found.setup, timeline)), "step")
