"""Collectives of a training step: the kinds of calls, their numbers, and the bytes they move.

A buffer is the largest per-rank buffer of the call; the bytes that a rank sends follow from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from figgen.errors import unknown

FORWARD, BACKWARD, START, END = "forward", "backward", "start", "end"
"""When a call runs: in every forward or backward of a microbatch, or once per step."""

SEND = "send"
PASSES: dict[str, int] = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1, "all-to-all": 1}
"""How many times a rank sends (n − 1)/n of the buffer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Equal calls of one rank on one communicator.

    `axis` names the communicator of `size` ranks, `purpose` the content of the messages. `calls` is
    per microbatch in the phases forward and backward, and per step in start and end.
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
        """Whether the calls run for every microbatch."""
        return self.phase in (FORWARD, BACKWARD)


def sent_bytes(collective: str, size: int, buffer_bytes: float) -> float:
    """Return the bytes that each of `size` ranks sends in one collective of a per-rank buffer.

    Rings, which send the fewest bytes possible, and pairwise all-to-alls are assumed. Each link of
    a ring carries the same number. Raises InputError for an unknown collective.
    """
    if collective not in PASSES:
        raise unknown("collective of a step", collective, PASSES)
    return PASSES[collective] * (size - 1) / size * buffer_bytes


def merged(traffic: Iterable[Traffic]) -> tuple[Traffic, ...]:
    """Return equal calls added up, in order of first appearance, without those of a single rank."""
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
