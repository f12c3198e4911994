"""Two layouts of one job drift apart by rounding; a bug shows in the first step."""

from __future__ import annotations

import math
from itertools import islice

from figgen.charts import Axis, Curves, Named
from figgen.errors import check_between
from figgen.models.machine.layout_drift import DriftRun, trained
from figgen.plotting.series import line
from figgen.registry import figure

RANKS = 8
REFERENCE = DriftRun()
OTHERS = {
    "seed": ("another seed", DriftRun(seed=6), REFERENCE),
    "bug": ("a rank forgotten", DriftRun(ranks=RANKS, left_out=RANKS - 1), REFERENCE),
    "bf16": ("added in BF16", DriftRun(ranks=RANKS, narrow=True), DriftRun(narrow=True)),
    "fp32": ("added in FP32", DriftRun(ranks=RANKS), REFERENCE),
}
"""Runs next to the one on a single GPU: title, the run, and what it is held against."""


@figure("layout-drift")
def layout_drift(*, steps: int = 1000) -> Curves:
    """Relative distance between the weights of one job on eight ranks and on one, over steps.

    Other lines show other batches, and a sum that leaves out one rank.
    """
    check_between("steps", steps, 10, 10_000)
    shown = sorted({round(10 ** (k / 8)) for k in range(8 * 5)} & set(range(1, steps + 1)))
    references = {run: _weights(run, shown) for run in {run for _, _, run in OTHERS.values()}}
    lines, values = [], {"ranks": Named(RANKS), "steps": Named(steps)}
    for index, (key, (title, run, against)) in enumerate(OTHERS.items()):
        apart = [
            _apart(mine, other)
            for mine, other in zip(_weights(run, shown), references[against], strict=True)
        ]
        lines.append(line(title, map(float, shown), apart, index))
        values |= {f"{key}_first": Named(apart[0]), f"{key}_last": Named(apart[-1])}
    return Curves(
        x=Axis(label="step", scale="log10", spec=",.0f"),
        y=Axis(label="distance of the weights over their norm", scale="log10"),
        series=tuple(lines),
        values=values,
    )


def _weights(run: DriftRun, shown: list[int]) -> list[list[float]]:
    every = dict(enumerate(islice(trained(run, shown[-1]), shown[-1]), 1))
    return [every[step].tolist() for step in shown]


def _apart(mine: list[float], other: list[float]) -> float:
    difference = math.fsum((a - b) ** 2 for a, b in zip(mine, other, strict=True))
    return math.sqrt(difference / math.fsum(b * b for b in other))
