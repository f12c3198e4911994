"""Check what a figure's function returns, so that a slip in it is told in its own words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from figgen import theme
from figgen.charts import Axis, Bars, Chart, Column, Curves, Diagram, Named, Table, Timeline
from figgen.errors import InputError
from figgen.units import format_quantity

KINDS: tuple[type, ...] = get_args(Chart)
USUAL: tuple[type, ...] = (Curves, Bars, Table, Timeline, Diagram)
"""The charts that `figgen.author` offers."""


def checked(found: object) -> Chart:
    """Return a figure's result. Raises InputError if it isn't a chart that can be drawn."""
    if not isinstance(found, KINDS):
        kinds = ", ".join(kind.__name__ for kind in USUAL)
        if found is None:
            raise InputError("its function returns nothing", expected=f"return {kinds} or the like")
        got = type(found).__name__
        raise InputError("its function", expected=f"to return {kinds} or the like", got=got)
    chart: Any = found
    for name, value in chart.values.items():
        if not isinstance(value, Named):
            raise InputError(f"its value {name!r}", expected="Named(number, unit)", got=value)
    match chart:
        case Curves():
            _check_axes(chart.x, chart.y)
            for line in chart.series:
                if not (len(line.x) or len(line.y)):
                    raise InputError(f"its series {line.name!r} has no points")
                _check_lengths(f"its series {line.name!r}", len(line.y), len(line.x), "x")
            _check_roles([*chart.series, *chart.marks, *chart.rules])
        case Bars():
            _check_axes(chart.axis)
            for part in chart.segments:
                where = f"its segment {part.name!r}"
                _check_lengths(where, len(part.lengths), len(chart.labels), "labels")
            _check_roles([*chart.segments, *chart.rules])
        case Table():
            for column in chart.columns:
                _check_column(column)
            for number, row in enumerate(chart.rows, 1):
                if len(row) != len(chart.columns):
                    columns = f"as many cells as columns, {len(chart.columns)}"
                    raise InputError(f"its row {number}", expected=columns, got=len(row))
        case Timeline():
            _check_roles(chart.slots)
    checked_chart: Chart = chart
    return checked_chart


def _check_axes(*axes: Axis) -> None:
    for axis in axes:
        try:
            format_quantity(1, axis.unit, axis.spec)
        except InputError as error:
            raise InputError(f"its axis {axis.label!r}: {error}") from None


def _check_column(column: Column) -> None:
    try:
        format_quantity(1, column.unit or "1", column.spec)
    except InputError as error:
        raise InputError(f"its column {column.label!r}: {error}") from None


def _check_lengths(where: str, got: int, wanted: int, like: str) -> None:
    if got != wanted:
        raise InputError(where, expected=f"{wanted} numbers, as many as {like}", got=got)


def _check_roles(parts: Iterable[Any]) -> None:
    for role in dict.fromkeys(part.role for part in parts):
        theme.colour(role)
