"""Fits `rates.toml` to the calibration runs and predicts all runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
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
from figgen.scenarios.evidence.split import CALIBRATION, TEST
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
from figgen.scenarios.runs.residual_classes import UNKNOWN, class_of

Floats = NDArray[np.float64]

SWEEP_WEIGHT = 0.5
"""Weight of a run of the large sweep, so that it does not outweigh all other runs."""


FEWEST = 8
"""Test runs that a class needs for its interval to come from them alone."""


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


def class_residuals(
    widest: tuple[float, float], strangers: Mapping[str, tuple[float, float]]
) -> list[Residuals]:
    """Return the errors of every class of runs, with the constants of the catalog.

    `widest` is the interval of runs without published times. `strangers` holds, by class, the
    interval of publishers who had no part in the fit; the class's interval contains it.
    """
    sides = run_sides()
    runs = [
        run
        for run in (*measured_runs(), *shown_runs())
        if not run.suspect and run.step_time_s is not None
    ]
    seconds = Predictor(runs, ())(np.zeros(0))
    by_class: dict[str, list[tuple[float, bool]]] = {}
    for run, predicted_s in zip(runs, seconds, strict=True):
        ratio = float(run.step_time_s or 0) / float(predicted_s)
        by_class.setdefault(class_of(run), []).append((ratio, sides[run.name] == TEST))
    by_class[CLASS] = device_ratios()
    found = []
    for name, ratios in sorted(by_class.items()):
        if name == UNKNOWN:
            continue
        tested = [ratio for ratio, is_test in ratios if is_test]
        every = [ratio for ratio, _ in ratios]
        # Test runs alone may be easier, so the interval contains eight in ten of both sets.
        found.append(
            _residuals(name, tested, [tested, every], True)
            if len(tested) >= FEWEST
            else _residuals(name, every, [every], False)
        )
    every = [
        ratio
        for name, ratios in by_class.items()
        for ratio, is_test in ratios
        if is_test and name != CLASS
    ]
    wide = _residuals(UNKNOWN, every, [every], True)
    found = [_holding(one, strangers.get(one.name, (one.low, one.high))) for one in found]
    return [*found, replace(wide, low=_down(widest[0]), high=_up(widest[1]))]


def _holding(one: Residuals, ends: tuple[float, float]) -> Residuals:
    """Return residuals whose interval contains `ends`."""
    return replace(one, low=min(one.low, _down(ends[0])), high=max(one.high, _up(ends[1])))


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


def _residuals(
    name: str, ratios: Sequence[float], within: Sequence[Sequence[float]], tested: bool
) -> Residuals:
    # Ends are runs, rounded outward, since between two runs fewer than eight in ten may lie.
    low = min(1 - LEAST, *(float(np.quantile(one, 0.1, method="lower")) for one in within))
    high = max(1 + LEAST, *(float(np.quantile(one, 0.9, method="higher")) for one in within))
    if len(ratios) < FEWEST:
        # So few runs do not show how far others lie, so the interval is twice as wide.
        low, high = 1 - 2 * (1 - low), 1 + 2 * (high - 1)
    low, high = _down(low), _up(high)
    error = float(np.mean(np.abs(1 / np.array(ratios) - 1)))
    return Residuals(
        name=name,
        runs=len(ratios),
        tested=tested,
        low=low,
        high=high,
        mean_absolute=round(error, 4),
    )
