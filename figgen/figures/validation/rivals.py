"""Other open models of training time next to ours, on the test runs that each can express."""

from __future__ import annotations

from figgen.catalog.rivals import rivals
from figgen.charts import Column, Named, Table
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.evidence.leaderboard import board
from figgen.scenarios.evidence.rivals import RUN_GROUPS, Comparison, comparisons, refusals


@figure("validation-rivals")
def validation_rivals() -> Table:
    """Errors of each tool with its documented and its fitted constant, and ours on its runs."""
    compared = comparisons()
    return Table(
        columns=(
            *headings("runs", "tool", "constant"),
            Column(label="test runs", spec=",d"),
            *headings("mean error", "median", spec=".1%"),
            Column(label="worst", spec="+.0%"),
            *headings("ours: mean", "median", spec=".1%"),
            Column(label="worst", spec="+.0%"),
        ),
        rows=tuple(row for one in compared for row in _rows(one)),
        values=_values(compared),
    )


def _rows(one: Comparison) -> list[tuple[str | int | float, ...]]:
    constants = (
        (f"{one.rival.documented:g}, documented", one.documented),
        (f"{one.rival.fitted[one.kind]:g}, fitted", one.fitted),
    )
    return [
        (
            one.kind,
            one.rival.name,
            words,
            theirs.runs,
            theirs.mean_absolute,
            theirs.median_absolute,
            theirs.worst,
            one.ours.mean_absolute,
            one.ours.median_absolute,
            one.ours.worst,
        )
        for words, theirs in constants
    ]


def _values(compared: list[Comparison]) -> dict[str, Named]:
    dense = [one for one in compared if one.kind == RUN_GROUPS[0]]
    return {
        "comparisons": Named(len(compared)),
        "ahead": Named(sum(one.ours.mean_absolute < _best(one) for one in compared)),
        "dense_best": Named(min(_best(one) for one in dense)),
        "dense_ours": Named(max(one.ours.mean_absolute for one in dense)),
        "tools": Named(len(rivals())),
    }


def _best(one: Comparison) -> float:
    return min(one.documented.mean_absolute, one.fitted.mean_absolute)


@figure("validation-refusals")
def validation_refusals() -> Table:
    """The options that each tool lacks, and the test runs that this excludes."""
    rows = [
        (rival.name, rival.version, rival.date, f"{rival.constant}", reason, count)
        for name, rival in rivals().items()
        for reason, count in refusals()[name].items()
    ]
    return Table(
        columns=(
            *headings("tool", "version", "run on", "its constant", "what it has no word for"),
            Column(label="test runs left out", spec=",d"),
        ),
        rows=tuple(rows),
        values={"reasons": Named(len(rows))},
    )


@figure("leaderboard")
def leaderboard() -> Table:
    """Predictors on the frozen runs of publishers who had no part in any fit, the best first."""
    rows = board()
    ours = next(row for row in rows if not row.source)
    return Table(
        columns=(
            *headings("predictor", "version"),
            *headings("runs answered", "publishers", spec=",d"),
            *headings("mean error", "median", spec=".1%"),
            Column(label="within 25%", spec=".0%"),
            Column(label="this site on the same runs", spec=".1%"),
        ),
        rows=tuple(
            (
                row.name,
                row.version,
                row.runs,
                row.publishers,
                row.mean_absolute,
                row.median_absolute,
                row.within_quarter,
                row.ours,
            )
            for row in rows
        ),
        values={
            "predictors": Named(len(rows)),
            "runs": Named(ours.runs),
            "publishers": Named(ours.publishers),
            "ours": Named(ours.mean_absolute),
            "our_median": Named(ours.median_absolute),
            "best_other": Named(min(row.mean_absolute for row in rows if row.source)),
            "most_within": Named(max(row.within_quarter for row in rows)),
            "best_other_median": Named(min(row.median_absolute for row in rows if row.source)),
        },
    )
