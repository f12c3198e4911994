"""Predictions without the runs of a house, and the uncertainty due to poorly known constants.

Runs determine a constant only as far as they depend on it; otherwise it keeps its guess and the
guess's uncertainty. Predictions that rest on such constants are less certain.
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
    """`seconds` of some runs, predicted with constants fitted without each house, by house.

    `unsure` is the variance of the logarithm of each predicted time due to the uncertainty of its
    constants, without the run's own house.
    """

    seconds: Mapping[str, Floats]
    unsure: Floats


def left_out_predictions(runs: Sequence[DescribedRun], houses: Sequence[str]) -> LeftOut:
    """Leave out each fitted house in turn; `houses` has one house per run.

    `runs` includes the calibration runs. The effect of a constant is always evaluated at the
    catalog's constants, even if a house is left out.
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
