"""The scoreboard, which grows by a row per page, and layouts of one job side by side."""

from __future__ import annotations

from figgen.charts import Axis, Bars, Column, Named, Rule, Scalar, Segment, Table, interval_values
from figgen.errors import InputError, check_between
from figgen.plotting.series import segments
from figgen.registry import figure
from figgen.scenarios.stories.journey import JourneyJob, job, rung
from figgen.scenarios.stories.journey_ladder import RUNGS
from figgen.units import NBSP

REST = ("working", "communication", "reserve")
"""Parts of memory that the journey combines."""


def _size(one: JourneyJob) -> str:
    """The size in a model's name, or else its parameters: "70B", "671B"."""
    model = one.found.model
    name = model.title.split()[-1]
    return name if model.title.startswith("Llama") else f"{model.parameters / 1e9:.0f}B"


def _narrow(layout: str) -> str:
    return layout.replace(" · ", "·").replace(" ", "")


def _seconds(found: JourneyJob) -> str:
    """The step with its interval: "6.57 (6.1–7.0)"."""
    low, high = (f"{s:.0f}" if s >= 10 else f"{s:#.2g}" for s in (found.low_s, found.high_s))
    return f"{found.step_time_s:#.3g}".rstrip(".") + f"{NBSP}({low}–{high})"


@figure("journey-scoreboard")
def journey_scoreboard(*, page: int) -> Table:
    """The job at the end of every page so far; times are predicted."""
    check_between("page", page, 1, len(RUNGS))
    found = [(entry, rung(entry.page)) for entry in RUNGS[:page]]
    rows: list[tuple[Scalar, ...]] = [
        (
            f"{entry.page}: {_size(one)} on {one.gpus}",
            _narrow(entry.layout),
            one.total_bytes,
            one.near_bytes,
            one.far_bytes,
            _seconds(one),
            one.tokens_per_second,
            one.mfu,
        )
        for entry, one in found
    ]
    entry, last = found[-1]
    return Table(
        columns=(
            Column(label="page: job"),
            Column(label="layout"),
            Column(label="memory", unit="B", spec="bytes"),
            Column(label="NVLink", unit="B", spec="bytes"),
            Column(label="network", unit="B", spec="bytes"),
            Column(label="step (s)"),
            Column(label="tokens/s", spec="si"),
            Column(label="MFU", spec=".0%"),
        ),
        rows=tuple(rows),
        values={
            "gpus": Named(last.gpus),
            "layout": Named(entry.layout),
            "model": Named(last.found.model.title),
            "memory": Named(last.total_bytes, "B"),
            "near": Named(last.near_bytes, "B"),
            "far": Named(last.far_bytes, "B"),
            "step": Named(last.step_time_s, "s"),
            "low": Named(last.low_s, "s"),
            "high": Named(last.high_s, "s"),
            "tokens_per_second": Named(last.tokens_per_second),
            "batch": Named(last.tokens_per_step, "token"),
            "mfu": Named(last.mfu),
        },
    )


@figure("journey-memory")
def journey_memory(*, page: int, also: tuple[str, ...] = ()) -> Bars:
    """Memory of the fullest GPU by kind at the end of every page so far.

    `also` are jobs that a page tried and gave up, written as for `journey-layouts`.
    """
    check_between("page", page, 1, len(RUNGS))
    shown = [
        (f"{entry.page}: {_size(one)}, {entry.layout}", one)
        for entry in RUNGS[:page]
        for one in [rung(entry.page)]
    ]
    shown += [_written(text) for text in also]
    return memory_bars(shown)


def memory_bars(shown: list[tuple[str, JourneyJob]]) -> Bars:
    """Memory of each job by kind, with the last one's numbers as values."""
    jobs = [one for _, one in shown]
    last = jobs[-1]
    return Bars(
        labels=tuple(label for label, _ in shown),
        segments=segments(
            {
                "weights": [one.weights_bytes for one in jobs],
                "gradients": [one.gradients_bytes for one in jobs],
                "optimizer": [one.optimizer_bytes for one in jobs],
                "activations": [one.activations_bytes for one in jobs],
                "buffers and the rest": [
                    sum(one.found.memory.fullest.bytes_of(part) for part in REST) for one in jobs
                ],
            }
        ),
        axis=Axis(label="memory of the fullest GPU", unit="B", low=0.0, spec="bytes"),
        rules=(Rule(axis="x", at=last.capacity_bytes, label="an H100 has"),),
        values={
            "capacity": Named(last.capacity_bytes, "B"),
            "total": Named(last.total_bytes, "B"),
            "state": Named(last.state_bytes, "B"),
            "activations": Named(last.activations_bytes, "B"),
            "first": Named(jobs[0].total_bytes, "B"),
            "missing": Named(last.missing_bytes, "B"),
        },
    )


def _written(text: str) -> tuple[str, JourneyJob]:
    """`label | model | sizes | options` as a label and a job; InputError for another form."""
    parts = [part.strip() for part in text.split("|")]
    if len(parts) not in (3, 4):
        raise InputError("a job", expected="label | model | sizes | options", got=text)
    return parts[0], job(*parts[1:])


@figure("journey-fit")
def journey_fit(*, jobs: tuple[str, ...]) -> Bars:
    """Memory of the fullest GPU by kind for jobs written as `label | model | sizes | options`."""
    return memory_bars([_written(text) for text in jobs])


@figure("journey-layouts")
def journey_layouts(*, jobs: tuple[str, ...]) -> Bars:
    """Predicted seconds of a step by part, for jobs as `label | model | sizes | options`."""
    shown = [_written(text) for text in jobs]
    steps = [one.predicted for _, one in shown]
    parts = {
        ("forward and backward", "forward"): [one.computing_s for _, one in shown],
        ("exposed messages", "exposed"): [one.exposed_s for _, one in shown],
        ("pipeline fills and drains", "idle"): [step.parts.idle_s for step in steps],
        ("update", "backward-weight"): [step.parts.update_s for step in steps],
        ("everything else", "neutral"): [
            step.parts.straggling_s + step.parts.fixed_s for step in steps
        ],
    }
    first, last = shown[0][1], shown[-1][1]
    values = {
        "first": Named(first.step_time_s, "s"),
        "last": Named(last.step_time_s, "s"),
        "ratio": Named(first.step_time_s / last.step_time_s),
    }
    for at, (_, one) in enumerate(shown, 1):
        values |= {
            f"step_{at}": Named(one.step_time_s, "s"),
            f"idle_{at}": Named(one.idle_share),
            f"mfu_{at}": Named(one.mfu),
            f"rate_{at}": Named(one.tokens_per_second_and_gpu),
        }
    values |= interval_values(*(step.residuals for step in steps))
    return Bars(
        labels=tuple(label for label, _ in shown),
        segments=tuple(
            Segment(name=name, role=role, lengths=tuple(map(float, lengths)))
            for (name, role), lengths in parts.items()
            if any(float(each) > 0 for each in lengths)
        ),
        axis=Axis(label="predicted seconds of a step", low=0.0, spec=".3g"),
        values=values,
    )
