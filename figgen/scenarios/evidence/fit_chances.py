"""Whether predicted chances to fit hold for measured peaks and for layouts that failed.

A step fits with a chance of 95% if 95% of peaks are below the memory of its GPU. Of the measured
peaks, that many must lie below the memory promised to suffice. Peaks that include tensors which the
allocator could reclaim are excluded (`ahead`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log, sqrt
from statistics import fmean

from figgen.lookups import remembered
from figgen.models.memory.fit_probability import SAFE, normal_share
from figgen.models.setup.framework_memory import framework_memory
from figgen.models.setup.peak_spread import NORMAL_95, peak_spread
from figgen.scenarios.evidence.peaks import failed_layouts, judged_peaks
from figgen.scenarios.evidence.publisher_names import publisher_of
from figgen.scenarios.evidence.publisher_peaks import publisher_peaks

VARIANTS = {
    "megatron-2024": "megatron",
    "torchtitan-2024": "torchtitan",
    "torchtune-logits": "torchtune",
    "torchtune-eager": "torchtune",
    "deepspeed-liger": "deepspeed",
    "prime-rl-logits": "prime-rl",
}
"""Frameworks that are variants of another, whose peaks count together."""

UNKNOWN = "unknown"

RUNS_AHEAD = "nanotron"
"""Software whose host runs ahead of its GPU through asynchronous tensor-parallel collectives:
huggingface/nanotron@2411b022, parallel/tensor_parallel/functional.py (`async_op=True`). With stages
it waits, since it reads a size from the GPU before each message: parallel/pipeline_parallel/p2p.py
(`first_metadata`)."""


def ahead(tp: int, pp: int) -> bool:
    """Return whether a peak of `RUNS_AHEAD` includes tensors that are free once a collective runs.

    They show how far the host is ahead and not what a step needs: when memory runs short, PyTorch
    waits for the collectives and reclaims the tensors (c10/cuda/CUDACachingAllocator.cpp,
    `release_cached_blocks`).
    """
    return tp > 1 and pp == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakError:
    """The natural logarithm of a printed peak over its prediction.

    `software` is the software whose memory habits the framework `habits` takes, empty if unknown.
    """

    software: str
    habits: str
    publisher: str
    error: float

    @property
    def spread(self) -> float:
        """The standard deviation that the site uses for this framework."""
        return framework_memory(self.habits).peak_spread

    @property
    def unseen_spread(self) -> float:
        """The standard deviation that it would use without the peaks of this publisher."""
        return spread_without(self.software, self.publisher)

    def promised(self, spread: float) -> float:
        """The chance with which a GPU of exactly this size would have been promised to suffice."""
        return normal_share(self.error / spread)


@remembered(1)
def peak_errors() -> tuple[PeakError, ...]:
    """Return the errors of peaks of needed memory, except those predicted as unknown software."""
    found = [
        (one.run.memory_habits, publisher_of(one.run), one.error)
        for one in judged_peaks()
        if not (one.run.framework == RUNS_AHEAD and ahead(one.run.tp, one.run.pp))
    ] + [(one.habits, one.publisher, one.error) for one in publisher_peaks()]
    return tuple(
        PeakError(
            software=VARIANTS.get(habits, habits),
            habits=habits,
            publisher=publisher,
            # An error is predicted over measured, less one.
            error=-log(1 + error),
        )
        for habits, publisher, error in found
        if habits != UNKNOWN
    )


def rms(errors: Iterable[float]) -> float:
    """Return the root mean square."""
    return sqrt(fmean(error**2 for error in errors))


def width(errors: Iterable[float]) -> float:
    """Return the standard deviation of a normal distribution around 0 that is as wide as errors.

    It is the root mean square of the errors. If peaks far above their prediction are more frequent
    than in a normal distribution, it is the value for which the 95% quantiles agree.
    """
    listed = sorted(errors)
    return max(rms(listed), listed[ceil(SAFE * len(listed)) - 1] / NORMAL_95)


def errors_by_publisher() -> Mapping[tuple[str, str], float]:
    """Return the widths of errors by software and publisher, in alphabetical order."""
    grouped: dict[tuple[str, str], list[float]] = {}
    for one in peak_errors():
        grouped.setdefault((one.software, one.publisher), []).append(one.error)
    return {pair: width(errors) for pair, errors in sorted(grouped.items())}


@remembered(64)
def spread_without(software: str, publisher: str) -> float:
    """Return the standard deviation of a software's peaks without those of a publisher."""
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


def unknown_errors() -> tuple[float, ...]:
    """Return widths of all publishers' errors if software were unknown, in alphabetical order."""
    grouped: dict[str, list[float]] = {}
    for one in publisher_peaks(UNKNOWN):
        grouped.setdefault(one.publisher, []).append(-log(1 + one.error))
    return tuple(width(errors) for _, errors in sorted(grouped.items()))


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


def outcomes(kept: Callable[[int, int], bool] = lambda tp, pp: True) -> tuple[FitOutcome, ...]:
    """Return the layouts of nanotron's sweep by predicted chance to fit, likeliest first.

    If `kept` is given, only layouts for whose numbers of tensor-parallel ranks and stages it
    returns true are counted. Failed layouts may have crashed for reasons other than memory.
    """
    swept = [one for one in judged_peaks() if one.run.framework == RUNS_AHEAD]
    ran = [one.chance for one in swept if kept(one.run.tp, one.run.pp)]
    failed = [one.chance for one in failed_layouts() if kept(one.tp, one.pp)]
    return tuple(
        FitOutcome(
            low=low,
            high=high,
            ran=sum(low <= chance < high or chance == high == 1 for chance in ran),
            failed=sum(low <= chance < high or chance == high == 1 for chance in failed),
        )
        for high, low in pairwise(EDGES)
    )
