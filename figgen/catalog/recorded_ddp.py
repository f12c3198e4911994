"""A step of ResNet-50 under DDP on two A100, as torch.profiler recorded it on one of them.

A public trace of facebookresearch/HolisticTraceAnalysis (MIT License, Meta Platforms, Inc. and
affiliates), recorded in May 2024; `tests/oracles/profiles/` holds the file and the program that
shortens it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from figgen.catalog.load import content
from figgen.lookups import remembered

MICRO = 1e-6
BYTES_PER_ELEMENT = 4
"""All of its collectives send 32-bit numbers, according to the trace."""

Span = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A collective on the GPU, and the bytes of its buffer."""

    collective: str
    span_s: Span
    message_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDdp:
    """Spans from the beginning of the step on the CPU; `kernels_s` are all except collectives."""

    step_s: float
    host_s: Mapping[str, Span]
    kernels_s: tuple[Span, ...]
    calls: tuple[RecordedCall, ...]


def _span(start: float, length: float) -> Span:
    return start * MICRO, (start + length) * MICRO


@remembered(1)
def recorded_ddp() -> RecordedDdp:
    """Return the step."""
    found = json.loads(content("recorded-ddp.json"))
    return RecordedDdp(
        step_s=found["step"] * MICRO,
        host_s={phase: _span(*span) for phase, span in found["host"].items()},
        kernels_s=tuple(_span(*span) for span in found["kernels"]),
        calls=tuple(
            RecordedCall(
                collective=name,
                span_s=_span(start, length),
                message_bytes=elements * BYTES_PER_ELEMENT,
            )
            for name, start, length, elements in found["calls"]
        ),
    )
