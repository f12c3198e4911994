"""validate: compare predicted with measured step times, by class, format, generation and rank."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from statistics import fmean
from typing import Any

from figgen.commands import Answer, Verbs, add_verb, file_text
from figgen.commands.training import aligned
from figgen.errors import InputError
from figgen.models.memory.fit_probability import fit_words
from figgen.registry import build
from figgen.scenarios.evidence.class_intervals import ClassInterval, coverages, interval_of
from figgen.scenarios.evidence.leaderboard import scored, split_jobs
from figgen.scenarios.evidence.publishers import (
    by_class,
    by_publisher,
    errors_of_group,
    judged_publishers,
    side_of,
)
from figgen.scenarios.evidence.rivals import comparisons
from figgen.scenarios.evidence.validation import GROUPINGS, errors_of, grouped, rankings
from figgen.scenarios.runs.device_run import (
    device_answer,
    device_run,
    measured_steps,
    predicted_device,
)
from figgen.units import format_quantity

LARGEST_ANSWERS = 2**20
TITLES = {
    "class": "Errors by class",
    "format": "Errors by format",
    "generation": "Errors by generation",
    "framework": "Errors by framework",
    "experts": "Errors of mixtures of experts by release",
}


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "validate",
        _validate,
        "compare predicted with measured step times of every published run",
        "--json",
        "--split",
    )
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument(
        "--split", action="store_true", help="print the leaderboard's runs as JSON, one a line"
    )
    asked.add_argument(
        "--answers",
        help="a predictor's JSON file {run: seconds}; prints its row of the leaderboard",
    )


def _validate(options: argparse.Namespace) -> Answer:
    from figgen.renderers import text

    if options.split:
        jobs = split_jobs()
        return Answer(jobs, "\n".join(json.dumps(job, ensure_ascii=False) for job in jobs))
    if options.answers:
        return _row(options.answers)
    data: dict[str, object] = {
        by: [
            {"tested": tested} | asdict(found)
            for name, runs in grouped(by).items()
            for tested in (False, True)
            if (found := errors_of(name, [run for run in runs if run.tested == tested]))
        ]
        for by in GROUPINGS
    }
    shown = [
        f"{title}\n{text.render(build('validation-errors', {'by': by}))}"
        for by, title in TITLES.items()
    ]
    shown += [
        f"Errors by publisher\n{text.render(build('validation-publishers', {}))}",
        f"Errors by stack, chips and kind\n{text.render(build('validation-classes', {}))}",
    ]
    shown += [f"Layouts of the sweep, ranked\n{text.render(build('validation-ranking', {}))}"]
    shown += [f"Largest errors of test runs\n{text.render(build('validation-misses', {}))}"]
    shown += [f"Other models on the same tests\n{text.render(build('validation-rivals', {}))}"]
    judged = judged_publishers()
    publishers = [
        asdict(errors_of_group(name, runs)) | {"part": side_of(name)}
        for name, runs in by_publisher(judged).items()
    ]
    classes = [
        asdict(errors_of_group(name, runs))
        | {"interval": _ends(interval_of(runs[0].published.run_class, judged))}
        for name, runs in by_class(judged).items()
    ]
    covered = [asdict(found) for found in coverages(judged)]
    steps = [device_answer(predicted_device(device_run(record))) for record in measured_steps()]
    shown += ["\n".join(["Steps of plain transformers on one GPU", *_device_lines(steps)])]
    ranked = [asdict(entry) for entry in rankings(tested_only=True)]
    rivals = [
        {"kind": one.kind, "tool": one.rival.name, "documented": asdict(one.documented)}
        | {"fitted": asdict(one.fitted), "ours": asdict(one.ours)}
        for one in comparisons()
    ]
    data |= {"publishers": publishers, "classes": classes, "coverage": covered}
    more = {"rankings": ranked, "rivals": rivals, "one_gpu": steps}
    return Answer(data | more, "\n".join(shown))


def _row(path: str) -> Answer:
    """Return the leaderboard's row for the answers in a file."""
    text = file_text(path, "answers", LARGEST_ANSWERS)
    try:
        answers = json.loads(text)
    except ValueError as error:
        raise InputError("answers", expected="JSON", got=str(error)) from None
    if not isinstance(answers, dict):
        raise InputError("answers", expected="{run: seconds}", got=type(answers).__name__)
    row = scored("yours", "", path, answers)
    said = (
        f"{row.runs} runs of {row.publishers} publishers: mean error {row.mean_absolute:.1%}, "
        f"median {row.median_absolute:.1%}, within 25% {row.within_quarter:.0%}; "
        f"this site on the same runs: {row.ours:.1%}"
    )
    return Answer(asdict(row), said)


def _ends(found: ClassInterval) -> dict[str, Any]:
    """Return an interval by its two ends instead of the spreads that they are computed from."""
    shown = {key: value for key, value in asdict(found).items() if key != "likely"}
    return shown | {"low": found.low, "high": found.high}


def _device_lines(steps: list[dict[str, Any]]) -> list[str]:
    """Return a line for each step that was measured on one GPU, and the mean errors."""
    rows = [["step", "stack", "time", "error", "allocated", "error", "reserved", "error", "fits"]]
    errors: dict[str, list[float]] = {"time": [], "allocated": [], "reserved": []}
    for record, step in zip(measured_steps(), steps, strict=True):
        row = [str(step["id"]), str(step["stack"])]
        for name, field, key, unit in (
            ("time", "step_time_s", "step_time_s", "s"),
            ("allocated", "allocated_bytes", "peak_allocated_bytes", "B"),
            ("reserved", "memory_bytes", "peak_reserved_bytes", "B"),
        ):
            row.append(format_quantity(step[field], unit, "time" if unit == "s" else "bytes"))
            # A step that ran out of memory has neither a time nor a peak.
            ran = key in record
            errors[name] += [step[field] / record[key] - 1] if ran else []
            row.append(f"{errors[name][-1]:+.1%}" if ran else "–")
        rows.append([*row, fit_words(step["fit_probability"])])
    means = ", ".join(f"{name} {fmean(map(abs, each)):.1%}" for name, each in errors.items())
    return [*aligned(rows, left=2), f"mean errors: {means}"]
