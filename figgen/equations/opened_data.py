"""What a number of a model opens to, as data that a script computes again: printed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPart:
    """One kind of time, memory or messages in a number, how it is computed, and from what."""

    name: str
    value: float
    unit: str
    how: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What a number of a model opens to: formula, substitution, and parts, the largest first."""

    formula: str
    worked: str
    parts: tuple[OpenedPart, ...]
