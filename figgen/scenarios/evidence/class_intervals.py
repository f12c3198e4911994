"""Intervals of predictions from the errors of publishers who were left out.

A publisher errs as a whole, and its runs err around that. Both spreads are estimated over the
publishers of a class and drawn toward those of all publishers as if `PRIOR` more publishers had
them; so is the mean, as if one more publisher had it. A new publisher's runs lie where both spreads
together put them, at `NOMINAL` of a Student distribution with as many degrees of freedom as there
are publishers.

A class that fewer than `FEWEST` houses have timed takes the publishers of the next wider one: its
stack, then its chips, then all dense models or all mixtures of experts. One that nobody has timed
takes the widest interval that there is.
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
"""Houses that a class must have for its interval to come from it alone, and from which on what they
took widens the interval of a residual class."""

PRIOR = 3
"""How many publishers the spreads of all publishers count for in that of a class."""

FEWEST_RUNS = 3
"""Runs of a publisher from which they say how far they lie apart."""

TEN_RUNS = 10
"""Runs of a publisher from which its coverage is asked for."""

NOBODY = "nobody has published a time of this"

STUDENT = (
    (3, 1.638), (4, 1.533), (5, 1.476), (6, 1.440), (8, 1.397), (10, 1.372), (15, 1.341),
    (30, 1.310), (1000, 1.282),
)  # fmt: skip
"""Ends of the middle eight of ten of Student's distribution, by degrees of freedom."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Likely:
    """Where a new publisher's runs are likely to lie, in logarithms of measured over predicted.

    `unsure` is the variance that constants leave to the predictions of the runs that this is from.
    """

    middle: float
    variance: float
    quantile: float
    unsure: float

    def ends(self, unsure: float = 0.0) -> tuple[float, float]:
        """Low and high for a run to whose prediction constants leave a variance of `unsure`."""
        half = self.quantile * sqrt(self.variance + max(0.0, unsure - self.unsure))
        return exp(self.middle - half), exp(self.middle + half)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassInterval:
    """Measured over predicted seconds of a class of runs: eight of ten between `low` and `high`.

    `level` are the runs that it comes from in words, which `publishers` of several `houses` made;
    with several that are `likely` it reaches from the lowest to the highest.
    """

    name: str
    level: str
    publishers: int
    houses: int
    runs: int
    likely: tuple[Likely, ...]

    def ends(self, unsure: float = 0.0) -> tuple[float, float]:
        """Low and high for a run to whose prediction constants leave a variance of `unsure`."""
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
    """Of publishers: the logarithms of their means, how far these and their runs are apart.

    `unsure` is the variance that constants leave to their predictions.
    """

    means: Floats
    between: float
    within: float
    counted: int
    unsure: float


def spread_of(judged: Sequence[Judged]) -> Spread:
    """The spreads of some runs by their publishers."""
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
    """Where the runs of a new publisher among these are likely to lie."""
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
    """Ever wider groups of runs around a class, with their names."""
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
    """The interval of a class from some publishers' runs; the widest for one that nobody timed."""
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
    """Low and high of what other publishers' runs of a class took, by class of residuals.

    Of classes that `SEVERAL` houses or more have timed: where one house has, leaving it out shows
    how far off constants are that nothing fitted, and not how far others lie.
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
    """Low and high of what nobody has timed, dense or with experts."""
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
    """The share of a publisher's runs that lie in the intervals that others alone make.

    `width` is the mean width of these intervals in logarithms, and `score` their mean
    `interval_score`.
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
    """Winkler's score of an interval in logarithms: its width, and by how much a run misses it.

    A miss counts 2 / (1 - `NOMINAL`) times, so that neither wide nor bold intervals gain.
    """
    outside = max(0.0, log(low) - log_ratio, log_ratio - log(high))
    return log(high / low) + 2 / (1 - NOMINAL) * outside


def coverages(judged: Sequence[Judged]) -> list[Coverage]:
    """Every publisher's coverage with its house left out, of the fit and of the intervals."""
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
