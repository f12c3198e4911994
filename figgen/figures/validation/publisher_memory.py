"""Errors of predicted memory peaks by publisher and by the kind of peak that each prints."""

from __future__ import annotations

from statistics import fmean

from figgen.catalog.publishers import publisher_records
from figgen.charts import Column, Named, Table
from figgen.models.setup.framework_memory import framework_memory
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.evidence.publisher_peaks import PublisherPeak, publisher_peaks

COLUMNS = (
    *headings("publisher", "kind of peak", "habits taken from"),
    Column(label="runs", spec=",d"),
    Column(label="mean error", spec=".1%"),
    Column(label="bias", spec="+.1%"),
)


@figure("validation-publisher-memory")
def validation_publisher_memory() -> Table:
    """Predicted over printed peaks of publishers who had no part in any fit, by kind."""
    grouped: dict[tuple[str, str, str], list[PublisherPeak]] = {}
    for one in publisher_peaks():
        habits = framework_memory(one.habits).label
        grouped.setdefault((one.publisher, one.kind, habits), []).append(one)
    rows = tuple(
        (
            *names,
            len(found),
            fmean(abs(one.error) for one in found),
            fmean(one.error for one in found),
        )
        for names, found in sorted(grouped.items())
    )
    return Table(
        columns=COLUMNS,
        rows=rows,
        values={
            "runs": Named(len(publisher_peaks())),
            "publishers": Named(len({publisher for publisher, _, _ in grouped})),
            "aside": Named(sum(bool(one.get("peak_doubt")) for one in publisher_records())),
        },
    )
