"""The communication of one pipeline rank in a step, with one row for each kind of call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import fsum

from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.stage_time import StageTime, rule_of

MICROBATCH = "microbatch"

FAMILIES = {
    "dp-cp": "dp", "edp": "dp", "embedding": "dp", "cp-within": "cp", "cp-between": "cp",
}  # fmt: skip
"""Maps communicators to the axis that counts them in the parts of a step."""


def family_of(axis: str) -> str:
    """Return the axis that counts a communicator in the parts of a step."""
    return FAMILIES.get(axis, axis)


@dataclass(frozen=True, slots=True)
class CommunicationRow:
    """Equal calls of one GPU over a whole step.

    `axis` is the communicator, of `size` ranks; `when` says whether the calls come with each
    "microbatch" or once at the "start" or "end" of the step. `buffer_bytes` is the largest per-rank
    buffer of one call, `call_bytes` what the GPU sends in it. `time_s` is the time of all calls on
    their `level` ("scale-up" or "network"), `exposed_s` the part that the step waits for by `rule`.
    """

    axis: str
    purpose: str
    collective: str
    when: str
    size: int
    calls: int
    buffer_bytes: float
    call_bytes: float
    level: str
    time_s: float
    exposed_s: float
    rule: str

    @property
    def sent_bytes(self) -> float:
        """Bytes that the GPU sends per step."""
        return self.calls * self.call_bytes


def rank_rows(
    setup: TrainingSetup, stages: Sequence[StageTime], pipeline_rank: int
) -> tuple[CommunicationRow, ...]:
    """Return the rows of a GPU of `pipeline_rank`, with the time that microbatches expose."""
    found: dict[tuple[object, ...], CommunicationRow] = {}
    for stage in setup.placement.stages_of_rank(pipeline_rank):
        passing = setup.microbatches_of_stage
        for entry in stages[stage].traffic:
            traffic = entry.traffic
            times = passing if traffic.per_microbatch else 1
            row = CommunicationRow(
                axis=traffic.axis,
                purpose=traffic.purpose,
                collective=traffic.collective,
                when=MICROBATCH if traffic.per_microbatch else traffic.phase,
                size=traffic.size,
                calls=times * traffic.calls,
                buffer_bytes=traffic.buffer_bytes,
                call_bytes=traffic.sent_bytes,
                level=entry.link.level,
                time_s=times * entry.time_s,
                exposed_s=times * entry.exposed_s,
                rule=rule_of(setup, traffic),
            )
            key = (row.axis, row.purpose, row.collective, row.when, row.buffer_bytes)
            found[key] = _sum(found[key], row) if key in found else row
    return tuple(found.values())


def sent_by_axis(rows: Iterable[CommunicationRow]) -> dict[str, float]:
    """Return the bytes that the GPU of these rows sends per step, by axis, over all links."""
    total: dict[str, float] = {}
    for row in rows:
        total[row.axis] = total.get(row.axis, 0.0) + row.sent_bytes
    return total


def scaled(rows: Sequence[CommunicationRow], factor: float) -> tuple[CommunicationRow, ...]:
    """Return the rows with their exposed times multiplied by `factor`."""
    return tuple(replace(row, exposed_s=row.exposed_s * factor) for row in rows)


def shared(
    rows: Sequence[CommunicationRow], which: Sequence[bool], seconds: float
) -> tuple[CommunicationRow, ...]:
    """Return the rows with `seconds` divided, by their time, among those marked in `which`."""
    total = fsum(row.time_s for row, marked in zip(rows, which, strict=True) if marked)
    if not total:
        return tuple(rows)
    return tuple(
        replace(row, exposed_s=row.exposed_s + seconds * row.time_s / total) if marked else row
        for row, marked in zip(rows, which, strict=True)
    )


def _sum(one: CommunicationRow, other: CommunicationRow) -> CommunicationRow:
    return replace(
        one,
        calls=one.calls + other.calls,
        time_s=one.time_s + other.time_s,
        exposed_s=one.exposed_s + other.exposed_s,
    )
