"""What a fullest expert rank costs a step, beside a job timed with natural and balanced routing."""

from __future__ import annotations

import numpy as np

from figgen.catalog.options_timed import timed_options
from figgen.charts import Axis, Curves, Named, Rule
from figgen.figures.training.step import step_interval
from figgen.plotting.series import line
from figgen.registry import figure
from figgen.scenarios.options.resolve import training_step

SKEWS = tuple(1 + at / 4 for at in range(13))


@figure("expert-skew")
def expert_skew() -> Curves:
    """Predicted step over that of balanced routing, by the load of the fullest expert rank."""
    [timed] = timed_options("routing")
    found = [training_step(**timed.job, expert_skew=skew) for skew in SKEWS]
    times = [one.predicted.step_time_s for one in found]
    ratios = [time / times[0] for time in times]
    measured = timed.seconds["natural"] / timed.seconds["balanced"]
    values = {
        "balanced": Named(timed.seconds["balanced"], "s"),
        "natural": Named(timed.seconds["natural"], "s"),
        "measured": Named(measured),
        "predicted_balanced": Named(times[0], "s"),
        "double": Named(ratios[SKEWS.index(2)]),
        "needed": Named(float(np.interp(measured, ratios, SKEWS))),
    }
    return Curves(
        x=Axis(label="tokens of the fullest rank, over the mean", low=1.0, spec="g"),
        y=Axis(label="step, over balanced routing", low=1.0, spec="g"),
        series=(line("predicted", SKEWS, ratios),),
        rules=(Rule(axis="y", at=measured, label="measured, natural routing"),),
        values=values | step_interval(*found),
    )
