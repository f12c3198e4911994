"""What a catalog file may say: keys with units and plausible ranges, every value with its source.

A catalog file is TOML, one table per entry. A value is a quantity in its datasheet's unit
("3.35 TB/s"), a plain number for a count, or a table that adds provenance of its own to it:
`{ value = "200 GB/s", source = "…", confidence = "memory", low = "160 GB/s", high = … }`.
What a value does not say about itself it takes from its entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from figgen.units import parse_quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A number in SI with its unit and where it comes from.

    `low` and `high` bound a value that its sources disagree on, or that nobody verified;
    `printed` is the datasheet's own spelling, with that range where there is one.
    """

    value: float
    unit: str
    source: str
    seen: str
    confidence: str
    low: float | None = None
    high: float | None = None
    printed: str = ""

    def __str__(self) -> str:
        return self.printed


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What one key of an entry may hold: its kind, SI unit, plausible range and choices."""

    kind: str
    unit: str = "1"
    low: float = 0.0
    high: float = 0.0
    choices: tuple[str, ...] = ()
    required: bool = False


def quantity(unit: str, low: str, high: str, *, required: bool = False) -> Key:
    """A physical quantity, plausible between `low` and `high` (both as "1 GB/s")."""
    lowest, highest = parse_quantity(low, unit).value, parse_quantity(high, unit).value
    return Key(kind="quantity", unit=unit, low=lowest, high=highest, required=required)


def count(low: int, high: int, *, unit: str = "1", required: bool = False) -> Key:
    """A whole number of things."""
    return Key(kind="count", unit=unit, low=low, high=high, required=required)


def number(low: float, high: float, *, required: bool = False) -> Key:
    """A number without a unit; a percentage stays in percent as printed."""
    return Key(kind="number", unit="1", low=low, high=high, required=required)


def text(*, required: bool = False) -> Key:
    """Free text, or the name of another entry."""
    return Key(kind="text", required=required)


def choice(*choices: str, required: bool = False) -> Key:
    """One of a few words."""
    return Key(kind="text", choices=choices, required=required)


def flag() -> Key:
    """True or false."""
    return Key(kind="flag")


Keys: TypeAlias = Mapping[str, Key]


def wanted(spec: Key) -> str:
    """What a value of this key must be, in words."""
    if spec.kind == "text":
        return " or ".join(spec.choices) or "a text"
    if spec.kind == "flag":
        return "true or false"
    unit = "" if spec.unit == "1" else f" in {spec.unit}"
    return f"a {spec.kind}{unit} from {spec.low:g} to {spec.high:g}"
