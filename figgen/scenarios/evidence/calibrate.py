"""Fits `rates.toml` to the calibration runs and predicts all runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from figgen.catalog.rates import Constant, constants
from figgen.catalog.residuals import Residuals
from figgen.models.step.attained import Attained
from figgen.models.step.calibration import fitted, slopes, uncertainty
from figgen.models.step.job import stacked
from figgen.models.step.timed_step import timed_step
from figgen.scenarios.evidence.measured import measured_runs, run_sides, shown_runs
from figgen.scenarios.evidence.publisher_names import house_of, publisher_of
from figgen.scenarios.evidence.split import CALIBRATION
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.device_run import (
    CLASS,
    PREDICTED_BEFORE,
    device_run,
    device_step_s,
    measured_steps,
)
from figgen.scenarios.runs.job import run_job
from figgen.scenarios.runs.rates import terms_of

Floats = NDArray[np.float64]

SWEEP_WEIGHT = 0.5
"""Weight of a run of the large sweep, so that it does not outweigh all other runs."""


FEWEST = 8
"""Steps that an interval may rest on."""


LEAST = 0.03
"""Least half-width of an interval: repeats of one run differ by as much."""


CONCERNED = 0.01
"""A constant concerns a run if one percent of it changes the step time by this share of a
percent."""


class Predictor:
    """Step times of many runs as a function of the logarithms of chosen constants."""

    def __init__(self, runs: Sequence[DescribedRun], free: Sequence[Constant]) -> None:
        self.job = stacked([run_job(run) for run in runs])
        known = constants()
        places = {constant.name: place for place, constant in enumerate(free)}
        terms = [terms_of(run) for run in runs]
        self.bases: dict[str, Floats] = {}
        self.powers: dict[str, Floats] = {}
        for field in fields(Attained):
            base, powers = np.zeros(len(runs)), np.zeros((len(runs), len(free)))
            for row, term in enumerate(terms):
                base[row], names = term[field.name]
                for name in names:
                    if name in places:
                        powers[row, places[name]] += 1
                    else:
                        base[row] *= known[name].value
            self.bases[field.name], self.powers[field.name] = base, powers

    def __call__(self, logarithms: Floats) -> Floats:
        """Return the seconds of every run."""
        found = {
            name: base * np.exp(self.powers[name] @ logarithms) for name, base in self.bases.items()
        }
        return np.asarray(timed_step(self.job, Attained(**found)).total_s)


def calibrated(without: str = "", *, afresh: bool = True) -> dict[str, float]:
    """Return the fitted value of every constant, by name.

    All runs are used, except those of the house `without`. The search starts from the catalog and,
    with `afresh`, from the guesses too: the host time of an expert layer and the time of its
    permutation are hard to tell apart, and from the guesses alone the search has ended in a worse
    local minimum.
    """
    runs, weights, free = calibrating(without)
    start = np.log([constant.start for constant in free])
    measured = np.array([run.step_time_s for run in runs], dtype=float)
    spread = np.array([constant.spread for constant in free])
    known = np.log([constant.value for constant in free])
    begins = [start, known] if afresh else [known]
    point = fitted(Predictor(runs, free), measured, weights, start, spread, begins)
    found = {constant.name: constant.start for constant in constants().values()}
    return found | {
        constant.name: float(f"{value:.4g}")
        for constant, value in zip(free, np.exp(point), strict=True)
    }


def decided_by(values: Mapping[str, float]) -> dict[str, tuple[int, float]]:
    """Return, by fitted constant, the number of calibration runs it affects and its uncertainty.

    The uncertainty is the standard deviation of its logarithm, with the constants at `values`.
    """
    runs, weights, free = calibrating()
    point = np.log([values[constant.name] for constant in free])
    spread = np.array([constant.spread for constant in free])
    moved = slopes(Predictor(runs, free), point)
    concerned = (np.abs(moved) >= CONCERNED).sum(axis=0)
    known = uncertainty(moved, weights, spread)
    return {
        constant.name: (int(count), float(deviation))
        for constant, count, deviation in zip(free, concerned, known, strict=True)
    }


def calibrating(without: str = "") -> tuple[list[DescribedRun], Floats, list[Constant]]:
    """Return the calibration runs without a house's, their weights, and the fitted constants."""
    sides = run_sides()
    runs = [
        run
        for run in (*measured_runs(), *shown_runs())
        if sides[run.name] == CALIBRATION and not run.suspect and run.step_time_s is not None
        if not without or house_of(publisher_of(run)) != without
    ]
    weights = np.array([SWEEP_WEIGHT if run.framework == "nanotron" else 1.0 for run in runs])
    return runs, weights, [constant for constant in constants().values() if constant.spread > 0]


def left_out() -> dict[str, dict[str, float]]:
    """Return, by house in the fit, the constants fitted without its runs."""
    runs, _, free = calibrating()
    houses = sorted({house_of(publisher_of(run)) for run in runs})
    found = {}
    for house in houses:
        values = calibrated(house)
        found[house] = {constant.name: values[constant.name] for constant in free}
    return found


def _down(end: float) -> float:
    return floor(1000 * end) / 1000


def _up(end: float) -> float:
    return ceil(1000 * end) / 1000


def device_ratios() -> list[tuple[float, bool]]:
    """Return measured over predicted step times of plain transformers on one GPU.

    Each has whether the step was timed after the rates were fitted.
    """
    return [
        (run.step_time_s / device_step_s(run), PREDICTED_BEFORE in record)
        for record in measured_steps()
        if (run := device_run(record)).step_time_s is not None
    ]


def device_residuals() -> Residuals:
    """Return the interval of plain transformers on one GPU: that of our own steps.

    Its ends are steps, rounded outward, of all and of those timed after the rates were fitted.
    """
    ratios = device_ratios()
    every, tested = [one for one, _ in ratios], [one for one, after in ratios if after]
    within = [every, tested] if len(tested) >= FEWEST else [every]
    low = min(1 - LEAST, *(float(np.quantile(one, 0.1, method="lower")) for one in within))
    high = max(1 + LEAST, *(float(np.quantile(one, 0.9, method="higher")) for one in within))
    return Residuals(name=CLASS, publishers=1, runs=len(ratios), low=_down(low), high=_up(high))
