"""The figures of the validation page: their text, and numbers counted another way."""

from __future__ import annotations

import re
from collections.abc import Callable
from statistics import median

import pytest

from figgen.charts import Curves, Table
from figgen.errors import InputError
from figgen.generated.validation import modeler_query, validation_pages
from figgen.registry import build
from figgen.renderers.text import render
from figgen.scenarios.peaks import judged_peaks
from figgen.scenarios.runs.measured import measured_runs, run_sides, shown_runs
from figgen.scenarios.runs.predicted import predicted_step
from figgen.scenarios.validation import errors_of, judged_runs, release_spreads

TABLES = {
    "validation-errors": {}, "validation-ranking": {}, "validation-releases": {},
    "validation-misses": {}, "validation-sensitivity": {}, "validation-constants": {},
    "validation-rivals": {}, "validation-refusals": {},
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_table_as_text(name: str, golden: Callable[[str, str], None]) -> None:
    golden(name, render(build(name, TABLES[name])))


def test_every_run_with_a_time_is_judged_once_and_as_alone() -> None:
    runs = [run for run in (*measured_runs(), *shown_runs()) if run.step_time_s and not run.suspect]
    judged = judged_runs()
    assert [one.run.name for one in judged] == [run.name for run in runs]
    for one in judged[::97]:
        assert one.predicted_s == pytest.approx(predicted_step(one.run).step_time_s)
        assert one.tested == (run_sides()[one.run.name] == "test")


def test_points_are_the_tests_and_the_diagonal_is_where_both_are_alike() -> None:
    chart = build("validation-scatter", {})
    assert isinstance(chart, Curves)
    points = [series for series in chart.series if series.style == "points"]
    assert sum(len(series.x) for series in points) == sum(one.tested for one in judged_runs())
    diagonal = next(series for series in chart.series if series.name == "as measured")
    assert diagonal.x == diagonal.y


def test_rows_of_errors_hold_all_runs_however_they_are_grouped() -> None:
    for by in ("class", "format", "generation", "framework", "experts"):
        chart = build("validation-errors", {"by": by})
        assert isinstance(chart, Table)
        assert sum(int(row[1]) + int(row[3]) for row in chart.rows) == len(judged_runs())
    assert errors_of("nothing", []) is None


def test_identical_layouts_differ_between_releases() -> None:
    spreads = release_spreads()
    assert len(spreads) > 20
    assert spreads[0].spread > 0.4
    assert all(entry.slowest_s >= entry.fastest_s for entry in spreads)


def test_pages_hold_a_row_for_every_run_that_opens_in_the_modeler() -> None:
    pages = validation_pages()
    rows = sum(len(re.findall(r"<tr id=", page)) for page in pages.values())
    assert rows == len(judged_runs())
    query = modeler_query(next(one.run for one in judged_runs() if one.run.name.startswith("mpt-")))
    assert "model=own" in query
    assert "layers=" in query


def test_points_of_memory_are_the_unseen_peaks_and_their_errors_are_those_counted_here() -> None:
    chart = build("memory-validation", {})
    assert isinstance(chart, Curves)
    unseen = [peak for peak in judged_peaks() if peak.tested]
    points = [series for series in chart.series if series.style == "points"]
    assert sum(len(series.x) for series in points) == len(unseen)
    errors = sorted(abs(y / x - 1) for s in points for x, y in zip(s.x, s.y, strict=True))
    assert chart.values["median"].value == pytest.approx(median(errors))
    assert chart.values["failed"].value == 771


def test_errors_of_memory_as_text(golden: Callable[[str, str], None]) -> None:
    golden("memory-errors", render(build("memory-errors", {})))


@pytest.mark.parametrize("by", ["model", "zero", "pipeline", "tensor"])
def test_rows_of_memory_errors_hold_all_peaks(by: str) -> None:
    chart = build("memory-errors", {"by": by})
    assert isinstance(chart, Table)
    assert sum(int(row[1]) + int(row[2]) for row in chart.rows) == len(judged_peaks())


@pytest.mark.parametrize("name", ["memory-validation", "memory-errors"])
def test_an_unknown_group_of_peaks_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="by: expected framework or model"):
        build(name, {"by": "colour"})
