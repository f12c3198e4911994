"""Intervals of predictions, from the errors of publishers who were left out of the fit.

A publisher has a mean error, and its runs scatter around it. Both spreads are estimated over the
publishers of a class and shrunk toward those of all publishers, as if `PRIOR` more publishers had
them; the mean is shrunk as if one more publisher had it. An interval contains the share `NOMINAL`
of a new publisher's runs, by a Student distribution with both spreads and as many degrees of
freedom as there are publishers.

A class that fewer than `FEWEST` houses have timed takes the publishers of the next wider class: its
stack, then its chips, then all dense models or all mixtures of experts. A class that nobody has
timed takes the widest interval of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from figgen.scenarios.evidence.publishers import Judged, by_publisher, other_houses
from figgen.scenarios.runs.classes import RunClass
from figgen.scenarios.runs.residual_classes import UNKNOWN, interval_class

NOMINAL = 0.8
FEWEST, SEVERAL = 4, 2
"""Houses that a class needs for its interval to come from it alone, and for their times to widen
the interval of a residual class."""

PRIOR = 3
"""Number of publishers that the spreads of all publishers count for in those of a class."""

FEWEST_RUNS = 3
"""Runs that a publisher needs for their spread to count."""

TEN_RUNS = 10
"""Runs that a publisher needs for its coverage to be reported."""

NOBODY = "nobody has published a time of this"

STUDENT = (
    (3, 1.638), (4, 1.533), (5, 1.476), (6, 1.440), (8, 1.397), (10, 1.372), (15, 1.341),
    (30, 1.310), (1000, 1.282),
)  # fmt: skip
"""The 90% quantile of Student's distribution, by degrees of freedom."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Likely:
    """Where a new publisher's runs are likely to lie, in logarithms of measured over predicted.

    `unsure` is the variance that the constants leave in the predictions of the runs it comes from.
    """

    middle: float
    variance: float
    quantile: float
    unsure: float

    def ends(self, unsure: float = 0.0) -> tuple[float, float]:
        """Return the ends for a run in whose prediction the constants leave a variance of
        `unsure`."""
        half = self.quantile * sqrt(self.variance + max(0.0, unsure - self.unsure))
        return exp(self.middle - half), exp(self.middle + half)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassInterval:
    """Measured over predicted seconds of a class: eight in ten runs between `low` and `high`.

    `level` describes the runs that the interval comes from, made by `publishers` of `houses`. With
    several `likely` it spans all of them.
    """

    name: str
    level: str
    publishers: int
    houses: int
    runs: int
    likely: tuple[Likely, ...]

    def ends(self, unsure: float = 0.0) -> tuple[float, float]:
        """Return the ends for a run in whose prediction constants leave a variance of `unsure`."""
        ends = [one.ends(unsure) for one in self.likely]
        return min(low for low, _ in ends), max(high for _, high in ends)

    @property
    def low(self) -> float:
        """The low end for runs whose constants are as well known as those of the class."""
        return self.ends()[0]

    @property
    def high(self) -> float:
        """The high end for runs whose constants are as well known as those of the class."""
        return self.ends()[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Log means of publishers, the variance between these means, and that within publishers.

    `unsure` is the variance that the constants leave in their predictions.
    """

    means: Floats
    between: float
    within: float
    counted: int
    unsure: float


def spread_of(judged: Sequence[Judged]) -> Spread:
    """Return the spreads of some runs by their publishers."""
    publishers = list(by_publisher(judged).values())
    logs = [np.array([one.log_ratio for one in rows]) for rows in publishers]
    means = np.array([rows.mean() for rows in logs])
    enough = [float(rows.var(ddof=1)) for rows in logs if len(rows) >= FEWEST_RUNS]
    return Spread(
        means=means,
        between=float(means.var(ddof=1)) if len(means) > 1 else 0.0,
        within=float(np.mean(enough)) if enough else 0.0,
        counted=len(enough),
        unsure=float(np.mean([np.mean([one.unsure for one in rows]) for rows in publishers])),
    )


def likely_of(judged: Sequence[Judged], everybody: Spread) -> Likely:
    """Return where the runs of a new publisher among these are likely to lie."""
    own = spread_of(judged)
    count = len(own.means)
    between = ((count - 1) * own.between + PRIOR * everybody.between) / (count - 1 + PRIOR)
    within = (own.counted * own.within + PRIOR * everybody.within) / (own.counted + PRIOR)
    freedoms, quantiles = zip(*STUDENT, strict=True)
    return Likely(
        middle=float(own.means.sum() + everybody.means.mean()) / (count + 1),
        variance=between * (1 + 1 / count) + within,
        quantile=float(np.interp(count - 1 + PRIOR, np.array(freedoms), np.array(quantiles))),
        unsure=own.unsure,
    )


def levels(wanted: RunClass, judged: Sequence[Judged]) -> list[tuple[str, list[Judged]]]:
    """Return ever wider groups of runs around a class, with their names."""
    kind = "mixtures of experts" if wanted.experts else "dense models"
    alike = [one for one in judged if one.published.run_class.experts == wanted.experts]
    classes = [(one, one.published.run_class) for one in alike]
    return [
        (wanted.name, [one for one, found in classes if found == wanted]),
        (
            f"{kind} on {wanted.stack}",
            [one for one, found in classes if found.stack == wanted.stack],
        ),
        (
            f"{kind} on {wanted.chips}",
            [one for one, found in classes if found.chips == wanted.chips],
        ),
        (f"all {kind}", alike),
    ]


def interval_of(wanted: RunClass, judged: Sequence[Judged]) -> ClassInterval:
    """Return the interval of a class from publishers' runs; the widest if nobody timed it."""
    everybody, around = spread_of(judged), levels(wanted, judged)
    level, rows = next(
        (found for found in around if len({one.published.house for one in found[1]}) >= FEWEST),
        around[-1],
    )
    likely = [likely_of(rows, everybody)]
    if not around[0][1]:
        level = NOBODY
        likely = [likely_of(found, everybody) for _, found in around if found]
    return ClassInterval(
        name=wanted.name,
        level=level,
        publishers=len({one.published.publisher for one in rows}),
        houses=len({one.published.house for one in rows}),
        runs=len(rows),
        likely=tuple(likely),
    )


def strangers_ends(judged: Sequence[Judged]) -> dict[str, tuple[float, float]]:
    """Return the interval of other publishers' runs, by residual class.

    Only classes with `SEVERAL` or more houses are included. If a single house has timed a class,
    leaving it out shows the error of unfitted constants rather than the spread of other houses.
    """
    by_name: dict[str, list[Judged]] = {}
    for one in judged:
        name = interval_class(one.published.run, tuned=False)
        if name != UNKNOWN:
            by_name.setdefault(name, []).append(one)
    timed = {
        experts: spread_of(
            [
                one
                for rows in by_name.values()
                for one in rows
                if experts or not one.published.run_class.experts
            ]
        )
        for experts in (False, True)
    }
    return {
        name: likely_of(rows, timed[rows[0].published.run_class.experts]).ends()
        for name, rows in by_name.items()
        if len({one.published.house for one in rows}) >= SEVERAL
    }


def widest_ends(judged: Sequence[Judged]) -> tuple[float, float]:
    """Return the widest interval, of runs that nobody has timed, dense or with experts."""
    everybody = spread_of(judged)
    ends = [
        likely_of(
            [one for one in judged if one.published.run_class.experts == experts], everybody
        ).ends()
        for experts in (False, True)
    ]
    return min(low for low, _ in ends), max(high for _, high in ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The share of a publisher's runs inside the intervals that other publishers give.

    `width` is the mean width of these intervals in logarithms, `score` their mean `interval_score`.
    """

    publisher: str
    runs: int
    inside: int
    width: float
    score: float

    @property
    def share(self) -> float:
        return self.inside / self.runs


def interval_score(log_ratio: float, low: float, high: float) -> float:
    """Return Winkler's score of an interval in logarithms: its width plus a penalty for a miss.

    The penalty is the distance to the interval times 2 / (1 - `NOMINAL`), so that neither wide nor
    narrow intervals gain.
    """
    outside = max(0.0, log(low) - log_ratio, log_ratio - log(high))
    return log(high / low) + 2 / (1 - NOMINAL) * outside


def coverages(judged: Sequence[Judged]) -> list[Coverage]:
    """Return every publisher's coverage, its house left out of the fit and of the intervals."""
    found = []
    for publisher, rows in by_publisher(judged).items():
        others = other_houses(rows[0].published.house, judged)
        made = {
            name: interval_of(name, others) for name in {one.published.run_class for one in rows}
        }
        ends = [made[one.published.run_class].ends(one.unsure) for one in rows]
        logs = [one.log_ratio for one in rows]
        pairs = [(ratio, *end) for ratio, end in zip(logs, ends, strict=True)]
        found.append(
            Coverage(
                publisher=publisher,
                runs=len(rows),
                inside=sum(low <= exp(ratio) <= high for ratio, low, high in pairs),
                width=float(np.mean([log(high / low) for _, low, high in pairs])),
                score=float(np.mean([interval_score(*pair) for pair in pairs])),
            )
        )
    return found
