"""Steps that were timed with several exchanges between context ranks, beside their predictions."""

from __future__ import annotations

from figgen import catalog
from figgen.catalog.options_timed import timed_options
from figgen.charts import Column, Named, Scalar, Table
from figgen.figures.training.step import step_interval
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.options.resolve import TrainingStep, training_step

WAYS = {"p2p": "ring", "all-to-all": "all-to-all"}
"""The exchanges that are compared with a gather, and their names in the table."""


@figure("cp-measured")
def cp_measured() -> Table:
    """How many times as long a step takes as with a gather, measured and predicted."""
    rows: list[tuple[Scalar, ...]] = []
    measured, predicted = [], []
    steps: list[TrainingStep] = []
    for timed in timed_options("context_exchange"):
        found = {way: training_step(**timed.job, context_exchange=way) for way in timed.seconds}
        steps += found.values()
        times = {way: one.predicted.step_time_s for way, one in found.items()}
        for way in [way for way in WAYS if way in timed.seconds]:
            measured.append(timed.seconds[way] / timed.seconds["all-gather"])
            predicted.append(times[way] / times["all-gather"])
            title = catalog.model(timed.job["model"]).title
            job = (title, timed.job["cp"], float(timed.job["sequence"]), WAYS[way])
            seconds = (timed.seconds["all-gather"], timed.seconds[way])
            rows.append((*job, *seconds, measured[-1], predicted[-1]))
    columns = (
        Column(label="model"),
        Column(label="CP"),
        Column(label="tokens", spec=","),
        Column(label="exchange"),
        *headings("step with a gather", "with this exchange", unit="s", spec="time"),
        *headings("ratio measured", "ratio predicted", spec=".2f"),
    )
    off = [mine / theirs - 1 for mine, theirs in zip(predicted, measured, strict=True)]
    values: dict[str, Named] = {
        "rows": Named(len(rows)),
        "most_over": Named(max(off)),
        "most_under": Named(-min(off)),
    }
    return Table(columns=columns, rows=tuple(rows), values=values | step_interval(*steps))
