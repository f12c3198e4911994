"""Three ways to save a job's state, the cost of each, and the time that remains after failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from figgen.errors import unknown
from figgen.formulas.reliability import (
    checkpoint_size,
    checkpoint_write_time,
    goodput,
    job_mtbf,
    nodes_in_repair,
)
from figgen.models.planner.reliability import best_interval_s, spare_nodes
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.transformer import parameter_counts

DAY_S = 86_400.0

SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
LARGEST_JOB = 1_000_000

WAYS: Mapping[str, str] = {
    "storage": "to storage, training waits",
    "behind": "to storage, behind training",
    "memory": "in the memory of other nodes",
}
"""Ways to save by name, in words."""

COPY_BYTES_PER_S = 25e9
"""B/s from a GPU to its host, with all GPUs of a node at once: half of a PCIe 5 link's 64 GB/s,
minus the losses of hosts."""

NODE_BYTES_PER_S = 5e9
"""B/s to storage or to a different node, per GPU, without disturbing training: a tenth of its
adapter."""

STORAGE_BYTES_PER_S = 2e12
"""The storage's sustained rate for all writers: Meta's held 2 TB/s (Llama 3, section 3.3.1)."""

RESTART_S = 600.0
"""Time to find a failure, replace its node, start the job again and resume training."""

QUICK_RESTART_S = 180.0
"""The same if a spare node takes over and state comes from other nodes."""


REPAIR_S = 86_400.0
"""A day until a failed node is back: an assumption."""

CONFIDENCE = 0.99
"""Share of all moments in which the spare nodes should suffice."""


@dataclass(frozen=True, slots=True)
class Saving:
    """Seconds that a checkpoint stops training, until it is safe, and to resume after a failure."""

    stall_s: float
    lag_s: float
    restart_s: float


def saving(way: str, checkpoint_bytes: float, gpus: int) -> Saving:
    """Return the cost of a checkpoint of this size. Raises InputError for an unknown way."""
    if way not in WAYS:
        raise unknown("way to save", way, WAYS)
    written = float(
        checkpoint_write_time(checkpoint_bytes, gpus, NODE_BYTES_PER_S, STORAGE_BYTES_PER_S)
    )
    copied = checkpoint_bytes / gpus / COPY_BYTES_PER_S
    if way == "storage":
        return Saving(written, 0.0, RESTART_S + written)
    if way == "behind":
        return Saving(copied, written, RESTART_S + written)
    sent = checkpoint_bytes / gpus / NODE_BYTES_PER_S
    return Saving(copied, sent, QUICK_RESTART_S + sent)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTraining:
    """One way to save a job's state, at the interval that loses the least time."""

    way: str
    mtbf_s: float
    checkpoint_bytes: float
    saving: Saving
    interval_s: float
    goodput: float
    spares: int

    def days(self, tokens: float, tokens_per_step: int, step_s: float) -> float:
        """Return the days to train on `tokens` tokens: the time of all steps over the goodput."""
        return tokens / tokens_per_step * step_s / self.goodput / DAY_S


def checkpoint_bytes_of(setup: TrainingSetup) -> float:
    """Bytes of a job's checkpoint."""
    recipe = setup.recipe
    parameters = parameter_counts(setup.shape).total
    return float(checkpoint_size(parameters, recipe.weight_bytes, recipe.optimizer_bytes))


def saved_training(
    way: str, checkpoint_bytes: float, gpus: int, gpu_mtbf_s: float
) -> SavedTraining:
    """Return a way to save at its best interval, with the share of time that the job keeps.

    `gpu_mtbf_s` is the mean time between failures of one GPU. Raises InputError for an unknown way
    to save.
    """
    mtbf_s = float(job_mtbf(gpus, gpu_mtbf_s))
    saved = saving(way, checkpoint_bytes, gpus)
    interval_s = best_interval_s(saved.stall_s, mtbf_s, saved.lag_s)
    share = goodput(interval_s, saved.stall_s, saved.lag_s, saved.restart_s, mtbf_s)
    out = float(nodes_in_repair(gpus, gpu_mtbf_s, REPAIR_S))
    return SavedTraining(
        way=way,
        mtbf_s=mtbf_s,
        checkpoint_bytes=checkpoint_bytes,
        saving=saved,
        interval_s=interval_s,
        goodput=float(share),
        spares=spare_nodes(out, CONFIDENCE),
    )
