"""Tables as HTML for pages and as CSV for download, and the formatting of columns."""

from __future__ import annotations

import csv as csv_module
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from html import escape
from itertools import groupby
from typing import TypeAlias

from figgen.charts import Column, Scalar, Table
from figgen.quantity_shown import NAMED, format_number, needs_no_prefix
from figgen.quantity_units import ADDED, BINARY, MEASURED, POWERS
from figgen.renderers.data import data_table as data_table
from figgen.units import asked_unit, format_quantity

NUMERIC = ' class="num"'
# A term such as "reduce-scatter" stays on one line, the table scrolls; a sentence is broken.
SHORT, SHORT_TEXT = ' class="short"', 24
# A table that scrolls would squeeze a sentence into a column of single words.
LONG, LONG_TEXT = ' class="long"', 60
MISSING = "–"
# Shown instead of a number that does not exist or does not apply.
BLANKS = frozenset(("", "-", "–", "—", "…", "n/a"))
# A spreadsheet interprets text that begins with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
# Within these, numbers in one unit can be read next to each other.
LARGEST_SHOWN, SMALLEST_SHOWN = 10_000, 0.01
WIDEST = 1000
"""Ratio of a column's largest to smallest number above which each number has its own unit."""


Unit: TypeAlias = tuple[str, Fraction | None]
"""The unit in a heading, and its size in SI; no size if each cell has its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A table as text; `right[i]` means that column `i` contains numbers."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...]


def shown(table: Table) -> Shown:
    """Return headings with units and cells as displayed.

    The numbers of a column share one unit, shown in the heading, if all of them are readable in it.
    Otherwise each number has its own unit, and so have those of neighboring columns with the same
    unit.
    """
    values = [[row[at] for row in table.rows] for at in range(len(table.columns))]
    units = _alike(table.columns, list(map(_shared, table.columns, values)))
    columns = list(map(_written, table.columns, values, units))
    return Shown(
        headings=tuple(heading for heading, _, _ in columns),
        rows=tuple(zip(*(cells for _, cells, _ in columns), strict=True)),
        right=tuple(right for _, _, right in columns),
    )


def _alike(columns: Sequence[Column], units: Sequence[Unit]) -> Iterator[Unit]:
    """Yield the units of columns; of adjacent columns of a kind, all or none have one unit."""
    for (unit, spec), group in groupby(
        zip(columns, units, strict=True), lambda pair: (pair[0].unit, pair[0].spec)
    ):
        found = [shared for _, shared in group]
        apart = unit and spec.partition(".")[0] in NAMED and ("", None) in found
        yield from [("", None)] * len(found) if apart else found


def _written(column: Column, values: Sequence[Scalar], unit: Unit) -> tuple[str, list[str], bool]:
    """Return one column: its heading, its cells, and whether they are numbers."""
    numbers = [value for value in values if not isinstance(value, str)]
    texts = [value for value in values if isinstance(value, str)]
    right = bool(numbers) and BLANKS.issuperset(texts)
    digits = column.spec.partition(".")[2].partition(" ")[0]
    own, factor = unit
    heading = f"{column.label} ({own})" if own else column.label

    @lru_cache(maxsize=None, typed=True)  # a grid of thousands asks often
    def cell(value: Scalar) -> str:
        if isinstance(value, str):
            return value
        if math.isnan(value):
            return MISSING
        if factor and math.isfinite(value):
            return format_number(float(Fraction(value) / factor), int(digits or 3))
        return format_quantity(value, column.unit or "1", column.spec)

    return heading, [cell(value) for value in values], right


def _shared(column: Column, values: Sequence[Scalar]) -> Unit:
    """Return the unit of a heading and its size; no size if each number has its own unit."""
    numbers = [value for value in values if not isinstance(value, str)]
    name, unit = column.spec.partition(".")[0], column.unit or "1"
    above, slash, below = unit.partition("/")
    if unit == "1":
        return "", None
    if asked := asked_unit(column.spec, unit):
        return asked[:2]
    if name not in NAMED:
        return unit, None
    if above not in MEASURED or unit == "FLOP/B" or name == "unit":
        plain = name in ("", "unit") or above in ADDED
        return (unit, Fraction(1)) if plain else ("", None)
    sizes = sorted({abs(number) for number in numbers if number and math.isfinite(number)})
    prefix = _prefix(_prefixes(above, name), sizes) if sizes else ("", Fraction(1))
    if sizes and needs_no_prefix(unit, sizes[-1]) and sizes[-1] <= WIDEST * sizes[0]:
        return unit, Fraction(1)
    return (f"{prefix[0]}{above}{slash}{below}", prefix[1]) if prefix else ("", None)


def _prefixes(above: str, name: str) -> dict[str, Fraction]:
    """Return the usual prefixes of a base unit, without milli-byte or kilo-second."""
    if name == "gib" and above in ("B", "FLOP"):
        found = {prefix: Fraction(size) for prefix, size in BINARY.items()}
    else:
        sign = {"B": 1, "FLOP": 1, "s": -1}.get(above, 0)
        found = {prefix: Fraction(10) ** p for prefix, p in POWERS.items() if p * sign >= 0}
    return dict(sorted({"": Fraction(1), **found}.items(), key=lambda pair: pair[1]))


def _prefix(prefixes: Mapping[str, Fraction], sizes: list[float]) -> tuple[str, Fraction] | None:
    """Return the prefix with which the smallest number is at least 1, or a larger prefix.

    Returns None if no prefix makes the numbers readable, or if they are too far apart.
    """
    small, large = Fraction(sizes[0]), Fraction(sizes[-1])
    if large / small > WIDEST:
        return None
    fitting = [pair for pair in prefixes.items() if pair[1] <= small]
    start = fitting[-1][1] if fitting else Fraction(0)
    for prefix, size in prefixes.items():
        readable = large / size < LARGEST_SHOWN and small / size >= SMALLEST_SHOWN
        if size >= start and readable:
            return prefix, size
    return None


def html(table: Table, label: str = "") -> str:
    """Return a semantic table named `label`; numbers are right-aligned, in tabular figures."""
    text = shown(table)
    head = "".join(
        f'<th scope="col"{NUMERIC * right}>{escape(heading)}</th>'
        for heading, right in zip(text.headings, text.right, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{NUMERIC if right else _length(cell)}>{escape(cell)}</td>"
            for cell, right in zip(row, text.right, strict=True)
        )
        + "</tr>"
        for row in text.rows
    )
    named = f' aria-label="{escape(label, quote=True)}"' if label else ""
    return (
        f'<table class="fig-table"{named}><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def _length(cell: str) -> str:
    # Lists may wrap at their commas.
    kept = len(cell) <= SHORT_TEXT and ", " not in cell
    return SHORT * kept + LONG * (len(cell) >= LONG_TEXT)


def csv(table: Table) -> str:
    """Return RFC 4180: numbers in SI with all digits, units in the first line, no formulas.

    A text that a spreadsheet would run as a formula is preceded by an apostrophe; a missing number
    is an empty cell.
    """
    out = io.StringIO()
    writer = csv_module.writer(out)
    writer.writerow(_harmless(_si_heading(column)) for column in table.columns)
    columns = zip(*table.rows, strict=True)
    writer.writerows(zip(*map(_raw_column, columns), strict=True))
    return out.getvalue()


def _si_heading(column: Column) -> str:
    return f"{column.label} ({column.unit})" if column.unit not in ("", "1") else column.label


def _raw_column(values: tuple[Scalar, ...]) -> Sequence[Scalar]:
    """Return a column's values for CSV; whole numbers, the most common kind, are unchanged."""
    return values if set(map(type, values)) == {int} else [_raw(value) for value in values]


def _raw(value: Scalar) -> Scalar:
    if isinstance(value, str):
        return _harmless(value)
    return "" if math.isnan(value) else value


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
