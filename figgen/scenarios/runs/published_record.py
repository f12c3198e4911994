"""A run of the catalog as a record of a run file."""

from __future__ import annotations

from typing import Any

from figgen.catalog.runs import Run
from figgen.scenarios.runs.published_time import published_step_s


def record_of(run: Run) -> dict[str, Any]:
    """Return a run of the catalog as a record of a run file."""
    memory = run.peak_memory
    return {
        "id": run.name,
        "hardware": run.accelerator.name,
        "num_accelerators": run.gpus,
        "tp": run.tp,
        "cp": run.cp,
        "pp": run.pp,
        "ep": run.ep,
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
    }
