"""Tables: one unit per column where that is readable, right-aligned numbers, CSV with data only."""

from __future__ import annotations

import csv
import io
import math
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from figgen.charts import Axis, Column, Curves, Scalar, Series, Table
from figgen.renderers import table
from tests.renderers.samples import SAMPLES, TABLE

N = "\N{NO-BREAK SPACE}"


def column(unit: str, spec: str, *values: Scalar) -> tuple[str, list[str], bool]:
    """Return heading, cells and alignment of a table with one column."""
    made = table.shown(
        Table(columns=(Column(label="x", unit=unit, spec=spec),), rows=tuple((v,) for v in values))
    )
    return made.headings[0], [row[0] for row in made.rows], made.right[0]


@pytest.mark.parametrize(
    ("unit", "spec", "values", "heading", "cells"),
    [
        # integers plain, floats with three or four digits
        ("", "", (16384, 3, 0.12345, 1234.5), "x", ["16,384", "3", "0.123", "1,234"]),
        ("", ".1%", (0.5, 1 / 3), "x", ["50.0%", "33.3%"]),
        # one unit for the column, in the heading
        ("B", "bytes", (268e6, 12.7e9), "x (GB)", ["0.268", "12.7"]),
        ("B", "bytes", (500e3, 470e9), "x", [f"500{N}kB", f"470{N}GB"]),
        ("B", "gib", (2**30, 3 * 2**29), "x (GiB)", ["1", "1.5"]),
        ("s", "time", (21.5e-3, 0.526), "x (ms)", ["21.5", "526"]),
        ("s", "time", (38.3e-3, 16.1, 38.2), "x (s)", ["0.0383", "16.1", "38.2"]),
        ("s", "time", (38.3e-3, 16.1, 59.0), "x", [f"38.3{N}ms", f"16.1{N}s", f"59{N}s"]),
        ("B/s", "si", (25e9, 900e9), "x (GB/s)", ["25", "900"]),
        ("FLOP/s", "flops.4", (989.4e12, 1979e12), "x (TFLOP/s)", ["989.4", "1,979"]),
        ("B", "", (0, 1e9, 1.5e9), "x (GB)", ["0", "1", "1.5"]),
        ("B", "", (0,), "x (B)", ["0"]),
        ("FLOP/B", ",.0f", (295.2,), "x (FLOP/B)", ["295"]),
        ("GPU", "", (16, 8), "x (GPU)", ["16", "8"]),
        # too far apart for one unit
        ("B", "bytes", (1e3, 1e12), "x", [f"1{N}kB", f"1{N}TB"]),
        # what is missing or does not apply
        ("s", "", (1e-3, "–"), "x (ms)", ["1", "–"]),
        ("s", "", (1e-3, math.nan, 2e-3), "x (ms)", ["1", "–", "2"]),
        ("", "", (1.5, math.nan), "x", ["1.5", "–"]),
        ("", "", (-2.5, math.inf), "x", ["−2.5", "∞"]),
    ],
)
def test_a_column_is_written_in_one_unit_if_it_can_be_read(
    unit: str, spec: str, values: tuple[Scalar, ...], heading: str, cells: list[str]
) -> None:
    assert column(unit, spec, *values) == (heading, cells, True)


@pytest.mark.parametrize("values", [("a", "b"), ("a", 1), ("–", ""), ()])
def test_a_column_with_words_stands_left(values: tuple[Scalar, ...]) -> None:
    assert column("", "", *values)[2] is False


