"""Collectives of a training step: one kind of call each, how often, and how many bytes.

A buffer is the largest per-rank buffer of the call; what a rank sends follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from figgen.errors import unknown

FORWARD, BACKWARD, START, END = "forward", "backward", "start", "end"
"""When a call is made: in every forward or backward of a microbatch, or once per step."""

SEND = "send"
PASSES: dict[str, int] = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1, "all-to-all": 1}
"""How often a rank sends (n − 1)/n of the buffer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Equal calls of one rank on one communicator.

    `axis` names the communicator of `size` ranks, `purpose` what the bytes are. `calls` is per
    microbatch in the phases forward and backward, per step in start and end.
    """

    axis: str
    purpose: str
    collective: str
    phase: str
    calls: int
    buffer_bytes: float
    size: int

    @property
    def sent_bytes(self) -> float:
        """Bytes that the rank sends in one call. Raises InputError for an unknown collective."""
        if self.collective == SEND:
            return self.buffer_bytes
        return sent_bytes(self.collective, self.size, self.buffer_bytes)

    @property
    def per_microbatch(self) -> bool:
        """Whether the calls are made for every microbatch."""
        return self.phase in (FORWARD, BACKWARD)


def sent_bytes(collective: str, size: int, buffer_bytes: float) -> float:
    """Bytes that each of `size` ranks sends in one collective of the largest per-rank buffer.

    Those of a ring, which are the fewest possible, or of a pairwise all-to-all; over each of a
    ring's links go as many. Raises InputError for an unknown collective.
    """
    if collective not in PASSES:
        raise unknown("collective of a step", collective, PASSES)
    return PASSES[collective] * (size - 1) / size * buffer_bytes


def merged(traffic: Iterable[Traffic]) -> tuple[Traffic, ...]:
    """Equal calls added up, in the order of their first; those of one rank alone left out."""
    calls: dict[tuple[str, str, str, str, float, int], int] = {}
    for entry in traffic:
        if entry.calls and (entry.size > 1 or entry.collective == SEND):
            key = (
                entry.axis, entry.purpose, entry.collective, entry.phase,
                entry.buffer_bytes, entry.size,
            )  # fmt: skip
            calls[key] = calls.get(key, 0) + entry.calls
    return tuple(
        Traffic(
            axis=axis,
            purpose=purpose,
            collective=collective,
            phase=phase,
            calls=number,
            buffer_bytes=buffer_bytes,
            size=size,
        )
        for (axis, purpose, collective, phase, buffer_bytes, size), number in calls.items()
    )
