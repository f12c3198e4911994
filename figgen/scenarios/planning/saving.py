"""Three ways to save a job's state, with what each costs: assumptions, one place for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from figgen.errors import unknown
from figgen.formulas.reliability import checkpoint_write_time

SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
LARGEST_JOB = 1_000_000

WAYS: Mapping[str, str] = {
    "storage": "to storage, training waits",
    "behind": "to storage, behind training",
    "memory": "in the memory of other nodes",
}
"""Ways to save by name, in words."""

COPY_BYTES_PER_S = 25e9
"""From a GPU to its host, with all GPUs of a node at once: half of a PCIe 5 link's 64 GB/s, less
what hosts lose."""

NODE_BYTES_PER_S = 5e9
"""To storage or to another node, per GPU, without disturbing training: a tenth of its adapter."""

STORAGE_BYTES_PER_S = 2e12
"""The storage's sustained rate for all writers: Meta's held 2 TB/s (Llama 3, section 3.3.1)."""

RESTART_S = 600.0
"""Until training goes on when a failure is found, its node replaced and the job started again."""

QUICK_RESTART_S = 180.0
"""The same when a spare takes over and state comes from other nodes."""


REPAIR_S = 86_400.0
"""A day until a failed node is back: an assumption."""

CONFIDENCE = 0.99
"""The share of all moments in which spare nodes should be enough."""


@dataclass(frozen=True, slots=True)
class Saving:
    """Seconds that a checkpoint stops training, until it is safe, and until work goes on after."""

    stall_s: float
    lag_s: float
    restart_s: float


def saving(way: str, checkpoint_bytes: float, gpus: int) -> Saving:
    """What a checkpoint of that size costs a job. Raises InputError for an unknown way."""
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
