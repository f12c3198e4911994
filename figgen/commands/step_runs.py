"""step --run FILE.json: predict the runs that a file describes, next to what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from figgen.commands import Answer, file_text
from figgen.commands.training import aligned
from figgen.errors import InputError
from figgen.models.memory.fit_probability import fit_words
from figgen.models.memory.memory import RESERVE_BYTES, MemoryEstimate, memory
from figgen.models.memory.memory_fixes import heavier_recomputation, reason, what_fits
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.compute import MFU_CONVENTION, utilisation
from figgen.quantity_shown import span_shown
from figgen.scenarios.options.calibrated import (
    Calibration,
    calibration,
    calibration_data,
    calibration_lines,
)
from figgen.scenarios.options.resolve import TrainingStep
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.device_run import (
    PredictedDevice,
    device_answer,
    device_run,
    device_run_of,
    is_device_run,
    predicted_device,
)
from figgen.scenarios.runs.fields import Record
from figgen.scenarios.runs.machine_rates import read_rates
from figgen.scenarios.runs.measured_rates import Measured
from figgen.scenarios.runs.predicted import PredictedStep, predicted_step
from figgen.scenarios.runs.rate_row import GivenRates
from figgen.scenarios.runs.record import described_run, read_run_file
from figgen.scenarios.runs.setup import run_setup
from figgen.units import format_quantity


def predicted_runs(
    path: str,
    compute_efficiency: float | None,
    measured: str = "",
    step_time_s: float | None = None,
) -> Answer:
    """Return a prediction for every run of the file, at the rates of `measured` if it has any.

    If the file has one run, failing to predict it is an error, and its times are scaled to a
    measured `step_time_s`. If it has several, the answer for a failing run is its error. Raises
    InputError for a file that cannot be read.
    """
    many, records = read_run_file(file_text(path, "run file"))
    rates = read_rates(measured).known if measured else None
    if not many:
        found = predicted(records[0], compute_efficiency, rates, step_time_s)
        return Answer(found, _line(found))
    if step_time_s is not None:
        raise InputError("step_time", expected="a file of a single run", got=f"{len(records)} runs")
    rows = [_predicted_or_refused(record, compute_efficiency, rates) for record in records]
    return Answer(rows, "\n".join(map(_line, rows)))


def device_step(asked: TrainingStep, way: str, step_time_s: float | None = None) -> Answer:
    """Predict a step of plain transformers on one GPU, with its time by part and its memory.

    Times are scaled to a measured `step_time_s`. Raises InputError for a job that plain
    transformers cannot run.
    """
    run = device_run_of(asked.setup, asked.accelerator, way, asked.model.name)
    if asked.time_factor is not None:
        expected = "none with --transformers, whose times --step-time scales"
        raise InputError("time_factor", expected=expected, got=asked.time_factor)
    measured = asked.measured.known if asked.measured else None
    found = predicted_device(run, measured, asked.chosen_efficiency)
    found, scaling = _scaled(found, step_time_s)
    answer = _device_data(found, scaling)
    rows = [
        [name, format_quantity(seconds, "s", "time"), f"{seconds / found.step_time_s:.1%}"]
        for name, seconds in (*found.parts_s.items(), ("step", found.step_time_s))
        if seconds > 0
    ]
    share = f"MFU {found.model_flops_utilisation:.1%} of the dense BF16 peak ({MFU_CONVENTION})"
    interval = f"eight in ten steps of {found.residuals.name!r} are within these bounds"
    kind = f"as run by {run.job.stack.name}"
    known = [kind, *calibration_lines(scaling)] if scaling else [f"{kind}; {interval}"]
    head = [_line(answer).splitlines()[0], *known]
    return Answer(answer, "\n".join([*head, *aligned(rows, left=1), share]))


def _scaled(
    found: PredictedDevice, step_time_s: float | None
) -> tuple[PredictedDevice, Calibration | None]:
    """Return the prediction with its parts scaled to a measured step, if there is one."""
    if step_time_s is None:
        return found, None
    scaling = calibration(step_time_s, found.step_time_s, found.utilisation("causal"))
    parts_s = {name: seconds * scaling.time_factor for name, seconds in found.parts_s.items()}
    return replace(found, parts_s=parts_s), scaling


def _device_data(found: PredictedDevice, scaling: Calibration | None) -> dict[str, Any]:
    """Return the prediction for JSON. A scaled one has its time factor instead of an interval."""
    answer = device_answer(found)
    if scaling is None:
        return answer
    for name in ("step_time_interval_s", "interval_of", "difference"):
        answer.pop(name, None)
    return answer | calibration_data(scaling)


def _predicted_or_refused(
    record: Record, compute_efficiency: float | None, rates: Measured | None
) -> dict[str, object]:
    try:
        return predicted(record, compute_efficiency, rates)
    except InputError as error:
        name = record.get("id", "run") if isinstance(record, Mapping) else "run"
        return {"id": name, "error": str(error)}


def predicted(
    record: Record,
    compute_efficiency: float | None,
    rates: Measured | None = None,
    step_time_s: float | None = None,
) -> dict[str, object]:
    """Predict time and memory of one run's step. Raises InputError for a run that has no layout."""
    if is_device_run(record):
        device = predicted_device(device_run(record), rates, compute_efficiency)
        return _device_data(*_scaled(device, step_time_s))
    run = described_run(record)
    said = GivenRates(measured=rates, compute_efficiency=compute_efficiency)
    found = predicted_step(run, said=said)
    interval: dict[str, object] = {
        "step_time_interval_s": [found.low_s, found.high_s],
        "interval_of": found.residuals.name,
    }
    if step_time_s is not None:
        scaling = calibration(step_time_s, found.step_time_s, _causal_share(run, found))
        interval = calibration_data(scaling)
        factor = scaling.time_factor
        found = predicted_step(run, said=replace(said, time_factor=factor))
        run = replace(run, step_time_s=None)  # times are scaled to the measured step
    return {
        "id": run.name,
        "step_time_s": found.step_time_s,
        **interval,
        "tokens_per_s_per_gpu": found.tokens_per_s_per_gpu,
        "model_flops_utilisation": found.model_flops_utilisation,
        **_memory(run),
        **_measured(run, found.step_time_s),
    }