class Cells(HTMLParser):
    """Reads a table back from HTML: tag, class and text of each cell."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.cells: list[tuple[str, str, str]] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("td", "th"):
            self.cells.append((tag, dict(attrs).get("class") or "", ""))

    def handle_data(self, data: str) -> None:
        tag, kind, text = self.cells[-1]
        self.cells[-1] = tag, kind, text + data


def test_html_is_the_table_with_numbers_to_the_right() -> None:
    made = table.shown(TABLE)
    cells = Cells(table.html(TABLE, "memory & more")).cells
    width = len(TABLE.columns)
    assert [text for _, _, text in cells[:width]] == list(made.headings)
    for at, kinds in enumerate(zip(*[iter(kind for _, kind, _ in cells)] * width, strict=True)):
        words = "short" if at else ""
        assert kinds == tuple("num" if right else words for right in made.right)
    assert [text for _, _, text in cells[width:]] == [cell for row in made.rows for cell in row]


def test_a_term_stays_on_one_line_and_a_sentence_may_be_broken() -> None:
    sentence = "a sentence that is broken where it has to be"
    rows = (("reduce-scatter",), (sentence,), (f"{sentence}, but not after each word",))
    made = table.html(Table(columns=(Column(label="x"),), rows=rows))
    assert [kind for _, kind, _ in Cells(made).cells] == ["", "short", "", "long"]


def test_html_has_a_name_and_headings_of_columns() -> None:
    made = table.html(TABLE, 'memory "&" more')
    assert made.startswith('<table class="fig-table" aria-label="memory &quot;&amp;&quot; more">')
    assert made.count('<th scope="col"') == len(TABLE.columns)


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("kind", SAMPLES)
def test_csv_comes_back_with_every_digit(kind: str) -> None:
    data = table.data_table(SAMPLES[kind])
    heading, *rows = read(table.csv(data))
    assert len(heading) == len(data.columns)
    assert len(rows) == len(data.rows)
    for cells, values in zip(rows, data.rows, strict=True):
        for cell, value in zip(cells, values, strict=True):
            if isinstance(value, str):
                assert cell == value
            elif math.isnan(value):
                assert cell == ""
            else:
                assert float(cell) == value


@given(st.floats(allow_nan=False), st.integers(-(10**18), 10**18))
def test_csv_keeps_numbers_exactly(real: float, whole: int) -> None:
    data = Table(columns=(Column(label="a"), Column(label="b", unit="s")), rows=((real, whole),))
    heading, row = read(table.csv(data))
    assert heading == ["a", "b (s)"]
    assert float(row[0]) == real
    assert int(row[1]) == whole


FORMULA = re.compile(r"[=+\-@\t\r]")


@given(st.text(max_size=8), st.sampled_from(["", "=", "+", "-", "@", "\t", "\r"]))
def test_no_text_in_a_csv_begins_like_a_formula_and_none_is_lost(text: str, start: str) -> None:
    said = (start + text).replace("\x00", "")
    (heading,), (cell,) = read(table.csv(Table(columns=(Column(label=said),), rows=((said,),))))
    for written in (heading, cell):
        assert not FORMULA.match(written)
        assert written.removeprefix("'") == said.removeprefix("'")


def test_a_negative_number_in_a_csv_stays_a_number() -> None:
    data = Table(columns=(Column(label="x"),), rows=((-1.5,),))
    assert read(table.csv(data))[1] == ["-1.5"]


def test_a_year_has_no_comma_between_its_thousands() -> None:
    chart = Curves(
        x=Axis(label="year", spec=".5g"),
        y=Axis(label="parameters", unit="param"),
        series=(Series(name="dense", x=(2019.125,), y=(1e9,), role="series-1"),),
    )
    assert table.shown(table.data_table(chart)).rows == (("dense", "2019.1", "1B"),)


def test_neighbours_that_measure_the_same_are_written_alike() -> None:
    """A row is read across, so 51.5 µs goes with 2 ms, and "0.0515" under "(ms)" does not."""
    given_table = Table(
        columns=(
            Column(label="near", unit="s", spec="time"),
            Column(label="far", unit="s", spec="time"),
            Column(label="size", unit="B", spec="bytes"),
        ),
        rows=((51.5e-6, 2e-6, 1e9), (3e-3, 5e-3, 2e9)),
    )
    text = table.shown(given_table)
    assert text.headings == ("near", "far", "size (GB)")
    assert text.rows[0] == (f"51.5{N}µs", f"2{N}µs", "1")
