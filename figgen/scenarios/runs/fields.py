"""Single fields of a run's record, checked."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, TypeAlias

from figgen.errors import InputError

Record: TypeAlias = Mapping[str, Any]
"""A run as JSON describes it."""


def text_of(record: Record, field: str) -> str:
    """A text of a record. Raises InputError if it is missing, blank or something else."""
    value = record.get(field)
    if not isinstance(value, str) or not value.strip():
        raise InputError(field, expected="a text", got="missing" if value is None else value)
    return value


def whole_of(record: Record, field: str, usual: int | None = None, *, least: int = 1) -> int:
    """A whole number of a record, or what is usual. Raises InputError if neither is there."""
    value = record.get(field)
    if value is None:
        if usual is None:
            raise InputError(field, expected=f"a whole number from {least} on", got="missing")
        return usual
    number = float(value) if isinstance(value, int | float) else float("nan")
    if not isfinite(number) or number != int(number) or number < least or isinstance(value, bool):
        raise InputError(field, expected=f"a whole number from {least} on", got=value)
    return int(number)
