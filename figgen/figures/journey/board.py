"""The scoreboard, which grows by a row per page, and layouts of one job side by side."""

from __future__ import annotations

from figgen.charts import Axis, Bars, Column, Named, Rule, Scalar, Segment, Table, interval_values
from figgen.errors import InputError, check_between
from figgen.models.step.compute import MFU_LABEL
from figgen.plotting.placed import headings
from figgen.plotting.series import segments
from figgen.quantity_shown import NBSP
from figgen.registry import figure
from figgen.scenarios.stories.journey import JourneyJob, job, rung
from figgen.scenarios.stories.journey_charts import (
    board_values,
    kinds_of_memory,
    layout_words,
    layouts_values,
    memory_values,
    model_size,
    parts_of_step,
)
from figgen.scenarios.stories.journey_ladder import RUNGS

ROLES = {
    "forward and backward": "forward",
    "exposed messages": "exposed",
    "pipeline fills and drains": "idle",
    "update": "backward-weight",
    "everything else": "neutral",
}
"""Role of each part of a step."""

UNITS = dict.fromkeys(
    ("capacity", "total", "state", "activations", "first", "missing", "memory", "near", "far"), "B"
) | {"step": "s", "low": "s", "high": "s", "batch": "token"}
"""Units of values; those of times of several layouts are seconds."""


def _size(one: JourneyJob) -> str:
    return model_size(one.found.model.title, one.found.model.parameters)


def _narrow(layout: str) -> str:
    """Return a layout that breaks only before the ZeRO stage and before the slices."""
    parts = [part.replace("ZeRO-", "ZeRO\u2011") for part in layout.split(", ")]
    return ", ".join([parts[0].replace(" · ", "·").replace(" ", ""), *parts[1:]])


def _seconds(found: JourneyJob) -> str:
    """Return the step time with its interval: "6.57 (6.1–7.0)"."""
    low, high = (f"{s:.0f}" if s >= 10 else f"{s:#.2g}" for s in (found.low_s, found.high_s))
    return f"{found.step_time_s:#.3g}".rstrip(".") + f"{NBSP}({low}–{high})"


@figure("journey-scoreboard", follows=True)
def journey_scoreboard(*, page: int) -> Table:
    """The job at the end of every page so far, with predicted times."""
    check_between("page", page, 1, len(RUNGS))
    found = [(entry, rung(entry.page)) for entry in RUNGS[:page]]
    rows: list[tuple[Scalar, ...]] = [
        (
            f"{entry.page}: {_size(one)} on {one.gpus}",
            _narrow(layout_words(one.setup)),
            one.total_bytes,
            one.near_bytes,
            one.far_bytes,
            _seconds(one),
            one.tokens_per_second,
            one.mfu,
        )
        for entry, one in found
    ]
    _, last = found[-1]
    return Table(
        columns=(
            *headings("page: job", "layout"),
            *headings("memory", "NVLink", "network", unit="B", spec="bytes"),
            Column(label="step (s)"),
            Column(label="tokens/s", spec="si"),
            Column(label=MFU_LABEL.replace("+", "+\u200b"), spec=".0%"),
        ),
        rows=tuple(rows),
        values={
            **{at: Named(each, UNITS.get(at, "1")) for at, each in board_values(last).items()},
            "layout": Named(layout_words(last.setup)),
            "model": Named(last.found.model.title),
        },
    )


def memory_bars(shown: list[tuple[str, JourneyJob]]) -> Bars:
    """Return the memory of each job by kind, with the last one's numbers as values."""
    jobs = [one for _, one in shown]
    kinds = [kinds_of_memory(one) for one in jobs]
    return Bars(
        labels=tuple(label for label, _ in shown),
        segments=segments(
            {kind: [each[kind] for each in kinds] for kind in kinds[0]},
        ),
        axis=Axis(label="memory of the fullest GPU", unit="B", low=0.0, spec="bytes"),
        rules=(Rule(axis="x", at=jobs[-1].capacity_bytes, label="an H100 has"),),
        values={name: Named(each, UNITS[name]) for name, each in memory_values(jobs).items()},
    )


def written(text: str) -> tuple[str, JourneyJob]:
    """Return label and job of `label | model | sizes | options`. Raises InputError otherwise."""
    parts = [part.strip() for part in text.split("|")]
    if len(parts) not in (3, 4):
        raise InputError("a job", expected="label | model | sizes | options", got=text)
    return parts[0], job(*parts[1:])


@figure("journey-fit", follows=True)
def journey_fit(*, jobs: tuple[str, ...]) -> Bars:
    """Memory of the fullest GPU by kind for jobs written as `label | model | sizes | options`."""
    return memory_bars([written(text) for text in jobs])


@figure("journey-layouts", follows=True)
def journey_layouts(*, jobs: tuple[str, ...]) -> Bars:
    """Predicted seconds of a step by part, for jobs as `label | model | sizes | options`."""
    shown = [written(text) for text in jobs]
    steps = [one for _, one in shown]
    parts = [parts_of_step(one) for one in steps]
    values = {
        name: Named(each, "s" if name.startswith(("first", "last", "step_")) else "1")
        for name, each in layouts_values(steps).items()
    }
    values |= interval_values(*(one.predicted.residuals for one in steps))
    return Bars(
        labels=tuple(label for label, _ in shown),
        segments=tuple(
            Segment(name=name, role=role, lengths=tuple(each[name] for each in parts))
            for name, role in ROLES.items()
            if any(each[name] > 0 for each in parts)
        ),
        axis=Axis(label="predicted seconds of a step", low=0.0, spec=".3g"),
        values=values,
    )
