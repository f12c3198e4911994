"""The measured runs, and which of them calibrate the model."""

from __future__ import annotations

from typing import Any

from figgen.catalog import load
from figgen.catalog.measured import measured_records
from figgen.catalog.runs import Run
from figgen.errors import InputError
from figgen.lookups import remembered
from figgen.scenarios.evidence.split import sides
from figgen.scenarios.options.assumptions import known_of
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.published_record import record_of
from figgen.scenarios.runs.record import described_run

FIELDS = {
    "chunks": "vpp", "microbatch_size": "micro_batch", "zero_stage": "zero_stage",
    "recompute": "recompute", "nic": "network", "dispatcher": "dispatcher",
    "expert_overlap": "expert_overlap", "cuda_graphs": "cuda_graphs",
    "offloaded_activations": "offloaded_activations",
}  # fmt: skip
"""Fields of a record, by the equivalent options."""


@remembered(1)
def measured_runs() -> tuple[DescribedRun, ...]:
    """Return every measured run of the file."""
    return tuple(described_run(record) for record in measured_records())


@remembered(1)
def shown_runs() -> tuple[DescribedRun, ...]:
    """Return the catalog's runs that have a time and enough data to be predicted."""
    found = []
    for run in load.runs().values():
        try:
            described = described_run(completed_record(run))
        except InputError:
            continue
        if described.step_time_s is not None:
            found.append(described)
    return tuple(found)


def completed_record(run: Run) -> dict[str, Any]:
    """Return a run of the catalog as a record, completed with assumptions."""
    values, _ = known_of(run)
    known = {field: values[option] for option, field in FIELDS.items() if option in values}
    return record_of(run) | known


@remembered(1)
def run_sides() -> dict[str, str]:
    """Return "calibration" or "test" for every run, by name."""
    return sides(measured_runs(), shown_runs())
