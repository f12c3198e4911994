"""Ranks the likeliest reasons for a measured time.

A cause explains a time as a multiple of the predicted one. A mistake's factor lies between its
least and its largest, uniformly in the logarithm, and the errors of the class's runs scatter around
it. The resulting density at the measured time, times the frequency of the cause in solved threads,
ranks it. A choice of the job is already part of the prediction. It counts to the degree that the
prediction explains the time, weighted by the share of the step that it costs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import erf, exp, log, pi, sqrt

from figgen.scenarios.verdict.causes import AS_PREDICTED, CAUSES, SlowCause
from figgen.scenarios.verdict.changed import TimedJob

FEW_STEPS = 10
"""With fewer logged steps than this, most of them may be warm-up."""

EIGHT_OF_TEN = 1.2816
"""Half-width, in standard deviations, of an interval that contains eight in ten."""

LEAST_SPREAD = 0.1
"""Least standard deviation of the log time of a class."""

PART = 0.15
"""Weight of a cause that explains only part of the gap, as a factor of that part."""

MATTERS, NAMED = 1.02, 1.1
"""Factors below which a cause has no effect, and above which people report it."""

UNSURE = 0.2
"""Standard deviation of the logarithm of a mistake's factor."""

FULL = 0.92
"""Share of a GPU's memory above which the allocator may have to free memory and retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A likely reason for a measured time.

    `worth_s` is the range of seconds that removing it would save in the measured step, or None if
    the model cannot tell.
    """

    name: str
    title: str
    tell: str
    score: float
    worth_s: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSpread:
    """Mean and standard deviation of log(measured/predicted) for a class."""

    middle: float
    deviation: float

    def density(self, ratio: float, least: float, most: float) -> float:
        """Return the density of log `ratio` if a cause multiplies times by `least` to `most`."""
        low, high = min(log(least), log(most)), max(log(least), log(most))
        gap = log(ratio) - self.middle
        if high - low < 1e-3:
            return exp(-(((gap - low) / self.deviation) ** 2) / 2) / self.deviation / sqrt(2 * pi)
        ends = (self._below(gap - low), self._below(gap - high))
        return (ends[0] - ends[1]) / (high - low)

    def _below(self, gap: float) -> float:
        return (1 + erf(gap / self.deviation / sqrt(2))) / 2


def spread_of(low: float, high: float) -> ClassSpread:
    """Return the spread of a class in which eight in ten runs lie between `low` and `high`."""
    deviation = (log(high) - log(low)) / 2 / EIGHT_OF_TEN
    return ClassSpread(middle=(log(high) + log(low)) / 2, deviation=max(LEAST_SPREAD, deviation))


def reasons_of(
    timed: TimedJob,
    measured_s: float,
    spread: ClassSpread,
    *,
    filled: float | None = None,
    steps: int = 0,
) -> list[Reason]:
    """Return all causes that may concern the job, likeliest first; scores sum to 1.

    If the time is within the interval or shorter, the first reason is that it is as predicted.
    `filled` is the share of the GPU's memory in use, if known, and `steps` the number of timed
    steps.
    """
    ratio = measured_s / timed.seconds
    found: list[Reason] = []
    for name, cause in CAUSES.items():
        if name == "memory-full" and (filled is None or filled < FULL):
            continue
        if name == "first-steps" and not 0 < steps < FEW_STEPS:
            continue
        reason = _weighed(name, cause, timed, ratio, spread)
        if reason is not None:
            found.append(reason)
    whole = sum([one.score for one in found]) or 1.0
    inside = log(ratio) - spread.middle <= EIGHT_OF_TEN * spread.deviation
    first = [one for one in found if inside and one.name == AS_PREDICTED]
    rest = [one for one in found if not (inside and one.name == AS_PREDICTED)]
    return [
        replace(one, score=one.score / whole)
        for one in first + sorted(rest, key=lambda one: -one.score)
    ]


def _weighed(
    name: str, cause: SlowCause, timed: TimedJob, ratio: float, spread: ClassSpread
) -> Reason | None:
    """Return a cause with its score and what it is worth, or None if it does not concern the job.

    The score is the density of the measured time under the cause times the cause's frequency.
    """
    score = 0.0
    share: tuple[float, float] | None = None
    concerns = False
    if cause.unseen is not None:
        score, concerns = _explained(spread, ratio, cause.unseen), True
        if name == AS_PREDICTED and log(ratio) < spread.middle:
            # Nothing is wrong with a step that is faster than predicted.
            score = spread.density(exp(spread.middle), 1.0, 1.0)
    mistake, choice = cause.mistake, cause.choice
    times = mistake(timed) if mistake is not None else None
    if times is not None:
        one, other = max(1.0, times[0] / timed.seconds), max(1.0, times[1] / timed.seconds)
        least, most = min(one, other), max(one, other)
        if most >= MATTERS:
            named = (max(least, min(most, NAMED)), most)
            wider = ClassSpread(
                middle=spread.middle, deviation=sqrt(spread.deviation**2 + UNSURE**2)
            )
            score, concerns = _explained(wider, ratio, named), True
            # No mistake hides a step that is faster than runs of the class.
            gap = max(0.0, 1 - exp(spread.middle - EIGHT_OF_TEN * spread.deviation) / ratio)
            share = (min(gap, 1 - 1 / least), min(gap, 1 - 1 / most))
    without = choice(timed) if choice is not None else None
    if without is not None and timed.seconds / without >= MATTERS:
        saved = 1 - without / timed.seconds
        score += 2 * saved * spread.density(max(1.0, ratio) ** 0.5, 1.0, 1.0)
        share, concerns = (saved, saved) if share is None else share, True
    if not concerns:
        return None
    measured_s = ratio * timed.seconds
    worth = None if share is None else (share[0] * measured_s, share[1] * measured_s)
    return Reason(
        name=name, title=cause.title, tell=cause.tell, score=score * cause.prior, worth_s=worth
    )


def _explained(spread: ClassSpread, ratio: float, factors: tuple[float, float]) -> float:
    """Return the density under a cause, with credit for explaining part of a longer time."""
    whole = spread.density(ratio, *factors)
    gap = log(ratio) - spread.middle
    if gap <= 0 or factors[1] <= 1:
        return whole
    return whole + PART * min(1.0, log(factors[1]) / gap) ** 2