def _causal_share(run: DescribedRun, found: PredictedStep) -> float:
    """Return the share of the dense peak that a predicted step reaches, without masked FLOPs."""
    return utilisation(
        run.shape,
        "causal",
        tokens_per_s_per_gpu=found.tokens_per_s_per_gpu,
        peak_flops_per_s=run.accelerator.peak_flops_per_s(run.dtype),
        sequence=run.sequence,
    )


def _memory(run: DescribedRun) -> dict[str, object]:
    """Return what the fullest GPU holds, or why that is unknown.

    The time of a run can be predicted even where its memory cannot.
    """
    try:
        setup = run_setup(run)
        held, assumed = held_memory(run, setup)
    except InputError as error:
        return {"memory_bytes": None, "fits": None, "memory_error": str(error)}
    return {
        "memory_bytes": held.printed_bytes,
        "memory_device_bytes": held.fullest.total_bytes,
        "fits": held.fits,
        "fit_probability": held.fit_probability,
        **_data_of(run, setup, held, assumed),
    }


def held_memory(run: DescribedRun, setup: TrainingSetup) -> tuple[MemoryEstimate, str]:
    """Return the memory of a run, and what was assumed about recomputation.

    If neither the source nor the framework's default says what is recomputed, the least
    recomputation with which the run fits is assumed.
    """
    capacity = run.accelerator.capacity_bytes
    found = memory(setup, capacity_bytes=capacity)
    if found.fits or run.recompute or setup.framework == "nanotron":
        return found, ""
    for mode in heavier_recomputation(setup):
        again = memory(replace(setup, recompute=mode), capacity_bytes=capacity)
        if again.fits:
            return again, f"recompute={mode}"
    return found, ""


def _data_of(
    run: DescribedRun, setup: TrainingSetup, held: MemoryEstimate, assumed: str
) -> dict[str, object]:
    """Return what memory assumes, why a step does not fit, and the change that makes it fit."""
    if assumed:
        return {"memory_assumes": assumed}
    if held.fits:
        return {}
    change = what_fits(setup, run.accelerator.capacity_bytes, RESERVE_BYTES)
    return {"memory_reason": reason(held), "would_fit_with": change or None}


def _measured(run: DescribedRun, predicted_s: float) -> dict[str, object]:
    if run.step_time_s is None:
        return {}
    difference = predicted_s / run.step_time_s - 1
    return {"measured_step_time_s": run.step_time_s, "difference": difference}


def _line(row: Mapping[str, Any]) -> str:
    if "step_time_s" not in row:
        return f"{row['id']}: {row['error']}"
    time = format_quantity(row["step_time_s"], "s", "time")
    ends = row.get("step_time_interval_s")
    within = f" ({span_shown(*ends)})" if ends else ""
    if "time_factor" in row:
        within = f", {row['time_factor']:.3g} × the prediction"
    rate = f"{row['tokens_per_s_per_gpu']:,.0f} tokens/s per GPU"
    said = f", measured {row['difference']:+.1%}" if "difference" in row else ""
    return f"{row['id']}: {time}{within}{said}, {rate}, {_held(row)}{_parts(row)}"


def _parts(row: Mapping[str, Any]) -> str:
    """Return one more line with the time by kind of kernel, if it is known."""
    parts = row.get("parts", {})
    shares = [f"{name} {s / row['step_time_s']:.0%}" for name, s in parts.items() if s > 0]
    return f"\n  {row['stack']}: {', '.join(shares)}" if shares else ""


def _held(row: Mapping[str, Any]) -> str:
    if row["memory_bytes"] is None:
        return f"memory unknown: {row['memory_error']}"
    held = format_quantity(row["memory_bytes"], "B", "bytes")
    if "allocated_bytes" in row:
        allocated = format_quantity(row["allocated_bytes"], "B", "bytes")
        chance = fit_words(row["fit_probability"])
        return (
            f"{held} reserved, {allocated} of it allocated at the {row['memory_peak_at']}, {chance}"
        )
    why = f": {row['memory_reason']}" if "memory_reason" in row else ""
    return f"{held}, {fit_words(row['fit_probability'])}{why}"
