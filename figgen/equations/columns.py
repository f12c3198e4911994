"""What a search does with many layouts: NumPy arrays in Python, loops on a page.

A model of one layout is written with the names of `figgen.equations.ops`, so that a record of it
may have numbers or arrays in its fields. `over` asks such a model of every combination of records:
here all at once, on a page (`engine/columns.js`) one after another. It returns columns of floats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, TypeAlias, TypeVar

import numpy as np

from figgen.equations.ops import Number

Column: TypeAlias = Sequence[float]
Places: TypeAlias = Sequence[int]
Record = TypeVar("Record")


def over(
    first: Sequence[Any], second: Sequence[Any], third: Sequence[Any], model: Callable[..., Any]
) -> tuple[Column, ...]:
    """Return the numbers that a model of three records gives, a column for each of them.

    The combinations stand in the order of the first, then the second, then the third.
    """
    axes = [_stacked(records, axis) for axis, records in enumerate((first, second, third))]
    shape = (len(first), len(second), len(third))
    columns: Any = (np.broadcast_to(one, shape).reshape(-1) for one in model(*axes))
    return tuple(columns)


def _stacked(records: Sequence[Any], axis: int) -> Any:
    """Return many records as one whose fields are arrays along an axis of three."""
    shape = [-1 if at == axis else 1 for at in range(3)]
    columns = _columns(records).items()
    return type(records[0])(**{name: column.reshape(shape) for name, column in columns})


def _columns(records: Sequence[Any]) -> dict[str, np.ndarray]:
    names = [field.name for field in fields(records[0])]
    return {name: np.array([getattr(one, name) for one in records], dtype=float) for name in names}


def at(table: Sequence[float], place: Number) -> Number:
    """Return the number of a table at a place, or those at an array of places."""
    return np.array(table)[place.astype(int)] if isinstance(place, np.ndarray) else table[place]


def crossed(table: Sequence[Sequence[Record]], row: Number, place: Number) -> Record:
    """Return the record at a place of a row, or those at arrays of rows and places as one."""
    if not isinstance(row, np.ndarray):
        return table[row][place]
    columns = _columns([one for line in table for one in line])
    places = (row * len(table[0]) + place).astype(int)
    taken: Any = {
        # What is the same for all records stays a number.
        name: column[0] if (column == column[0]).all() else column[places]
        for name, column in columns.items()
    }
    return type(table[0][0])(**taken)


def listed(
    table: Sequence[Sequence[Sequence[Record]]], row: Number, place: Number
) -> Iterable[Record]:
    """Return the list at a place of a row, or lists at arrays of rows and places as one.

    Of several lists shorter ones repeat their last record, and those at no place may be empty.
    """
    if not isinstance(row, np.ndarray):
        return table[row][place]
    usual = next(one for line in table for one in line if one)
    full = [[one or usual for one in line] for line in table]
    return (
        crossed([[one[min(which, len(one) - 1)] for one in line] for line in full], row, place)
        for which in range(max(len(one) for line in full for one in line))
    )


def _any(value: Any) -> Any:
    """Return an array under a type that a page has too."""
    return value


def chosen(column: Column, places: Sequence[float]) -> Column:
    """Return the numbers of a column at some places."""
    found: Column = _any(np.asarray(column)[np.asarray(places, dtype=int)])
    return found


def equal_to(column: Column, value: float) -> Places:
    """Return the places of a column that have a value."""
    found: Places = _any(np.flatnonzero(np.asarray(column) == value))
    return found


def between(column: Column, low: float, high: float) -> Places:
    """Return the places of a column whose numbers are above `low` and at most `high`."""
    numbers = np.asarray(column)
    found: Places = _any(np.flatnonzero((numbers > low) & (numbers <= high)))
    return found


def most(column: Column) -> float:
    """Return the largest number of a column that is not empty."""
    return float(np.max(column))


def least(column: Column) -> float:
    """Return the smallest number of a column that is not empty."""
    return float(np.min(column))


def joined(columns: Sequence[Sequence[float]]) -> Column:
    """Return columns as one."""
    found: Column = _any(
        np.concatenate([np.asarray(one, dtype=float) for one in columns] or [np.zeros(0)])
    )
    return found


def filled(count: int, value: float) -> Column:
    """Return a column of one number."""
    found: Column = _any(np.full(count, value, dtype=float))
    return found


def order_of(column: Column, ties: Column) -> Places:
    """Return the places of a column from its smallest number on, equal ones by `ties`."""
    found: Places = _any(np.lexsort((np.asarray(ties), np.asarray(column))))
    return found


def firsts(column: Column) -> tuple[Places, Places]:
    """Return the place where each number of a column stands first, ascending, and its count."""
    _, places, counts = np.unique(np.asarray(column), return_index=True, return_counts=True)
    order = np.argsort(places)
    return places[order].tolist(), counts[order].tolist()
