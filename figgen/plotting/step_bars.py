"""Compare steps as bars: computing, idle, and exposed communication by axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from figgen.charts import Axis, Bars, Segment, Values
from figgen.models.step.step import StepEstimate
from figgen.plotting.words import hue, label_of

ROLES = {"computing": "series-2", "pipeline idle": "idle"}


def step_parts(estimate: StepEstimate) -> dict[str, float]:
    """Return the seconds of a step by kind; an axis means its exposed communication."""
    return {
        "computing": estimate.compute_s + estimate.recompute_s,
        "pipeline idle": estimate.bubble_s,
        **dict(estimate.exposed),
    }


def step_bars(
    labels: tuple[str, ...], steps: Sequence[Mapping[str, float]], values: Values
) -> Bars:
    """Return one bar for each of `steps`, divided by `step_parts`, without parts that are all 0."""
    names = dict.fromkeys(name for parts in steps for name in parts)
    lengths = {name: tuple(parts.get(name, 0.0) for parts in steps) for name in names}
    return Bars(
        labels=labels,
        segments=tuple(
            Segment(
                name=name if name in ROLES else label_of(name),
                role=ROLES.get(name) or hue(name),
                lengths=each,
            )
            for name, each in lengths.items()
            if any(each)
        ),
        axis=Axis(label="time of a step", unit="s", low=0.0, spec="time"),
        values=values,
    )
