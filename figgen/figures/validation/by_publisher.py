"""Errors of predicted steps by publisher and by class, each with its house left out of the fit."""

from __future__ import annotations

from math import exp
from statistics import mean

from figgen.charts import Column, Named, Table
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.evidence.class_intervals import TEN_RUNS, coverages, interval_of
from figgen.scenarios.evidence.publishers import (
    by_class,
    by_publisher,
    errors_of_group,
    filtered_records,
    judged_publishers,
    mean_of_publishers,
    published_runs,
    side_of,
    trust_of,
)

DASH = "–"

PUBLISHER_COLUMNS = (
    *headings("publisher", "part", "trust"),
    *headings("runs", "doubtful", spec=",d"),
    Column(label="mean error", spec=".1%"),
    Column(label="bias", spec="+.1%"),
    Column(label="mean error, left out", spec=".1%"),
    Column(label="in the interval, left out", spec=".0%"),
    Column(label="its high over its low", spec=".2f"),
)


@figure("validation-publishers")
def validation_publishers() -> Table:
    """Errors by publisher, with its house in the fit and left out.

    The share in the interval is over intervals that only other houses determine.
    """
    judged = judged_publishers()
    covered = {found.publisher: found for found in coverages(judged)}
    doubtful = [run.publisher for run in published_runs() if run.doubt]
    rows, apart = [], []
    for name, runs in by_publisher(judged).items():
        errors, trust = errors_of_group(name, runs), trust_of(name)
        rows.append(
            (
                name,
                side_of(name),
                DASH if trust is None else f"{trust} of 5",
                errors.runs,
                doubtful.count(name),
                errors.mean_absolute,
                errors.bias,
                errors.left_out_mean_absolute,
                covered[name].share,
                exp(covered[name].width),
            )
        )
        if errors.runs >= TEN_RUNS:
            apart.append(covered[name])
    dense, experts = (mean_of_publishers(judged, experts=kind) for kind in (False, True))
    return Table(
        columns=PUBLISHER_COLUMNS,
        rows=tuple(rows),
        values={
            "publishers": Named(len(rows)),
            "runs": Named(len(judged)),
            "unfitted": Named(sum(side_of(name) != "fitted" for name in by_publisher(judged))),
            "dense": Named(dense),
            "experts": Named(experts),
            "covered": Named(sum(found.inside for found in covered.values()) / len(judged)),
            "large": Named(len(apart)),
            "large_covered": Named(sum(one.share >= 0.75 for one in apart)),
            "least_covered": Named(min(one.share for one in apart)),
            "score": Named(mean(one.score for one in apart)),
            "width": Named(mean(one.width for one in apart)),
            "adapters": Named(filtered_records().get("lora", 0)),
        },
    )


CLASS_COLUMNS = (
    Column(label="class"),
    *headings("publishers", "runs", spec=",d"),
    *headings("mean error", "mean error, left out", spec=".1%"),
    Column(label="bias, left out", spec="+.1%"),
    *headings("measured over predicted", "from"),
)


@figure("validation-classes")
def validation_classes() -> Table:
    """Errors and interval by software stack, chip generation, and dense or with experts."""
    judged = judged_publishers()
    rows = []
    for name, runs in by_class(judged).items():
        errors, interval = (
            errors_of_group(name, runs),
            interval_of(runs[0].published.run_class, judged),
        )
        rows.append(
            (
                name,
                errors.publishers,
                errors.runs,
                errors.mean_absolute,
                errors.left_out_mean_absolute,
                errors.left_out_bias,
                f"{interval.low:.2f} to {interval.high:.2f}",
                interval.level,
            )
        )
    alone = sum(row[7] == row[0] for row in rows)
    return Table(
        columns=CLASS_COLUMNS,
        rows=tuple(rows),
        values={"classes": Named(len(rows)), "alone": Named(alone)},
    )
