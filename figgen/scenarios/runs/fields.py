"""Reads and checks single fields of a run's record."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, TypeAlias

from figgen.errors import InputError

Record: TypeAlias = Mapping[str, Any]
"""A run as a JSON object."""

LARGEST = 1e15
"""Exceeds every size of a run; a larger number is a typo."""


def text_of(record: Record, field: str) -> str:
    """Return a text of a record. Raises InputError if it is missing, blank or not a text."""
    value = record.get(field)
    if not isinstance(value, str) or not value.strip():
        raise InputError(field, expected="text", got="missing" if value is None else value)
    return value


def whole_of(record: Record, field: str, usual: int | None = None, *, least: int = 1) -> int:
    """Return a whole number of a record, or `usual`. Raises InputError if there is neither."""
    value = record.get(field)
    if value is None:
        if usual is None:
            raise InputError(field, expected=f"a whole number from {least} on", got="missing")
        return usual
    number = float(value) if isinstance(value, int | float) else float("nan")
    if not least <= number <= LARGEST or number != int(number) or isinstance(value, bool):
        raise InputError(field, expected=f"a whole number from {least} on", got=value)
    return int(number)


def number_of(record: Record, field: str) -> float | None:
    """Return a finite, non-negative number of a record, or None if it is missing or 0.

    Raises InputError for anything else.
    """
    value = record.get(field)
    if value is None or value == "":
        return None
    number = float(value) if isinstance(value, int | float) else float("nan")
    if not isfinite(number) or number < 0 or isinstance(value, bool):
        raise InputError(field, expected="a number from 0 on", got=value)
    return number or None


def wholes_of(record: Record, field: str) -> tuple[int, ...]:
    """Return a list of whole numbers, empty if missing. Raises InputError for anything else."""
    value = record.get(field) or ()
    if not isinstance(value, list | tuple):
        raise InputError(field, expected="a list of whole numbers", got=value)
    return tuple(whole_of({field: each}, field, least=0) for each in value)
