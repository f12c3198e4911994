"""Tables of the catalog as HTML: rows can be linked, and every value has its unit and its source.

They are complete without a script; one adds sorting and a filter.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape

from figgen.catalog import Value, load
from figgen.markdown.tables import CLOSING, OPENING

UNVERIFIED = "memory"
"""The confidence of a value that was not checked against its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A table cell: its text, its sort key, and its source if it differs from the row's."""

    text: str
    key: float | None = None
    link: str = ""
    source: str = ""
    unverified: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One entry; its name is its anchor."""

    name: str
    cells: tuple[Cell, ...]
    source: str


@dataclass
class Sources:
    """The works that a page's tables cite, numbered in the order of their first mention."""

    numbers: dict[str, int] = field(default_factory=dict)

    def cited(self, source: str) -> str:
        """Return `[3], Table 2; [7]`, with links to the list, for `Title, Table 2; Other title`."""
        return "; ".join(map(self._one, source.split("; ")))

    def _one(self, part: str) -> str:
        title, place = split_source(part)
        number = self.numbers.setdefault(title, len(self.numbers) + 1)
        link = f'<a href="#source-{number}">[{number}]</a>'
        return f"{link}, {escape(place)}" if place else link

    def html(self) -> str:
        """Return the list of sources."""
        items = "".join(
            f'<li id="source-{number}">{_linked(title)}</li>'
            for title, number in self.numbers.items()
        )
        return f'<ol class="data-sources">{items}</ol>\n'


def split_source(part: str) -> tuple[str, str]:
    """Split a source of the catalog into its title and the location within it."""
    for title in _titles():
        if part.startswith(title) and part[len(title) :][:1] in ("", ","):
            return title, part[len(title) :].lstrip(", ")
    return part, ""


@cache
def _titles() -> tuple[str, ...]:
    """Return all titles, longest first, since some titles are prefixes of others."""
    return tuple(sorted(load.sources().values(), key=len, reverse=True))


@cache
def _addresses() -> dict[str, str]:
    entries = tomllib.loads(load.content("sources.toml")).values()
    return {entry["title"]: entry["url"] for entry in entries if "url" in entry}


def _linked(title: str) -> str:
    address = _addresses().get(title)
    if address is None and (found := re.search(r"arXiv:(\d{4}\.\d{4,5})", title)):
        address = f"https://arxiv.org/abs/{found[1]}"
    shown = escape(title)
    return f'<a href="{escape(address, quote=True)}">{shown}</a>' if address else shown


def of_value(value: Value | None, row_source: str, text: str = "") -> Cell:
    """Return a value as printed by its source, with its range; a dash if there is none."""
    if value is None:
        return Cell(text="–")
    return Cell(
        text=text or value.printed,
        key=float(value.value),
        source="" if value.source == row_source else value.source,
        unverified=value.confidence == UNVERIFIED,
    )


def of_number(value: float | None, text: str = "") -> Cell:
    """Return a count; a dash if none was published."""
    return Cell(text="–") if value is None else Cell(text=text or f"{value:,}", key=float(value))


def table(label: str, headings: Sequence[str], rows: Sequence[Row], sources: Sources) -> str:
    """Return a table in a box that scrolls; the first cell of a row is its heading."""
    numeric = [any(row.cells[at].key is not None for row in rows) for at in range(len(headings))]
    head = "".join(
        f'<th scope="col"{NUM * right}>{escape(heading)}</th>'
        for heading, right in zip([*headings, "sources"], [*numeric, False], strict=True)
    )
    body = "".join(_row(row, numeric, sources) for row in rows)
    # Reserves space for the filter, so that the script does not move the table.
    return (
        '<p class="data-filter"></p>\n'
        f'{OPENING} tabindex="0" role="group" aria-label="{escape(label)}">'
        f'<table class="fig-table sortable" aria-label="{escape(label)}"><thead><tr>{head}</tr>'
        f"</thead><tbody>\n{body}{CLOSING}\n"
    )


NUM = ' class="num"'


def anchor(name: str) -> str:
    """Return the id of a row: a name without dots, which CSS would read as classes."""
    return name.replace(".", "-")


def _row(row: Row, numeric: Sequence[bool], sources: Sources) -> str:
    first, *others = row.cells
    cells = "".join(
        f"<td{_key(cell)}{NUM * right}>{_inner(cell, sources)}</td>"
        for cell, right in zip(others, numeric[1:], strict=True)
    )
    here = f'<a class="row-link" href="#{anchor(row.name)}" aria-label="Link to this row">#</a>'
    return (
        f'<tr id="{anchor(row.name)}"><th scope="row">{_inner(first, sources)} {here}</th>{cells}'
        f'<td class="cited">{sources.cited(row.source)}</td></tr>\n'
    )


def _key(cell: Cell) -> str:
    return "" if cell.key is None else f' data-value="{cell.key!r}"'


def _inner(cell: Cell, sources: Sources) -> str:
    shown = escape(cell.text)
    if cell.link:
        shown = f'<a href="{escape(cell.link, quote=True)}">{shown}</a>'
    if cell.unverified:
        shown += '<abbr title="not checked at the source">†</abbr>'
    return f"{shown} <small>{sources.cited(cell.source)}</small>" if cell.source else shown
