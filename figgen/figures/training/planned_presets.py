"""How far published layouts are from the fastest that the planner finds for the same job."""

from __future__ import annotations

from statistics import median

from figgen import catalog
from figgen.charts import Column, Named, Scalar, Table
from figgen.figures.training.step import step_interval
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.evidence.published_plans import (
    PublishedPlan,
    published_plan,
    training_presets,
)
from figgen.scenarios.planning.plan_rows import TERMS, layout_words


@figure("planned-presets")
def planned_presets() -> Table:
    """Every published layout with its predicted time, the planner's best, and the reason."""
    found = sorted(map(published_plan, training_presets()), key=lambda one: -one.behind)
    columns = (
        *headings("run", "published layout"),
        Column(label="step", unit="s", spec="time"),
        Column(label="the planner's layout"),
        Column(label="step", unit="s", spec="time"),
        Column(label="longer by", spec=".1%"),
        *headings("most of it", "told apart"),
    )
    near, far = found[-1], found[0]
    return Table(
        columns=columns,
        rows=tuple(map(_row, found)),
        values={
            "presets": Named(len(found)),
            "same": Named(sum(not one.apart for one in found)),
            "layouts": Named(sum(one.layouts for one in found)),
            "median": Named(median(one.behind for one in found)),
            "least": Named(near.behind),
            "nearest": Named(_title(near)),
            "most": Named(far.behind),
            "farthest": Named(_title(far)),
            "recomputing": Named(sum(one.loses_by[0] == "repeated" for one in found)),
            "sharded": Named(sum(one.best.setup.gathers > 0 for one in found)),
            **step_interval(*(one.published for one in found)),
        },
    )


def _title(found: PublishedPlan) -> str:
    return catalog.preset(found.preset).title


def _row(found: PublishedPlan) -> tuple[Scalar, ...]:
    term, share = found.loses_by
    return (
        _title(found),
        layout_words(found.published.setup),
        found.published.predicted.step_time_s,
        layout_words(found.best.setup),
        found.best.predicted.step_time_s,
        found.behind,
        f"{TERMS[term]}, {share:.0%}" if share > 0.005 else "–",
        "yes" if found.apart else "no",
    )
