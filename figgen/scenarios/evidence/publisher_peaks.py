"""Memory peaks that publishers print, each next to the predicted peak of the same kind.

A publisher prints what the allocator handed out (allocated, active), what it holds (reserved), or
what the whole device holds, as nvidia-smi shows. Three kinds of peaks are excluded: those of runs
with adapters, since a run file describes full training, those whose source does not give what
determines the peak (`peak_doubt`), and those of a full card, since an allocator takes what there
is, whatever a step needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.catalog.publishers import publisher_records
from figgen.errors import InputError
from figgen.lookups import remembered
from figgen.models.memory.memory import MemoryEstimate, memory
from figgen.models.shape.model_shape import ModelShape
from figgen.scenarios.runs.names import first_match
from figgen.scenarios.runs.record import described_run
from figgen.scenarios.runs.setup import run_setup

KINDS = (
    (r"reserved|perf counter", "reserved"),
    (r"active|allocated", "allocated"),
    (r"nvidia-smi|device|per gpu", "device"),
)
"""Kinds of peaks by the words of publishers; the first match applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherPeak:
    """A printed peak and the predicted peak of its kind, in bytes.

    `habits` names the framework whose memory habits the prediction uses, and `gathered_bytes` are
    the two inputs that a layer gathers from tensor-parallel ranks.
    """

    publisher: str
    name: str
    kind: str
    habits: str
    measured_bytes: float
    predicted_bytes: float
    gathered_bytes: float
    shape: ModelShape

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted_bytes / self.measured_bytes - 1


@remembered(2)
def publisher_peaks(habits: str | None = None) -> tuple[PublisherPeak, ...]:
    """Return every printed peak of full training whose run can be laid out.

    With `habits`, all are predicted with those of that framework.
    """
    found = []
    for record in publisher_records():
        kind = first_match(KINDS, str(record.get("memory_kind") or ""))
        if kind is None or not record.get("peak_memory_gib"):
            continue
        if record.get("training") or record.get("peak_doubt"):
            continue
        try:
            run = described_run(record if habits is None else {**record, "habits": habits})
            setup = run_setup(run)
        except InputError:
            continue
        measured, capacity = (
            float(record["peak_memory_gib"]) * 2**30,
            run.accelerator.capacity_bytes,
        )
        if measured >= capacity:
            continue
        held = memory(setup)
        found.append(
            PublisherPeak(
                publisher=record["publisher"],
                name=str(record["id"]),
                kind=kind,
                habits=setup.framework,
                measured_bytes=measured,
                predicted_bytes=predicted_peaks(held, capacity)[kind],
                gathered_bytes=held.gathered_bytes,
                shape=run.shape,
            )
        )
    return tuple(found)


def predicted_peaks(held: MemoryEstimate, capacity_bytes: float) -> dict[str, float]:
    """Return the predicted peak by kind, in bytes.

    An allocator that reaches the capacity frees what it holds beyond its tensors.
    """
    room = capacity_bytes - held.fullest.outside_bytes
    allocated = max(rank.allocated_bytes for rank in held.ranks)
    reserved = max(rank.reserved_bytes for rank in held.ranks)
    reserved = max(allocated, min(reserved, room))
    return {
        "allocated": allocated,
        "reserved": reserved,
        "device": reserved + held.fullest.outside_bytes,
    }
