"""Predicted against measured step times: every run as a point, and the errors of groups."""

from __future__ import annotations

import numpy as np

from figgen.charts import Axis, Column, Curves, Named, Table
from figgen.errors import unknown
from figgen.figures.validation.sides import diagonal, error_columns, on_side
from figgen.plotting.placed import headings
from figgen.plotting.series import line
from figgen.registry import figure
from figgen.scenarios.evidence.validation import (
    JudgedRun,
    errors_of,
    grouped,
    judged_runs,
    polling_runs,
    rankings,
    release_spreads,
    tight_runs,
)
from figgen.scenarios.runs.residual_classes import class_of

DASH = "–"
LARGEST_GROUPS = 6
"""Groups with their own color; smaller ones share the last."""


@figure("validation-scatter", explorable=True)
def validation_scatter(*, by: str = "class", side: str = "test", apart: str = "") -> Curves:
    """Predicted over measured seconds of every run, grouped by color, around the diagonal.

    With `apart`, only that group has a color of its own.
    """
    chosen = {name: on_side(side, runs) for name, runs in grouped(by).items()}
    if apart and apart not in chosen:
        raise unknown("group of runs", apart, chosen)
    largest = sorted(chosen.items(), key=lambda entry: -len(entry[1]))
    kept = [apart] if apart else [name for name, _ in largest[: LARGEST_GROUPS - 1]]
    shown = {name: chosen[name] for name in kept}
    rest = [judged for name, runs in largest if name not in kept for judged in runs]
    if rest:
        shown["others"] = rest
    everything = [judged for runs in shown.values() for judged in runs]
    low = min(min(j.measured_s, j.predicted_s) for j in everything)
    high = max(max(j.measured_s, j.predicted_s) for j in everything)
    found = errors_of("all", everything)
    assert found is not None
    return Curves(
        x=Axis(label="measured step", unit="s", scale="log10", spec="time"),
        y=Axis(label="predicted step", unit="s", scale="log10", spec="time"),
        series=(
            *(
                line(
                    name,
                    [j.measured_s for j in runs],
                    [j.predicted_s for j in runs],
                    index,
                    "points",
                )
                for index, (name, runs) in enumerate(shown.items())
                if runs
            ),
            *diagonal(low, high, {"a quarter longer": 1.25, "a quarter shorter": 0.75}),
        ),
        values={
            "count": Named(found.runs),
            "mean_absolute": Named(found.mean_absolute),
            "median_absolute": Named(found.median_absolute),
            "within_quarter": Named(found.within_quarter),
            "shortest": Named(low, "s"),
            "longest": Named(high, "s"),
        },
    )


ERROR_COLUMNS = (
    Column(label="runs"),
    Column(label="fitted on", spec=",d"),
    Column(label="mean error", spec=".1%"),
    Column(label="tested on", spec=",d"),
    *error_columns("quarter", "mean error of tests", "median"),
)


@figure("validation-errors")
def validation_errors(*, by: str = "class") -> Table:
    """Relative errors of predicted step times, runs that fitted and runs that test apart."""
    rows = []
    for name, runs in grouped(by).items():
        fitted = errors_of(name, [judged for judged in runs if not judged.tested])
        tested = errors_of(name, [judged for judged in runs if judged.tested])
        rows.append(
            (
                name,
                fitted.runs if fitted else 0,
                fitted.mean_absolute if fitted else DASH,
                tested.runs if tested else 0,
                *(
                    (
                        tested.mean_absolute,
                        tested.median_absolute,
                        tested.bias,
                        tested.worst,
                        tested.within_quarter,
                    )
                    if tested
                    else (DASH,) * 5
                ),
            )
        )
    return Table(columns=ERROR_COLUMNS, rows=tuple(rows), values=_summary())


def _summary() -> dict[str, Named]:
    tests = [judged for judged in judged_runs() if judged.tested]
    groups = {
        "dense": [j for j in tests if _class(j).startswith("dense")],
        "mixtures": [j for j in tests if _class(j).startswith("mixtures")],
        "sweep": [j for j in tests if _class(j) == "nanotron"],
    }
    values = {"runs": Named(len(judged_runs())), "tests": Named(len(tests))}
    for name, runs in groups.items():
        found = errors_of(name, runs)
        assert found is not None
        values[f"{name}_tests"] = Named(found.runs)
        values[f"{name}_mean"] = Named(found.mean_absolute)
        values[f"{name}_median"] = Named(found.median_absolute)
        values[f"{name}_worst"] = Named(abs(found.worst))
    return values


def _class(judged: JudgedRun) -> str:
    return class_of(judged.run)


@figure("validation-ranking")
def validation_ranking() -> Table:
    """Layouts of one model on one number of GPUs: rank correlation, and loss by the choice."""
    tested = {(entry.name, entry.gpus): entry for entry in rankings(tested_only=True)}
    every = rankings(tested_only=False)
    rows = tuple(
        (
            entry.name,
            entry.gpus,
            entry.layouts,
            entry.spearman,
            entry.choice,
            *(
                (tested[key].layouts, tested[key].spearman, tested[key].choice)
                if key in tested
                else (DASH, DASH, DASH)
            ),
            DASH if entry.choice_without_waits is None else entry.choice_without_waits,
        )
        for entry in every
        for key in [(entry.name, entry.gpus)]
    )
    found = list(tested.values())
    tight, crawling = tight_runs()
    return Table(
        columns=(
            Column(label="model"),
            *headings("GPUs", "layouts", spec=",d"),
            *headings("rank correlation", "choice over best", spec=".2f"),
            Column(label="tests", spec=",d"),
            *headings(
                "rank correlation of tests",
                "choice over best of tests",
                "choice over best without waits",
                spec=".2f",
            ),
        ),
        rows=rows,
        values={
            "groups": Named(len(found)),
            "median": Named(float(np.median([entry.spearman for entry in found]))),
            "least": Named(min(entry.spearman for entry in found)),
            "near_best": Named(sum(entry.choice <= 1.1 for entry in found)),
            "median_choice": Named(float(np.median([entry.choice for entry in found]))),
            "worst_choice": Named(max(entry.choice for entry in found)),
            "worst_without_waits": Named(max(one.choice_without_waits or 1.0 for one in every)),
            "median_without_waits": Named(
                float(np.median([one.choice_without_waits or 1.0 for one in every]))
            ),
            "polling": Named(len(polling_runs())),
            "tight": Named(len(tight)),
            "crawling": Named(len(crawling)),
        },
    )


@figure("validation-releases")
def validation_releases(*, most: int = 12) -> Table:
    """One layout under several releases: the effect of the release alone."""
    spreads = release_spreads()
    rows = tuple(
        (entry.run.name, entry.releases, entry.fastest_s, entry.slowest_s, entry.spread)
        for entry in spreads[:most]
    )
    return Table(
        columns=(
            Column(label="a run of the layout"),
            Column(label="releases", spec=",d"),
            *headings("fastest", "slowest", unit="s", spec="time"),
            Column(label="longer by", spec=".0%"),
        ),
        rows=rows,
        values={
            "layouts": Named(len(spreads)),
            "shown": Named(len(rows)),
            "median": Named(float(np.median([entry.spread for entry in spreads]))),
            "most": Named(spreads[0].spread),
            "next": Named(spreads[1].spread),
        },
    )
