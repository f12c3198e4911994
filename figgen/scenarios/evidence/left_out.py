"""Predictions without the runs of a house, and how far off they may be for want of known constants.

Runs decide a constant only as far as it moves them, and what nobody decided stays at a guess with
its freedom. A prediction that rests on such a constant is less sure than one that does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from figgen.catalog.rates import left_out_constants
from figgen.models.step.calibration import covariance, slopes
from figgen.scenarios.evidence.calibrate import Predictor, calibrating
from figgen.scenarios.evidence.publisher_names import house_of, publisher_of
from figgen.scenarios.runs.described import DescribedRun

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Of some runs: `seconds` of all by constants fitted without a house, by its name.

    `unsure` is the variance of the logarithm of each predicted time by what its constants are known
    to, without the run's own house.
    """

    seconds: Mapping[str, Floats]
    unsure: Floats


def left_out_predictions(runs: Sequence[DescribedRun], houses: Sequence[str]) -> LeftOut:
    """Leave out, one at a time, every house whose runs were fitted; `houses` has one for each run.

    `runs` includes the runs that calibrate. The effect of a constant is always taken at the
    catalog's constants, also where a house is left out.
    """
    deciding, weights, free = calibrating()
    spread = np.array([constant.spread for constant in free])
    predictor = Predictor(runs, free)
    moved = slopes(predictor, np.log([constant.value for constant in free]))
    places = {run.name: at for at, run in enumerate(runs)}
    decided = moved[[places[run.name] for run in deciding]]
    deciders = np.array([house_of(publisher_of(run)) for run in deciding])
    fitted = left_out_constants()
    unsure = np.zeros(len(runs))
    for house in ["", *fitted]:
        rows = [at for at, one in enumerate(houses) if (one if one in fitted else "") == house]
        others = deciders != house
        known = covariance(decided[others], weights[others], spread)
        unsure[rows] = np.einsum("rc,cd,rd->r", moved[rows], known, moved[rows])
    seconds = {
        house: predictor(np.log([known[constant.name] for constant in free]))
        for house, known in fitted.items()
    }
    return LeftOut(seconds=seconds, unsure=unsure)
