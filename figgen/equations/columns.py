"""Evaluate a model for many layouts: with NumPy arrays in Python, with loops on a page.

A model of one layout uses the functions of `figgen.equations.ops`, so that the fields of its
records may be numbers or arrays. `over` evaluates such a model for every combination of records:
here all at once, on a page (`engine/columns.js`) one after another. It returns columns of floats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

import numpy as np

from figgen.equations.ops import Number

Column: TypeAlias = Sequence[float]
Places: TypeAlias = Sequence[int]
Record = TypeVar("Record")


def over(
    first: Sequence[Any], second: Sequence[Any], third: Sequence[Any], model: Callable[..., Any]
) -> tuple[Column, ...]:
    """Evaluate a model of three records for all combinations; return a column per result.

    Combinations are ordered by the first, then the second, then the third record. The model must
    not change the tables that it takes records from.
    """
    axes = [_stacked(records, axis) for axis, records in enumerate((first, second))]
    many = _columns(third)
    rows = max(1, BLOCK // max(1, len(first) * len(second)))
    blocks: list[list[np.ndarray]] = []
    try:
        for begin in range(0, len(third), rows):
            part = {name: column[begin : begin + rows] for name, column in many.items()}
            shape = (len(first), len(second), len(third[begin : begin + rows]))
            found = model(*axes, _along(type(third[0]), part, 2))
            blocks.append([np.broadcast_to(one, shape) for one in found])
    finally:
        _tables.clear()
    columns: Any = (np.concatenate(one, axis=2).reshape(-1) for one in zip(*blocks, strict=True))
    return tuple(columns)


BLOCK = 2**16
"""The combinations that are evaluated at once: few enough that their arrays stay in the cache."""
_tables: dict[tuple[str, int], tuple[object, Any]] = {}
"""The tables that a model takes records from during one `over`, by identity, with their columns.

An entry holds its table, so that no other object can have its identity.
"""


def _along(kind: type[Record], columns: Mapping[str, np.ndarray], axis: int) -> Record:
    """Return columns as one record whose fields are arrays along an axis of three."""
    shape = [-1 if at == axis else 1 for at in range(3)]
    return kind(**{name: column.reshape(shape) for name, column in columns.items()})


def _stacked(records: Sequence[Any], axis: int) -> Any:
    """Return many records as one whose fields are arrays along an axis of three."""
    return _along(type(records[0]), _columns(records), axis)


def _columns(records: Sequence[Any]) -> dict[str, np.ndarray]:
    names = [field.name for field in fields(records[0])]
    rows = np.array(list(map(attrgetter(*names), records)), dtype=float).reshape(-1, len(names))
    return dict(zip(names, np.ascontiguousarray(rows.T), strict=True))


def _kept(kind: str, table: object, make: Callable[[], Any]) -> Any:
    """Return what `make` gives for a table, once while the blocks of one `over` are evaluated."""
    key = kind, id(table)
    if key not in _tables:
        _tables[key] = table, make()
    return _tables[key][1]


def at(table: Sequence[float], place: Number) -> Number:
    """Return the number of a table at an index, or numbers at an array of indices."""
    return np.array(table)[place.astype(int)] if isinstance(place, np.ndarray) else table[place]


def crossed(table: Sequence[Sequence[Record]], row: Number, place: Number) -> Record:
    """Return the record at a row and index, or at arrays of these, as one record of arrays."""
    if not isinstance(row, np.ndarray) and not isinstance(place, np.ndarray):
        return table[row][place]
    columns = _kept("crossed", table, lambda: _columns_of(table))
    return _taken(table, columns, row, place)


def _columns_of(table: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Return the columns of a table; a field that is equal in all records stays a number."""
    columns = _columns([one for line in table for one in line])
    return {name: one[0] if (one == one[0]).all() else one for name, one in columns.items()}


def _taken(
    table: Sequence[Sequence[Record]], columns: Mapping[str, Any], row: Number, place: Number
) -> Record:
    places = (row * len(table[0]) + place).astype(int)
    taken: Any = {
        name: column[places] if isinstance(column, np.ndarray) else column
        for name, column in columns.items()
    }
    return type(table[0][0])(**taken)


def listed(
    table: Sequence[Sequence[Sequence[Record]]], row: Number, place: Number
) -> Sequence[Record]:
    """Return the list at a row and index, or at arrays of these, as one list of records of arrays.

    Shorter lists repeat their last record; lists that are not selected may be empty.
    """
    if not isinstance(row, np.ndarray) and not isinstance(place, np.ndarray):
        return table[row][place]
    parts = _kept("listed", table, lambda: [(one, _columns_of(one)) for one in _parts(table)])
    return tuple(_taken(one, columns, row, place) for one, columns in parts)


def _parts(table: Sequence[Sequence[Sequence[Record]]]) -> list[list[list[Record]]]:
    """Return a table of lists as tables of records: their first ones, their second ones, …"""
    usual = next(one for line in table for one in line if one)
    full = [[one or usual for one in line] for line in table]
    most = max(len(one) for line in full for one in line)
    return [[[one[min(at, len(one) - 1)] for one in line] for line in full] for at in range(most)]


def _any(value: Any) -> Any:
    """Return an array typed as a sequence, which pages have too."""
    return value


def chosen(column: Column, places: Sequence[float]) -> Column:
    """Return the numbers of a column at some indices."""
    found: Column = _any(np.asarray(column)[np.asarray(places, dtype=int)])
    return found


def equal_to(column: Column, value: float) -> Places:
    """Return the indices of a column's numbers that are equal to `value`."""
    found: Places = _any(np.flatnonzero(np.asarray(column) == value))
    return found


def between(column: Column, low: float, high: float) -> Places:
    """Return the indices of a column's numbers that are above `low` and at most `high`."""
    numbers = np.asarray(column)
    found: Places = _any(np.flatnonzero((numbers > low) & (numbers <= high)))
    return found


def most(column: Column) -> float:
    """Return the largest number of a nonempty column."""
    return float(np.max(column))


def least(column: Column) -> float:
    """Return the smallest number of a nonempty column."""
    return float(np.min(column))


def joined(columns: Sequence[Sequence[float]]) -> Column:
    """Concatenate columns."""
    found: Column = _any(
        np.concatenate([np.asarray(one, dtype=float) for one in columns] or [np.zeros(0)])
    )
    return found


def filled(count: int, value: float) -> Column:
    """Return a column of `count` equal numbers."""
    found: Column = _any(np.full(count, value, dtype=float))
    return found


def order_of(column: Column, ties: Column) -> Places:
    """Return the indices that sort a column in ascending order, with ties broken by `ties`."""
    found: Places = _any(np.lexsort((np.asarray(ties), np.asarray(column))))
    return found


def firsts(column: Column) -> tuple[Places, Places]:
    """Return the index of each number's first occurrence, ascending, and the number's count."""
    _, places, counts = np.unique(np.asarray(column), return_index=True, return_counts=True)
    order = np.argsort(places)
    return places[order].tolist(), counts[order].tolist()
