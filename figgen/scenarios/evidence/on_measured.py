"""Published runs predicted with the rates that somebody measured on a chip of their kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from figgen.catalog.machines import MachineRow, machines
from figgen.catalog.measured_file import FORMATS
from figgen.lookups import remembered
from figgen.models.step.job import Job, stacked
from figgen.models.step.timed_step import timed_step
from figgen.scenarios.evidence.publishers import Judged, judged_publishers
from figgen.scenarios.runs.job import run_job
from figgen.scenarios.runs.machine_rates import read_rates
from figgen.scenarios.runs.measured_rates import Measured
from figgen.scenarios.runs.rate_row import GivenRates
from figgen.scenarios.runs.rates import attained


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredErrors:
    """Mean errors on a machine's kind of chip: datasheet, measured matmuls, all measured rates.

    Each is the mean of its publishers' mean absolute errors. `fitted` publishers had a part in the
    fit of the constants, which took the datasheet's rates.
    """

    machine: MachineRow
    fitted: bool
    publishers: int
    runs: int
    datasheet: float
    matmuls: float
    measured: float


@remembered(1)
def measured_errors() -> tuple[MeasuredErrors, ...]:
    """Return the errors for every machine of the catalog whose chip has published runs."""
    found = []
    for machine in machines().values():
        known = read_rates(machine.measured).known
        for fitted in (False, True):
            rows = [
                one
                for one in judged_publishers()
                if one.published.run.accelerator.name == machine.accelerator
                and one.published.fitted == fitted
            ]
            if rows:
                found.append(_errors(machine, known, fitted, rows))
    return tuple(found)


def _errors(
    machine: MachineRow, known: Measured, fitted: bool, rows: Sequence[Judged]
) -> MeasuredErrors:
    matmuls = {part: rates for part, rates in known.items() if part in FORMATS}
    job = stacked([run_job(one.published.run) for one in rows])
    return MeasuredErrors(
        machine=machine,
        fitted=fitted,
        publishers=len({one.published.publisher for one in rows}),
        runs=len(rows),
        datasheet=_mean(rows, job, {}),
        matmuls=_mean(rows, job, matmuls),
        measured=_mean(rows, job, known),
    )


def _mean(rows: Sequence[Judged], job: Job, measured: Measured) -> float:
    """Return the mean of the publishers' mean absolute errors at some measured rates.

    `job` has the jobs of all rows.
    """
    said = GivenRates(measured=measured)
    rates = stacked([attained(one.published.run, said) for one in rows])
    known_s = np.array([one.published.measured_s for one in rows])
    errors = np.abs(timed_step(job, rates).total_s / known_s - 1)
    publishers = np.array([one.published.publisher for one in rows])
    return fmean(float(errors[publishers == name].mean()) for name in np.unique(publishers))
