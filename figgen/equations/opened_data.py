"""The explanation of a model's number, as data that a script can recompute; printed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPart:
    """One part of a number, such as a kind of time or memory: its computation and its source."""

    name: str
    value: float
    unit: str
    how: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The explanation of a model's number: formula, substitution, and parts, largest first."""

    formula: str
    worked: str
    parts: tuple[OpenedPart, ...]
