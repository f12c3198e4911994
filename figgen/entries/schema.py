"""The schema of catalog files: keys with units and plausible ranges, values with sources.

A catalog file is TOML, one table per entry. A value is a quantity in its datasheet's unit
("3.35 TB/s"), a plain number for a count, or a table that adds the value's own provenance:
`{ value = "200 GB/s", source = "…", confidence = "memory", low = "160 GB/s", high = … }`.
Provenance that a value lacks is taken from its entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from figgen.units import parse_quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A number in SI with its unit and its provenance.

    `low` and `high` bound a value that its sources disagree on or that was not verified;
    `printed` is the datasheet's spelling, with this range if there is one.
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
    """The specification of one key: its kind, SI unit, plausible range and choices."""

    kind: str
    unit: str = "1"
    low: float = 0.0
    high: float = 0.0
    choices: tuple[str, ...] = ()
    required: bool = False
    ends: str = ""
    """The plausible range of a quantity as its author wrote it."""


def quantity(unit: str, low: str, high: str, *, required: bool = False) -> Key:
    """Specify a physical quantity, plausible from `low` to `high` (written as "1 GB/s")."""
    lowest, highest = parse_quantity(low, unit).value, parse_quantity(high, unit).value
    return Key(
        kind="quantity",
        unit=unit,
        low=lowest,
        high=highest,
        required=required,
        ends=f"{low} to {high}",
    )


def count(low: int, high: int, *, unit: str = "1", required: bool = False) -> Key:
    """Specify a whole number."""
    return Key(kind="count", unit=unit, low=low, high=high, required=required)


def number(low: float, high: float, *, required: bool = False) -> Key:
    """Specify a number without a unit; a percentage stays in percent as printed."""
    return Key(kind="number", unit="1", low=low, high=high, required=required)


def text(*, required: bool = False) -> Key:
    """Specify free text, or the name of a different entry."""
    return Key(kind="text", required=required)


def choice(*choices: str, required: bool = False) -> Key:
    """Specify a choice of words."""
    return Key(kind="text", choices=choices, required=required)


def flag() -> Key:
    """Specify a value that is true or false."""
    return Key(kind="flag")


Keys: TypeAlias = Mapping[str, Key]


def wanted(spec: Key) -> str:
    """Describe the values that a key accepts."""
    if spec.kind == "text":
        return " or ".join(spec.choices) or "text"
    if spec.kind == "flag":
        return "true or false"
    unit = "" if spec.unit == "1" else f" in {spec.unit}"
    return f"a {spec.kind}{unit} from {spec.ends or f'{spec.low:g} to {spec.high:g}'}"
