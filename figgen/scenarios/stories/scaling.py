"""One model on a growing number of accelerators, with a constant or a growing batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import fsum

import numpy as np

from figgen.errors import InputError, check_between
from figgen.lookups import remembered
from figgen.models.memory.memory import memory
from figgen.models.setup.training_setup import TrainingSetup
from figgen.scenarios.evidence.calibrate import Predictor
from figgen.scenarios.runs.described import DescribedRun, domain_width
from figgen.scenarios.runs.predicted import PredictedStep, predicted_step
from figgen.scenarios.runs.record import described_run
from figgen.scenarios.runs.setup import run_setup

SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
SEQUENCE = 8192
TENSOR = 8
CONTEXT, PIPELINE, CHUNKS, RECOMPUTED = (1, 2, 4, 8), (1, 4, 8, 16), (1, 4), ("none", "full")
"""Axis sizes, chunks and recomputation to try at every size, with one sequence per microbatch."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """The fastest layout that fits on a number of accelerators, and its predicted step."""

    run: DescribedRun
    step: PredictedStep

    @property
    def gpu_s_per_token(self) -> float:
        """Accelerator-seconds per token."""
        return 1 / self.step.tokens_per_s_per_gpu

    @property
    def layout(self) -> str:
        """The layout in words: TP, CP, PP and DP, joined by dots at which lines do not break."""
        run = self.run
        return f"{run.tp}·{run.cp}·{run.pp}·{run.dp}"


@remembered(32)
def scaled(model: str, hardware: str, precision: str, batch: int, weak: bool) -> tuple[Scaled, ...]:
    """Return the fastest layout for each number of accelerators on which some layout fits.

    `batch` is the number of sequences per step: constant or, if `weak`, the number on 16,384
    accelerators, with the batch growing in proportion.

    Raises InputError for a model or chip that is not in the catalog.
    """
    check_between("batch", batch, 1, 1_000_000)
    layouts, found = _layouts(model, hardware, precision), []
    for gpus in SIZES:
        sequences = max(1, batch * gpus // 16384) if weak else batch
        best = _fastest(layouts, gpus, sequences)
        if best is not None:
            found.append(best)
    return tuple(found)


def _layouts(model: str, hardware: str, precision: str) -> list[DescribedRun]:
    """Return all layouts, each with one replica and one sequence."""
    asked = {
        "id": model, "hardware": hardware, "tp": TENSOR, "micro_batch": 1,
        "global_batch_sequences": 1, "seq_length": SEQUENCE, "zero_stage": 1,
        "precision": precision, "model_shape_ref": model, "framework": "megatron-lm",
    }  # fmt: skip
    return [
        described_run(
            asked
            | {
                "cp": cp,
                "pp": pp,
                "vpp": chunks,
                "recompute": recompute,
                "num_accelerators": TENSOR * cp * pp,
            }
        )
        for cp, pp, chunks, recompute in product(CONTEXT, PIPELINE, CHUNKS, RECOMPUTED)
    ]


def _sized(run: DescribedRun, gpus: int, sequences: int) -> DescribedRun:
    """Return the layout scaled to this number of accelerators and sequences."""
    width = domain_width(run.accelerator, gpus)
    return replace(run, gpus=gpus, gpus_per_node=width, global_batch=sequences)


def _fastest(layouts: Sequence[DescribedRun], gpus: int, sequences: int) -> Scaled | None:
    runs = [
        _sized(run, gpus, sequences)
        for run in layouts
        if _divides(gpus, sequences, run.cp, run.pp, run.virtual_stages)
    ]
    if not runs:
        return None
    seconds = Predictor(runs, ())(np.zeros(0))
    for index in np.argsort(seconds, kind="stable"):
        run = runs[int(index)]
        if _fits(run):
            return Scaled(run, predicted_step(run))
    return None


def _divides(gpus: int, sequences: int, cp: int, pp: int, chunks: int) -> bool:
    """Return whether replicas get whole microbatches, and interleaving whole groups of them."""
    replicas, rest = divmod(gpus, TENSOR * cp * pp)
    if rest or not replicas or sequences % replicas:
        return False
    return chunks == 1 or (pp > 1 and sequences // replicas % pp == 0)


def _fits(run: DescribedRun) -> bool:
    # Once the pipeline is full, more microbatches need no more memory.
    filling = run.dp * run.microbatch * min(run.microbatches, 4 * run.pp)
    try:
        setup = run_setup(replace(run, global_batch=filling))
        return _held(setup, run.accelerator.capacity_bytes)
    except InputError:
        return False


# What fits does not depend on the speed of the chip.
@remembered(1024)
def _held(setup: TrainingSetup, capacity_bytes: float) -> bool:
    return bool(memory(setup, capacity_bytes=capacity_bytes).fits)


PARTS = {
    "work_s": "smaller matmuls", "idle_s": "idle stages", "stage_messages_s": "idle stages",
    "gradients_s": "gradients", "update_s": "stragglers and fixed costs",
    "straggling_s": "stragglers and fixed costs", "fixed_s": "stragglers and fixed costs",
}  # fmt: skip
"""Words for the fields of `StepSeconds`."""

FAILURES = "failures"


def lost(sizes: Sequence[Scaled], goodputs: Sequence[float]) -> list[dict[str, float]]:
    """Return what each size loses compared with the first, by reason, as shares of its own time.

    Every part of the step costs accelerator-seconds per token, and costs more if layers are cut
    thinner or stages wait longer. The time lost to failures is added.
    """
    first = _costs(sizes[0])
    found = []
    for size, goodput in zip(sizes, goodputs, strict=True):
        costs = _costs(size)
        whole = fsum(costs.values()) / goodput
        reasons = {words: (costs[words] - first[words]) / whole for words in costs}
        found.append(reasons | {FAILURES: 1 - goodput})
    return found


def _costs(size: Scaled) -> dict[str, float]:
    """Return accelerator-seconds per token, by reason."""
    tokens = size.run.global_batch * size.run.sequence / size.run.gpus
    costs = dict.fromkeys(PARTS.values(), 0.0)
    for name, words in PARTS.items():
        costs[words] += float(getattr(size.step.parts, name)) / tokens
    return costs
