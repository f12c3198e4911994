"""A measured step of a job as an entry of the catalog of logged steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from figgen.errors import InputError
from figgen.scenarios.runs.catalog_row import pasted, quoted, source_entry

ALWAYS = ("model", "accelerator", "nic", "software")
"""Options that an entry gives even at their defaults, which may change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredJob:
    """A job whose step was measured.

    `choices` are the job's options by name, with their values as in TOML (and JSON). `steps` is the
    number of logged steps that were timed, 0 without a log. `day` is ISO 8601.
    """

    model: str
    accelerator: str
    software: str
    gpus: int
    choices: Mapping[str, str]
    step_time_s: float
    steps: int
    peak_memory_bytes: float | None
    day: str


def step_row(
    job: MeasuredJob, address: str, models: Mapping[str, object], chips: Mapping[str, object]
) -> str:
    """Return entry and source with the files they belong in.

    `models` and `chips` are the catalog's. Raises InputError for a model or chip that is not among
    them, and for an address that is not public.
    """
    if job.model not in models:
        raise InputError("model", expected="one of the catalog's", got=job.model)
    if job.accelerator not in chips:
        raise InputError("accelerator", expected="one of the catalog's", got=job.accelerator)
    name = f"{job.model}-{job.gpus}-{job.accelerator}-{job.day}"
    title = f"{job.model}, {job.gpus} × {job.accelerator}, {job.software}"
    return pasted(
        "logged-steps.toml",
        _entry(job, name, title),
        source_entry(name, f"A step of {title}", address, "the log"),
    )


def _entry(job: MeasuredJob, name: str, title: str) -> str:
    peak = job.peak_memory_bytes
    lines = [
        f"[{name}]",
        f"title = {quoted(title)}",
        *[f"{option} = {value}" for option, value in job.choices.items()],
        f'step_time = "{round(job.step_time_s * 1e6)} µs"',
        *([f"steps = {job.steps}"] if job.steps else []),
        *([] if peak is None else [f'peak_memory = "{round(peak)} B"']),
        f"source = {quoted(name)}",
        f"seen = {quoted(job.day[:7])}",
        'confidence = "read"',
        "",
    ]
    return "\n".join(lines)
