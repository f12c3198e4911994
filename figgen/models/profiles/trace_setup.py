"""What a recording tells about its job: the GPU, the number of GPUs, and the sizes of groups."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.models.profiles.profile import RankProfile
from figgen.models.profiles.trace_kinds import axis_of

SIZED = ("tp", "cp", "ep", "pp")
"""Axes whose sizes follow from groups; the remaining ranks are data parallel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSetup:
    """The GPU as the trace names it, the ranks of the job, and sizes by axis; 0 if unknown."""

    device: str
    ranks: int
    sizes: tuple[tuple[str, int], ...]
    steps: int
    step_s: float


def setup_of(rank: RankProfile) -> RecordedSetup:
    """Return what the recording of one rank tells about the job."""
    sizes: dict[str, int] = {}
    for calls in rank.calls:
        axis = axis_of(calls.group)
        if axis in SIZED and calls.group.size > 1:
            sizes[axis] = max(sizes.get(axis, 0), calls.group.size)
    return RecordedSetup(
        device=rank.device,
        ranks=1 if rank.alone else rank.world_size,
        sizes=tuple(sizes.items()),
        steps=rank.steps,
        step_s=rank.wall_s / rank.steps,
    )
