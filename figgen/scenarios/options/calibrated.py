"""A job whose times are scaled to one measured step of it."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError
from figgen.scenarios.options.resolve import TrainingStep, resolve
from figgen.scenarios.options.scenario import Scenario
from figgen.units import format_quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A step that was measured at `step_time_s` and predicted at `predicted_s`, both in seconds."""

    step_time_s: float
    predicted_s: float

    @property
    def time_factor(self) -> float:
        """The measured time divided by the predicted time."""
        return self.step_time_s / self.predicted_s


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedStep(Calibration):
    """A job whose step is scaled to the measured time."""

    asked: TrainingStep


def calibration(step_time_s: float, predicted_s: float, peak_share: float) -> Calibration:
    """Return the scaling of a prediction whose FLOPs reach `peak_share` of the dense peak.

    Raises InputError for a time in which they would exceed the peak.
    """
    if step_time_s <= 0:
        raise InputError("step_time", expected="> 0 s", got=step_time_s)
    if peak_share * predicted_s > step_time_s:
        least = format_quantity(peak_share * predicted_s, "s", "time")
        expected = f"at least {least}: below that, computing would exceed the dense peak"
        raise InputError("step_time", expected=expected, got=f"{step_time_s:g} s")
    return Calibration(step_time_s=step_time_s, predicted_s=predicted_s)


def calibrated(asked: Scenario, step_time_s: float) -> CalibratedStep:
    """Return the job with all rates and latencies scaled so that its step takes `step_time_s`.

    Muon's matmuls are part of a measured step. Raises InputError if `time_factor` is given as well,
    and in the cases of `calibration`.
    """
    found = resolve(asked)
    if found.time_factor is not None:
        raise InputError("step_time", expected="none with time_factor", got=step_time_s)
    predicted_s = found.estimate.step_time_s + found.orthogonalising_s
    factor = calibration(step_time_s, predicted_s, found.compute_efficiency).time_factor
    scaled = Scenario(asked.preset, asked.run, (*asked.chosen, ("time_factor", factor)))
    return CalibratedStep(asked=resolve(scaled), step_time_s=step_time_s, predicted_s=predicted_s)


def calibration_lines(found: Calibration) -> list[str]:
    """Return the scaling in words."""
    predicted, factor = format_quantity(found.predicted_s, "s", "time"), found.time_factor
    word = "slower" if factor >= 1 else "faster"
    by = f"{max(factor, 1 / factor):.3g} times {word}"
    links = " and links, all latencies" if isinstance(found, CalibratedStep) else ""
    other = f" For other layouts of this job: --time-factor {factor:.4g}" if links else ""
    return [
        f"your step is {factor:.3g} × the prediction of {predicted}; below, all rates of matmuls, "
        f"memory{links} and the host are taken {by}. Memory does not change.{other}"
    ]


def calibration_data(found: Calibration) -> dict[str, object]:
    """Return the scaling as data for JSON."""
    return {
        "measured_step_time_s": found.step_time_s,
        "predicted_step_time_s": found.predicted_s,
        "time_factor": found.time_factor,
    }
