"""The communication of one pipeline rank in a step, one row for each kind of call."""

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
"""Communicators under whose axis the parts of a step count another one."""


def family_of(axis: str) -> str:
    """The axis under which the parts of a step count a communicator."""
    return FAMILIES.get(axis, axis)


@dataclass(frozen=True, slots=True)
class CommunicationRow:
    """Equal calls of one GPU over a whole step.

    `axis` is the communicator, of `size` ranks; `when` says whether the calls come with each
    "microbatch" or once at the "start" or "end" of the step. `buffer_bytes` is the largest
    per-rank buffer and `call_bytes` what the GPU sends, both of one call. `time_s` is that of
    all calls on their `level` ("scale-up" or "network"), `exposed_s` what of it the step waits
    for, by `rule`.
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
        """Bytes that the GPU sends in the step."""
        return self.calls * self.call_bytes


def rank_rows(
    setup: TrainingSetup, stages: Sequence[StageTime], pipeline_rank: int
) -> tuple[CommunicationRow, ...]:
    """Rows of a GPU of `pipeline_rank`; `exposed_s` is what microbatches expose, else 0."""
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
    """Bytes that the GPU of these rows sends in a step, by axis and over whatever link."""
    total: dict[str, float] = {}
    for row in rows:
        total[row.axis] = total.get(row.axis, 0.0) + row.sent_bytes
    return total


def scaled(rows: Sequence[CommunicationRow], factor: float) -> tuple[CommunicationRow, ...]:
    """The rows with everything exposed multiplied by `factor`."""
    return tuple(replace(row, exposed_s=row.exposed_s * factor) for row in rows)


def shared(
    rows: Sequence[CommunicationRow], which: Sequence[bool], seconds: float
) -> tuple[CommunicationRow, ...]:
    """The rows with exposed `seconds` dealt to the marked ones in proportion to their time."""
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
