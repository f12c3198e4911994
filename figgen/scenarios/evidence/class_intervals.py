"""Intervals of predictions, from the errors of publishers who were left out of the fit.

A publisher has a mean error, and its runs scatter around it. Both spreads are estimated over the
publishers of a class and shrunk toward those of all publishers, as if `PRIOR` more publishers had
them; the mean is shrunk as if one more publisher had it. An interval contains the share `NOMINAL`
of a new publisher's runs, by a Student distribution with both spreads and as many degrees of
freedom as there are publishers.

A class that fewer than `FEWEST` houses have timed takes the publishers of the next wider class: its
stack, then its chips, then all dense models or all mixtures of experts. A class that nobody has
timed has an interval that spans those of all these groups.

These intervals are printed (`figgen.catalog.residuals`). `coverages` counts how many of a
publisher's runs lie in the interval that other publishers' runs give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, floor, log, sqrt

import numpy as np
from numpy.typing import NDArray

from figgen.catalog.residuals import Residuals
from figgen.scenarios.evidence.publishers import Judged, by_class, by_publisher, other_houses
from figgen.scenarios.runs.class_ends import UNKNOWN, wider_names
from figgen.scenarios.runs.classes import RunClass

NOMINAL = 0.8
FEWEST = 4
"""Houses that a class needs for its interval to come from it alone."""

PRIOR = 3
"""Number of publishers that the spreads of all publishers count for in those of a class."""

FEWEST_RUNS = 3
"""Runs that a publisher needs for their spread to count."""

TEN_RUNS = 10
"""Runs that a publisher needs for its coverage to be reported."""

PRINTED = 100
"""Ends of intervals are multiples of one over this."""

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
        """Return the ends, rounded outward as they are printed, for a run in whose prediction the
        constants leave a variance of `unsure`."""
        half = self.quantile * sqrt(self.variance + max(0.0, unsure - self.unsure))
        low, high = exp(self.middle - half), exp(self.middle + half)
        return floor(PRINTED * low) / PRINTED, ceil(PRINTED * high) / PRINTED


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
    by_stack, by_chips, every = wider_names(wanted.stack, wanted.chips, wanted.experts)
    alike = [one for one in judged if one.published.run_class.experts == wanted.experts]
    classes = [(one, one.published.run_class) for one in alike]
    return [
        (wanted.name, [one for one, found in classes if found == wanted]),
        (
            by_stack,
            [one for one, found in classes if found.stack == wanted.stack],
        ),
        (
            by_chips,
            [one for one, found in classes if found.chips == wanted.chips],
        ),
        (every, alike),
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
        level = UNKNOWN
        likely = [likely_of(found, everybody) for _, found in around if found]
    return ClassInterval(
        name=wanted.name,
        level=level,
        publishers=len({one.published.publisher for one in rows}),
        houses=len({one.published.house for one in rows}),
        runs=len(rows),
        likely=tuple(likely),
    )


def class_residuals(judged: Sequence[Judged]) -> list[Residuals]:
    """Return the interval of every class that somebody has timed, and of the wider groups."""
    everybody, found = spread_of(judged), dict[str, Residuals]()
    for rows in by_class(judged).values():
        wanted = rows[0].published.run_class
        own = interval_of(wanted, judged)
        found[own.name] = _entry(own.name, own.ends(), rows)
        for name, group in levels(wanted, judged)[1:]:
            found[name] = _entry(name, likely_of(group, everybody).ends(), group)
    return [found[name] for name in sorted(found)]


def _entry(name: str, ends: tuple[float, float], rows: Sequence[Judged]) -> Residuals:
    publishers = len(by_publisher(rows))
    return Residuals(name=name, publishers=publishers, runs=len(rows), low=ends[0], high=ends[1])


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
