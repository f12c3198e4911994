"""Tables of the page about verdicts: solved threads with their first reasons, and all causes."""

from __future__ import annotations

from figgen.catalog.slow_threads import unseen_score
from figgen.charts import Column, Named, Table
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.verdict.causes import CAUSES
from figgen.scenarios.verdict.threads import FIRST, JudgedThread, judged_threads

COLUMNS = (
    Column(label="thread"),
    Column(label="measured over predicted", spec=".2f"),
    Column(label="cause"),
    Column(label="place", spec="d"),
    Column(label="named first"),
)


@figure("verdict-threads")
def verdict_threads(*, apart: bool = False) -> Table:
    """Solved threads: measured over predicted, the cause, and the rank at which it is named.

    With `apart`, only the held-out threads are shown.
    """
    judged = judged_threads(apart)
    found = sum(one.found for one in judged)
    unseen_found, unseen = unseen_score()
    return Table(
        columns=COLUMNS,
        rows=tuple(_row(one) for one in judged),
        values={
            "threads": Named(len(judged)),
            "found": Named(found),
            "share": Named(found / len(judged)),
            "first": Named(FIRST),
            "unseen": Named(unseen),
            "unseen_found": Named(unseen_found),
        },
    )


def _row(one: JudgedThread) -> tuple[str, float, str, int, str]:
    first = ", ".join(reason.name for reason in one.verdict.reasons[:FIRST])
    causes = " or ".join(one.thread.causes)
    return one.thread.name, one.verdict.ratio, causes, one.place, first


@figure("verdict-causes")
def verdict_causes() -> Table:
    """The causes that a verdict considers, each with its sign."""
    rows = tuple((name, cause.title, cause.tell) for name, cause in CAUSES.items())
    return Table(
        columns=headings("name", "cause", "how to tell"),
        rows=rows,
        values={"causes": Named(len(rows))},
    )
