"""Published runs that are like a job: same generation of chips and format, like size, software."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from figgen.lookups import remembered
from figgen.models.shape.transformer import parameter_counts
from figgen.models.step.compute import utilisation_of_step
from figgen.scenarios.evidence.publishers import PublishedRun, published_runs
from figgen.scenarios.runs.classes import RunClass, run_class
from figgen.scenarios.runs.described import DescribedRun

SIZES = 4.0
"""Times as many or as few parameters that still are a like size."""

FEW = 5
"""Runs below which those of other software are taken too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LikeRun:
    """A published run with its MFU, against the dense peak of its format, and its distance: the
    difference in size, GPUs, sequence and recomputation."""

    published: PublishedRun
    utilisation: float
    distance: float

    @property
    def name(self) -> str:
        return self.published.run.name

    @property
    def source(self) -> str:
        return self.published.run.source or self.published.publisher


def like_runs(run: DescribedRun) -> tuple[LikeRun, ...]:
    """Runs like `run`, the nearest first; of other software where its own has fewer than `FEW`."""
    own = run_class(run)
    alike = [
        one
        for one in _with_utilisation()
        if one.published.run_class.chips == own.chips
        and one.published.run_class.experts == own.experts
        and one.published.run.dtype == run.dtype
        and abs(log(_size(one.published.run) / _size(run))) <= log(SIZES)
    ]
    same = [one for one in alike if one.published.run_class.stack == own.stack]
    found = same if len(same) >= FEW else alike
    ordered = [(_distance(one.published, run, own), one) for one in found]
    ordered.sort(key=lambda pair: (pair[0], pair[1].name))
    return tuple(
        LikeRun(published=one.published, utilisation=one.utilisation, distance=distance)
        for distance, one in ordered
    )


@remembered(1)
def _with_utilisation() -> tuple[LikeRun, ...]:
    """Every published run that nothing is doubtful of, with its MFU."""
    return tuple(
        LikeRun(published=one, utilisation=utilisation_of(one.run, one.measured_s), distance=0.0)
        for one in published_runs()
        if not one.doubt
    )


def utilisation_of(run: DescribedRun, step_time_s: float) -> float:
    """MFU of a run's step, against the dense peak of its format."""
    return utilisation_of_step(
        run.shape,
        step_time_s=step_time_s,
        tokens_per_step=run.global_batch * run.sequence,
        gpus=run.gpus,
        peak_flops_per_s=run.accelerator.peak_flops_per_s(run.dtype),
        sequence=run.sequence,
    )


def _size(run: DescribedRun) -> int:
    return parameter_counts(run.shape).total


def _distance(published: PublishedRun, run: DescribedRun, own: RunClass) -> float:
    """How unlike two runs are: factors in size, GPUs and sequence, in logarithms, and one each for
    other software and other recomputation."""
    other = published.run
    factors = ((_size(other), _size(run)), (other.gpus, run.gpus), (other.sequence, run.sequence))
    apart = sum(abs(log(one / two)) for one, two in factors)
    return (
        apart
        + (published.run_class.stack != own.stack)
        + ((other.recompute or "none") != (run.recompute or "none"))
    )
