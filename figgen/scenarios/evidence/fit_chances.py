"""Whether predicted chances to fit hold for measured peaks and for layouts that failed.

A step fits with a chance of 95% if 95% of peaks are below the memory of its GPU. Of the measured
peaks, that many must lie below the memory promised to suffice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, sqrt
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from figgen.lookups import remembered
from figgen.models.memory.fit_probability import SAFE, USUAL_PEAK_BYTES, fit_probability
from figgen.models.setup.framework_memory import framework_memory
from figgen.models.shape.model_shape import ModelShape
from figgen.scenarios.evidence.peak_spread import NORMAL_95, peak_spread
from figgen.scenarios.evidence.peaks import failed_chances, judged_peaks
from figgen.scenarios.evidence.publisher_names import publisher_of
from figgen.scenarios.evidence.publisher_peaks import publisher_peaks

Floats = NDArray[np.float64]

VARIANTS = {
    "megatron-2024": "megatron",
    "megatron-fused-loss": "megatron",
    "torchtitan-2024": "torchtitan",
    "torchtune-logits": "torchtune",
    "torchtune-eager": "torchtune",
    "deepspeed-liger": "deepspeed",
    "prime-rl-logits": "prime-rl",
}
"""Frameworks that are variants of another, whose peaks count together."""

UNKNOWN = "unknown"

SWEPT = "nanotron"
"""The software of the sweep whose layouts ran or failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakError:
    """A printed peak and its prediction.

    `software` is the software whose memory habits the framework `habits` takes. `gathered_bytes`
    are the two inputs that a layer gathers from tensor-parallel ranks.
    """

    software: str
    habits: str
    publisher: str
    shape: ModelShape
    measured_bytes: float
    predicted_bytes: float
    gathered_bytes: float

    @property
    def spread(self) -> float:
        """The relative standard deviation that the site uses for this framework."""
        return framework_memory(self.habits).peak_spread

    @property
    def unseen_spread(self) -> float:
        """The standard deviation that it would use without the peaks of this publisher."""
        return spread_without(self.software, self.publisher)

    def promised(self, spread: float) -> float:
        """The chance with which a GPU of exactly this size would have been promised to suffice."""
        waiting = framework_memory(self.habits).waiting_pairs * self.gathered_bytes
        return fit_probability(self.predicted_bytes, self.measured_bytes, spread, waiting)


@remembered(2)
def peak_errors(habits: str | None = None) -> tuple[PeakError, ...]:
    """Return all printed peaks, except those predicted as unknown software.

    With `habits`, return those of publishers, predicted with the habits of that framework.
    """
    found = [
        PeakError(
            software=VARIANTS.get(one.run.memory_habits, one.run.memory_habits),
            habits=one.run.memory_habits,
            publisher=publisher_of(one.run),
            shape=one.run.shape,
            measured_bytes=one.measured_bytes,
            predicted_bytes=one.modelled_bytes,
            gathered_bytes=one.gathered_bytes,
        )
        for one in (judged_peaks() if habits is None else ())
    ] + [
        PeakError(
            software=VARIANTS.get(one.habits, one.habits),
            habits=one.habits,
            publisher=one.publisher,
            shape=one.shape,
            measured_bytes=one.measured_bytes,
            predicted_bytes=one.predicted_bytes,
            gathered_bytes=one.gathered_bytes,
        )
        for one in publisher_peaks(habits)
    ]
    return tuple(one for one in found if one.habits != UNKNOWN or habits == UNKNOWN)


def rms(errors: Iterable[float]) -> float:
    """Return the root mean square."""
    return sqrt(fmean(error**2 for error in errors))


def width(errors: Iterable[float]) -> float:
    """Return the standard deviation of a normal distribution around 0 that is as wide as errors.

    It is the root mean square of the errors, or where peaks far above their prediction are more
    frequent than a normal distribution has them, what puts its 95 % quantile at theirs.
    """
    listed = sorted(errors)
    return max(rms(listed), listed[ceil(SAFE * len(listed)) - 1] / NORMAL_95)


@dataclass(frozen=True, slots=True)
class PublisherSpread:
    """A relative standard deviation of peaks, and that of pairs of inputs that wait."""

    peaks: float
    waiting_pairs: float

    def variances(self, errors: Sequence[PeakError]) -> Floats:
        """Return the variance of each peak in bytes squared."""
        squares = np.array([self.peaks**2, self.waiting_pairs**2])
        return np.asarray(squares @ _growths(errors))

    def log_likelihood(self, errors: Sequence[PeakError]) -> float:
        """Return the natural logarithm of the likelihood of peaks, up to a constant."""
        variances = self.variances(errors)
        return float(-(np.log(variances) + _squares(errors) / variances).sum() / 2)


