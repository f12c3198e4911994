"""Published runs predicted with the rates that somebody measured on a chip of their kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from figgen.catalog.machines import MachineRow, machines
from figgen.catalog.measured_file import FORMATS
from figgen.lookups import remembered
from figgen.scenarios.evidence.publishers import Judged, by_publisher, judged_publishers
from figgen.scenarios.runs.machine_rates import read_rates
from figgen.scenarios.runs.measured_rates import Measured
from figgen.scenarios.runs.predicted import predicted_step
from figgen.scenarios.runs.rate_row import GivenRates


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
    return MeasuredErrors(
        machine=machine,
        fitted=fitted,
        publishers=len(by_publisher(rows)),
        runs=len(rows),
        datasheet=_mean(rows, {}),
        matmuls=_mean(rows, matmuls),
        measured=_mean(rows, known),
    )


def _mean(rows: Sequence[Judged], measured: Measured) -> float:
    """Return the mean of the publishers' mean absolute errors at some measured rates."""
    return fmean(
        fmean(abs(_error(one, measured)) for one in runs) for runs in by_publisher(rows).values()
    )


def _error(one: Judged, measured: Measured) -> float:
    found = predicted_step(one.published.run, said=GivenRates(measured=measured))
    return found.step_time_s / one.published.measured_s - 1
