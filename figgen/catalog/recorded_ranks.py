"""Two steps of a small model under DDP on two CPU processes, as each of them recorded them.

Both ran on one machine, so their clocks agree. `docs/assets/examples/` has the files, and
`tests/oracles/profiles/` the programs that recorded and shortened them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from figgen.catalog.load import content
from figgen.lookups import remembered

MICRO = 1e-6

Span = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSpans:
    """Spans of one rank, in seconds from the beginning of the first step of any rank."""

    steps_s: tuple[Span, ...]
    operators_s: tuple[Span, ...]
    calls_s: tuple[Span, ...]


@remembered(1)
def recorded_ranks() -> tuple[RecordedSpans, ...]:
    """Return the ranks in order."""
    return tuple(
        RecordedSpans(
            steps_s=_spans(rank["steps"]),
            operators_s=_spans(rank["operators"]),
            calls_s=_spans(rank["calls"]),
        )
        for rank in json.loads(content("recorded-ranks.json"))
    )


def _spans(found: list[list[float]]) -> tuple[Span, ...]:
    return tuple((start * MICRO, end * MICRO) for start, end in found)
