"""Published runs with a measured memory peak, each next to the model's."""

from __future__ import annotations

import json
from dataclasses import dataclass

from figgen.catalog import load
from figgen.catalog.measured import measured_records
from figgen.errors import InputError
from figgen.lookups import remembered
from figgen.models.memory.memory import MemoryEstimate, memory
from figgen.models.setup.training_setup import TrainingSetup
from figgen.scenarios.evidence.measured import measured_runs, run_sides, shown_runs
from figgen.scenarios.evidence.split import TEST
from figgen.scenarios.options.resolve import resolve
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.record import described_run
from figgen.scenarios.runs.setup import run_setup

EVEN = 0.5
"""The chance of a run that is predicted to need exactly what its GPU has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPeak:
    """A run with the peaks that its log printed and the model predicts, in bytes.

    It is `tested` if nothing was fitted to it; `chance` is the predicted chance that it fits, and
    `gathered_bytes` are the two inputs that a layer gathers from tensor-parallel ranks.
    """

    run: DescribedRun
    measured_bytes: float
    modelled_bytes: float
    tested: bool
    chance: float
    gathered_bytes: float

    @property
    def error(self) -> float:
        """Modeled over measured, less one."""
        return self.modelled_bytes / self.measured_bytes - 1

    @property
    def fits(self) -> bool:
        """Whether the model says that the run fits."""
        return self.chance >= EVEN


@remembered(1)
def judged_peaks() -> tuple[JudgedPeak, ...]:
    """Return every run with a printed peak, in the order of the catalog."""
    sides, found = run_sides(), []
    for run in (*measured_runs(), *shown_runs()):
        if run.peak_memory_bytes is None:
            continue
        # A run of the catalog is modeled as on its own page.
        own = run.name in load.runs()
        setup = resolve(scenario(run=run.name)).setup if own else run_setup(run)
        held = _modelled(setup, run.accelerator.capacity_bytes)
        tested = sides[run.name] == TEST
        found.append(
            JudgedPeak(
                run=run,
                measured_bytes=run.peak_memory_bytes,
                modelled_bytes=held.printed_bytes,
                tested=tested,
                chance=held.fit_probability or 0.0,
                gathered_bytes=held.gathered_bytes,
            )
        )
    return tuple(found)


@remembered(1)
def failed_chances() -> tuple[float, ...]:
    """Return the predicted chance to fit of each layout of nanotron's sweep that failed.

    The table of the sweep does not distinguish running out of memory from crashes. A layout that
    cannot be laid out has a chance of 0.
    """
    failed = json.loads(load.content("layouts-failed.json"))
    shapes = {
        record["model"]: record for record in measured_records() if record.get("model") is not None
    }
    found = []
    for row in failed["rows"]:
        layout = dict(zip(failed["columns"], row, strict=True))
        known = shapes[failed["models"][layout.pop("model")]]
        batch = layout["dp"] * layout["micro_batch"] * layout["gradient_accumulation"]
        record = {
            **{key: known[key] for key in ("hardware", "shape", "framework")},
            **layout,
            "seq_length": failed["sequence"],
            "global_batch_sequences": batch,
        }
        try:
            run = described_run(record)
            held = _modelled(run_setup(run), run.accelerator.capacity_bytes)
        except InputError:
            found.append(0.0)
        else:
            found.append(held.fit_probability or 0.0)
    return tuple(found)


# Another chip hardly changes these sizes.
@remembered(4096)
def _modelled(setup: TrainingSetup, capacity_bytes: float) -> MemoryEstimate:
    """Return the memory of a run, beside what its GPU has."""
    return memory(setup, capacity_bytes=capacity_bytes)
