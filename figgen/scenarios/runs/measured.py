"""The measured runs, described, and which of them calibrate."""

from __future__ import annotations

from typing import Any

from figgen.catalog import load
from figgen.catalog.lookups import remembered
from figgen.catalog.measured import measured_records
from figgen.catalog.runs import Run
from figgen.errors import InputError
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.published_time import published_step_s
from figgen.scenarios.runs.record import described_run
from figgen.scenarios.runs.split import sides


@remembered(1)
def measured_runs() -> tuple[DescribedRun, ...]:
    """Every measured run of the file."""
    return tuple(described_run(record) for record in measured_records())


@remembered(1)
def shown_runs() -> tuple[DescribedRun, ...]:
    """The catalog's runs that say enough to be predicted and what they took."""
    found = []
    for run in load.runs().values():
        try:
            described = described_run(record_of(run))
        except InputError:
            continue
        if described.step_time_s is not None:
            found.append(described)
    return tuple(found)


@remembered(1)
def run_sides() -> dict[str, str]:
    """ "calibration" or "test" for every run by name."""
    return sides(measured_runs(), shown_runs())


def record_of(run: Run) -> dict[str, Any]:
    """A run of the catalog as a record of a run file."""
    memory = run.peak_memory
    return {
        "id": run.name,
        "hardware": run.accelerator.name,
        "num_accelerators": run.gpus,
        "tp": run.tp, "cp": run.cp, "pp": run.pp, "ep": run.ep,
        "vpp": run.virtual_stages if run.virtual_stages > 1 else None,
        "mtp_layers": run.mtp_layers or None,
        "micro_batch": run.microbatch,
        "global_batch_sequences": run.global_batch,
        "seq_length": run.sequence,
        "zero_stage": run.zero_stage,
        "precision": run.precision,
        "recompute": run.recompute or None,
        "model_shape_ref": run.model.name,
        "step_time_s": published_step_s(run),
        "peak_memory_gib": memory.value / 2**30 if memory else None,
        "source": run.source,
        "source_group": "catalog",
    }  # fmt: skip
