"""Modeled against measured memory peaks, and verdicts on layouts that ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean, median

from figgen.charts import Axis, Column, Curves, Named, Scalar, Table
from figgen.errors import InputError
from figgen.figures.validation.predictions import DASH
from figgen.figures.validation.sides import diagonal, error_columns, on_side
from figgen.plotting.placed import headings
from figgen.plotting.series import line
from figgen.registry import figure
from figgen.scenarios.evidence.peaks import EVEN, JudgedPeak, failed_chances, judged_peaks

GROUPS: Mapping[str, Callable[[JudgedPeak], str]] = {
    "framework": lambda peak: peak.run.framework,
    "model": lambda peak: f"{peak.run.shape.layers} layers of {peak.run.shape.hidden:,}",
    "zero": lambda peak: f"ZeRO {peak.run.zero_stage}",
    "pipeline": lambda peak: "one stage" if peak.run.pp == 1 else f"{peak.run.pp} stages",
    "tensor": lambda peak: f"TP {peak.run.tp}",
}


@figure("memory-validation", explorable=True)
def memory_validation(*, by: str = "model", side: str = "test") -> Curves:
    """Modeled over measured peak memory of every run, grouped by color, around the diagonal."""
    chosen = on_side(side, list(judged_peaks()))
    shown = _grouped(by, chosen)
    low = min(min(peak.measured_bytes, peak.modelled_bytes) for peak in chosen)
    high = max(max(peak.measured_bytes, peak.modelled_bytes) for peak in chosen)
    errors = [abs(peak.error) for peak in chosen]
    return Curves(
        x=Axis(label="measured peak", unit="B", scale="log10", spec="bytes"),
        y=Axis(label="modelled peak", unit="B", scale="log10", spec="bytes"),
        series=(
            *(
                line(
                    name,
                    [peak.measured_bytes for peak in peaks],
                    [peak.modelled_bytes for peak in peaks],
                    index,
                    "points",
                )
                for index, (name, peaks) in enumerate(shown.items())
            ),
            *diagonal(low, high, {"a tenth more": 1.1, "a tenth less": 0.9}),
        ),
        values={
            "count": Named(len(chosen)),
            "median": Named(median(errors)),
            "mean": Named(fmean(errors)),
            "within_tenth": Named(fmean(error <= 0.1 for error in errors)),
            "above_fifth": Named(fmean(peak.error < 1 / 1.2 - 1 for peak in chosen)),
            "least": Named(low, "B"),
            "most": Named(high, "B"),
            "fitting": Named(fmean(peak.fits for peak in judged_peaks())),
            "failed": Named(len(failed_chances())),
            "refused": Named(fmean(chance < EVEN for chance in failed_chances())),
        },
    )


@figure("memory-errors")
def memory_errors(*, by: str = "framework") -> Table:
    """Relative errors of modeled peaks over test runs; runs of the fit are only counted."""
    rows = []
    for name, peaks in _grouped(by, list(judged_peaks())).items():
        fitted = [peak for peak in peaks if not peak.tested]
        errors = [peak.error for peak in peaks if peak.tested]
        sizes = [abs(error) for error in errors]
        measures: tuple[Scalar, ...] = (DASH,) * 5
        if errors:
            measures = (
                median(sizes),
                fmean(sizes),
                median(errors),
                max(errors, key=abs),
                fmean(size <= 0.1 for size in sizes),
            )
        rows.append((name, len(fitted), len(errors), *measures))
    return Table(
        columns=(
            Column(label="runs"),
            *headings("fitted on", "tested on", spec=",d"),
            *error_columns("tenth", "median error", "mean"),
        ),
        rows=tuple(rows),
        values={"runs": Named(len(judged_peaks()))},
    )


def _grouped(by: str, peaks: list[JudgedPeak]) -> dict[str, list[JudgedPeak]]:
    if by not in GROUPS:
        raise InputError("by", expected=" or ".join(GROUPS), got=by)
    found: dict[str, list[JudgedPeak]] = {}
    for peak in peaks:
        found.setdefault(GROUPS[by](peak), []).append(peak)
    return dict(sorted(found.items(), key=lambda entry: -len(entry[1])))
