"""Two steps of plain PyTorch, recorded by PyTorch's own tools on one H100, in short.

TinyLlama 1.1B under autocast is in a trace of torch.profiler, with 4 sequences of 2,048 tokens;
Llama 3.2 1B is in a snapshot of the allocator, with 2 sequences of 4,096. Both are this project's
own runs with torch 2.11; `tests/oracles/profiles/` has the files and the program that shortens
them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from figgen.catalog.load import content

MICRO = 1e-6

KINDS = ("product", "attention", "optimizer", "passes")
"""Kinds of kernels; the last is for kernels, copies and memsets of no other kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A phase: when the host launches it and when the GPU runs it;

    `busy_s` is kernel time by kind.
    """

    host_s: tuple[float, float]
    gpu_s: tuple[float, float]
    busy_s: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel of a layer: its kind, and its start and end from the layer's beginning."""

    kind: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTrace:
    """A step in a profile; until `before_s` the GPU still runs the previous step."""

    step_s: float
    before_s: float
    phases: Mapping[str, Phase]
    layer: tuple[Kernel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedMemory:
    """A step in a snapshot: times, bytes in use then, and the bytes of gradients among them."""

    backward_s: float
    update_s: float
    times_s: tuple[float, ...]
    bytes: tuple[int, ...]
    gradients: tuple[int, ...]


@cache
def _file() -> Any:
    return json.loads(content("recorded-steps.json"))


def _span(pair: list[float]) -> tuple[float, float]:
    return pair[0] * MICRO, pair[1] * MICRO


def recorded_trace() -> RecordedTrace:
    """Return the step of TinyLlama."""
    found = _file()["trace"]
    return RecordedTrace(
        step_s=found["step"][1] * MICRO,
        before_s=found["before"] * MICRO,
        phases={
            name: Phase(
                host_s=_span(phase["host"]),
                gpu_s=_span(phase["gpu"]),
                busy_s={kind: phase["busy"][kind] * MICRO for kind in KINDS},
            )
            for name, phase in found["phases"].items()
        },
        layer=tuple(
            Kernel(kind=kind, start_s=start * MICRO, end_s=(start + length) * MICRO)
            for kind, start, length in found["layer"]
        ),
    )


def recorded_memory() -> RecordedMemory:
    """Return the step of Llama 3.2 1B."""
    found = _file()["memory"]
    times, held, gradients = zip(*found["moments"], strict=True)
    return RecordedMemory(
        backward_s=found["backward"] * MICRO,
        update_s=found["update"] * MICRO,
        times_s=tuple(time * MICRO for time in times),
        bytes=held,
        gradients=gradients,
    )
