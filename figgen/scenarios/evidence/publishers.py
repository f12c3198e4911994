"""Errors of predictions by publisher, with the publisher's house in the fit and left out of it.

A predictor is a function from described runs to seconds, so any model of time can be judged in the
same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from figgen.catalog.publishers import publisher_records, publishers
from figgen.catalog.rates import constants, left_out_constants
from figgen.lookups import remembered
from figgen.scenarios.evidence.calibrate import Predictor
from figgen.scenarios.evidence.left_out import left_out_predictions
from figgen.scenarios.evidence.measured import measured_runs, shown_runs
from figgen.scenarios.evidence.publisher_names import house_of, publisher_of
from figgen.scenarios.evidence.split import publisher_side
from figgen.scenarios.runs.classes import RunClass, run_class
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.record import described_run

Floats: TypeAlias = NDArray[np.float64]
Predict: TypeAlias = Callable[[Sequence[DescribedRun]], Floats]
"""Returns the step seconds of every run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRun:
    """A run with a known time, its publisher, its class, and a doubt about it, if any.

    Runs are `fitted` if they had a part in the fit of the constants.
    """

    run: DescribedRun
    publisher: str
    run_class: RunClass
    doubt: str
    fitted: bool

    @property
    def house(self) -> str:
        return house_of(self.publisher)

    @property
    def measured_s(self) -> float:
        return float(self.run.step_time_s or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A published run with its predicted seconds, its house in the fit and left out.

    `unsure` is the variance that the constants leave in the logarithm of the left-out prediction.
    `without_s` holds the seconds without each house of the fit.
    """

    published: PublishedRun
    predicted_s: float
    left_out_s: float
    unsure: float = 0.0
    without_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def error(self) -> float:
        """Predicted over measured, less one; positive if the prediction is too slow."""
        return self.predicted_s / self.published.measured_s - 1

    @property
    def left_out_error(self) -> float:
        """Error of the prediction with the publisher's house left out of the fit."""
        return self.left_out_s / self.published.measured_s - 1

    @property
    def log_ratio(self) -> float:
        """Logarithm of measured over left-out predicted time, from which intervals are made."""
        return float(np.log(self.published.measured_s / self.left_out_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupErrors:
    """Errors of a group of runs, with the house of each in the fit and left out."""

    name: str
    publishers: int
    runs: int
    mean_absolute: float
    bias: float
    left_out_mean_absolute: float
    left_out_bias: float


@remembered(1)
def published_runs() -> tuple[PublishedRun, ...]:
    """Return every run with a time, doubtful ones included, except fine-tuning with adapters."""
    found = []
    for record in publisher_records():
        if "training" not in record and "step_time_s" in record:
            run = described_run(record)
            found.append(
                PublishedRun(
                    run=run,
                    publisher=record["publisher"],
                    run_class=run_class(run),
                    doubt=record.get("doubt", ""),
                    fitted=False,
                )
            )
    for run in (*measured_runs(), *shown_runs()):
        if run.step_time_s is not None:
            doubt = "slower than its neighbours in the sweep" if run.suspect else ""
            found.append(
                PublishedRun(
                    run=run,
                    publisher=publisher_of(run),
                    run_class=run_class(run),
                    doubt=doubt,
                    fitted=True,
                )
            )
    return tuple(found)


def filtered_records() -> dict[str, int]:
    """Return how many of the publishers' records are excluded, by reason."""
    reasons = [
        record.get("training") or ("no time" if "step_time_s" not in record else "")
        for record in publisher_records()
    ]
    return {reason: reasons.count(reason) for reason in sorted(set(reasons)) if reason}


def catalog_seconds(runs: Sequence[DescribedRun]) -> Floats:
    """Return the predictions with the constants of the catalog."""
    return Predictor(runs, ())(np.zeros(0))


def seconds_without(house: str, runs: Sequence[DescribedRun]) -> Floats:
    """Return the predictions with constants fitted without a house."""
    values = left_out_constants().get(house)
    if values is None:
        return catalog_seconds(runs)
    free = [constant for constant in constants().values() if constant.name in values]
    return Predictor(runs, free)(np.log([values[constant.name] for constant in free]))


def judge(
    predict: Predict, without: Callable[[str, Sequence[DescribedRun]], Floats]
) -> tuple[Judged, ...]:
    """Return every undoubted run with its predictions, its house in the fit and left out."""
    runs = [published for published in published_runs() if not published.doubt]
    seconds = predict([published.run for published in runs])
    left_out = np.array(seconds, dtype=float)
    for house in sorted({published.house for published in runs if published.fitted}):
        rows = [at for at, published in enumerate(runs) if published.house == house]
        left_out[rows] = without(house, [runs[at].run for at in rows])
    return tuple(
        Judged(published=published, predicted_s=float(one), left_out_s=float(other))
        for published, one, other in zip(runs, seconds, left_out, strict=True)
    )


@remembered(1)
def judged_publishers() -> tuple[Judged, ...]:
    """Return `judge` with the constants of the catalog, and the uncertainty they leave."""
    judged = judge(catalog_seconds, seconds_without)
    runs = [one.published.run for one in judged]
    found = left_out_predictions(runs, [one.published.house for one in judged])
    return tuple(
        replace(
            one,
            unsure=float(found.unsure[at]),
            without_s={house: float(seconds[at]) for house, seconds in found.seconds.items()},
        )
        for at, one in enumerate(judged)
    )


def other_houses(house: str, judged: Sequence[Judged]) -> list[Judged]:
    """Return the runs of all other houses, predicted by the constants that leave out `house`.

    Leaving out two houses is assumed to multiply the effects of leaving out each alone.
    """
    return [
        replace(
            one,
            left_out_s=one.left_out_s
            * (one.without_s.get(house, one.predicted_s) / one.predicted_s),
        )
        for one in judged
        if one.published.house != house
    ]


def errors_of_group(name: str, judged: Iterable[Judged]) -> GroupErrors:
    """Return the errors of some runs, at least one."""
    rows = list(judged)
    errors = np.array([one.error for one in rows])
    left_out = np.array([one.left_out_error for one in rows])
    return GroupErrors(
        name=name,
        publishers=len({one.published.publisher for one in rows}),
        runs=len(rows),
        mean_absolute=float(np.abs(errors).mean()),
        bias=float(np.median(errors)),
        left_out_mean_absolute=float(np.abs(left_out).mean()),
        left_out_bias=float(np.median(left_out)),
    )


def by_publisher(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """Return the runs of every publisher, by name."""
    return _grouped(judged, lambda one: one.published.publisher)


def by_class(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """Return the runs of every class, by name."""
    return _grouped(judged, lambda one: one.published.run_class.name)


def _grouped(judged: Sequence[Judged], key: Callable[[Judged], str]) -> dict[str, list[Judged]]:
    found: dict[str, list[Judged]] = {}
    for one in judged:
        found.setdefault(key(one), []).append(one)
    return dict(sorted(found.items()))


def trust_of(publisher: str) -> int | None:
    """Return the trust in a publisher's numbers, 1 to 5, or None for the older tables."""
    known = publishers().get(publisher)
    return None if known is None else known.trust


def side_of(publisher: str) -> str:
    """Return `fitted` for a publisher in the fit, else the side that was assigned beforehand."""
    return publisher_side(publisher) if publisher in publishers() else "fitted"


def mean_of_publishers(judged: Sequence[Judged], *, experts: bool) -> float:
    """Return the mean absolute error of publishers not in the fit, each counted once."""
    rows = [
        one
        for one in judged
        if not one.published.fitted and one.published.run_class.experts == experts
    ]
    means = [
        errors_of_group(name, found).mean_absolute for name, found in by_publisher(rows).items()
    ]
    return float(np.mean(means))