def _squares(errors: Sequence[PeakError]) -> Floats:
    return np.array([(one.measured_bytes - one.predicted_bytes) ** 2 for one in errors])


def _growths(errors: Sequence[PeakError]) -> Floats:
    """Return what multiplies both squares of a `PublisherSpread` in the variance of each peak."""
    return np.array(
        [
            [USUAL_PEAK_BYTES * one.predicted_bytes for one in errors],
            [one.gathered_bytes**2 for one in errors],
        ],
        dtype=np.float64,
    )


ROUNDS = 2000
"""Rounds after which the likeliest spread stays the same to four digits."""


def likeliest(errors: Sequence[PeakError], waits: bool) -> PublisherSpread:
    """Return the spread of the greatest likelihood; no inputs wait unless `waits`.

    Each round multiplies both variances by a factor that never lowers the likelihood: Zhou, Hu,
    Zhou and Lange, MM algorithms for variance components models, 2019, arXiv:1509.07426.
    """
    squares, growths = _squares(errors), _growths(errors)
    found = np.array([0.01, 100.0 if waits else 0.0])
    for _ in range(ROUNDS):
        variances = found @ growths
        pull = growths @ (squares / variances**2)
        found = found * np.sqrt(pull / np.maximum(growths @ (1 / variances), 1e-300))
    return PublisherSpread(float(sqrt(found[0])), float(sqrt(found[1])))


@remembered(64)
def spread_of(software: str, publisher: str) -> PublisherSpread:
    """Return the spread of a publisher's peaks."""
    errors = [
        one for one in peak_errors() if (one.software, one.publisher) == (software, publisher)
    ]
    return widened(errors, waits=framework_memory(software).waiting_pairs > 0)


def widened(errors: Sequence[PeakError], waits: bool) -> PublisherSpread:
    """Return the likeliest spread, widened to the `width` of the errors."""
    found = likeliest(errors, waits)
    deviations = np.sqrt(found.variances(errors))
    off = [
        (one.measured_bytes - one.predicted_bytes) / float(deviation)
        for one, deviation in zip(errors, deviations, strict=True)
    ]
    factor = max(1.0, width(off))
    return PublisherSpread(factor * found.peaks, factor * found.waiting_pairs)


def errors_by_publisher() -> Mapping[tuple[str, str], float]:
    """Return the spreads of peaks by software and publisher, in alphabetical order."""
    pairs = sorted({(one.software, one.publisher) for one in peak_errors()})
    return {pair: spread_of(*pair).peaks for pair in pairs}


@remembered(64)
def spread_without(software: str, publisher: str) -> float:
    """Return the spread of a software's peaks without those of a publisher."""
    known = {pair: error for pair, error in errors_by_publisher().items() if pair[1] != publisher}
    own = tuple(error for (of, _), error in known.items() if of == software)
    return peak_spread(own, rms(known.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class PeaksBelow:
    """Of `peaks` peaks, how many lie below what `chance` promises, as shown and left out."""

    chance: float
    peaks: int
    below: int
    unseen_below: int


def held(errors: Iterable[PeakError], chance: float = SAFE) -> PeaksBelow:
    """Return how many peaks lie below what a chance promises."""
    listed = tuple(errors)
    return PeaksBelow(
        chance=chance,
        peaks=len(listed),
        below=sum(one.promised(one.spread) <= chance for one in listed),
        unseen_below=sum(one.promised(one.unseen_spread) <= chance for one in listed),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOutcome:
    """Layouts with a predicted chance of `low` to `high`: how many ran and how many failed."""

    low: float
    high: float
    ran: int
    failed: int

    @property
    def share(self) -> float:
        """The share of layouts that ran."""
        return self.ran / (self.ran + self.failed)


EDGES = (1.0, SAFE, 0.8, 0.5, 0.2, 1 - SAFE, 0.0)
"""Chances that separate the groups in which the sweep's layouts are counted."""


def outcomes() -> tuple[FitOutcome, ...]:
    """Return the layouts of nanotron's sweep by predicted chance to fit, likeliest first.

    What failed may have crashed for a reason other than memory.
    """
    ran = [one.chance for one in judged_peaks() if one.run.framework == SWEPT]
    failed = list(failed_chances())
    return tuple(
        FitOutcome(
            low=low,
            high=high,
            ran=sum(low <= chance < high or chance == high == 1 for chance in ran),
            failed=sum(low <= chance < high or chance == high == 1 for chance in failed),
        )
        for high, low in pairwise(EDGES)
    )
