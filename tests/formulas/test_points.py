"""Formulas compared with the frozen points, and the coverage of the catalog."""

from html import escape
from importlib import import_module

import pytest

from figgen.errors import InputError
from figgen.formulas import FORMULAS, evaluate
from figgen.formulas.coverage import Covered, coverage
from figgen.generated.formula_coverage import coverage_page
from figgen.generated.formulas import Known, formula_link, formula_pages
from tests.formulas.points import CATALOGUE_IDS, POINTS, Point


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_value_at_point_is_the_catalogues(point: Point) -> None:
    # The catalog gives nine digits.
    assert evaluate(point.formula, **point.arguments).value == pytest.approx(point.value, rel=1e-8)


def test_every_formula_has_a_point() -> None:
    assert {point.formula for point in POINTS} == set(FORMULAS)


def test_coverage_names_all_132_entries_of_the_catalogue() -> None:
    assert len(CATALOGUE_IDS) == 132
    assert tuple(entry.id for entry in coverage()) == CATALOGUE_IDS


@pytest.mark.parametrize("entry", coverage(), ids=lambda entry: entry.id)
def test_coverage_points_at_something_that_exists(entry: Covered) -> None:
    if entry.kind == "formula":
        # A name that the table claims must also be what the points of this entry are made with.
        tested = {point.formula for point in POINTS if point.catalogue_id == entry.id}
        assert entry.name in tested
    else:
        module, _, name = entry.name.rpartition(".")
        assert callable(getattr(import_module(module), name))
        assert entry.note


def test_coverage_page_has_a_row_for_every_entry_and_links_to_its_formula() -> None:
    page, formulas = coverage_page(), formula_pages(Known(points={}, uses={}, titles={}))
    for entry in coverage():
        row = next(
            line for line in page.splitlines() if line.startswith(f"| {escape(entry.title)} |")
        )
        if entry.kind == "formula":
            assert f"({formula_link(entry.name)})" in row
            page_of_it = f"reference/{formula_link(entry.name).partition('#')[0]}"
            assert f"{{ #{entry.name} }}" in formulas[page_of_it]
            assert f"{{ #{entry.name} }}" in formulas["reference/formulas.md"]
        else:
            assert f"`{entry.name}`" in row
    titles = [entry.title for entry in coverage()]
    assert len(set(titles)) == len(titles) == 132


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"title": "t", "kind": "formula", "name": "bubble"}, "a formula, got 'bubble'"),
        ({"title": "t", "kind": "guess", "name": "bubble"}, "title, kind, name"),
        ({"title": "t", "kind": "formula"}, "title, kind, name"),
    ],
)
def test_an_entry_that_leads_nowhere_is_refused(
    monkeypatch: pytest.MonkeyPatch, entry: dict[str, str], message: str
) -> None:
    monkeypatch.setattr("tomllib.loads", lambda _: {"x": entry})
    with pytest.raises(InputError, match=rf"\[x\]: expected {message}"):
        coverage.__wrapped__()


@pytest.mark.parametrize(
    "point",
    {p.formula: p for p in POINTS if "microbatch_size" in p.arguments}.values(),
    ids=lambda point: point.formula,
)
def test_six_sequences_take_six_times_what_one_takes(point: Point) -> None:
    one, six = (
        evaluate(point.formula, **point.arguments | {"microbatch_size": size}).value
        for size in (1, 6)
    )
    assert six == pytest.approx(6 * one, rel=1e-12)
