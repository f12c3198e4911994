"""Tables of the catalog: sorted and filtered by keyboard, complete without a script."""

from __future__ import annotations

from playwright.sync_api import Page

from figgen import catalog
from tests.browser.paths import ROOT

HARDWARE, RUNS = "/reference/hardware/", "/validation/runs/"
FIRST = 40
IDS = "(table) => [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.id)"


def test_a_column_is_sorted_by_the_keyboard_both_ways_with_missing_values_last(
    page: Page, site: str
) -> None:
    page.goto(f"{site}{HARDWARE}")
    table = page.locator("table.sortable").first
    heading = table.locator("thead th", has_text="dense FP8")
    heading.locator("button").focus()
    rates = {
        name: None if chip.fp8 is None else chip.fp8.value
        for name, chip in catalog.ACCELERATORS.items()
    }
    for key, spoken, reverse in (("Enter", "ascending", False), ("Space", "descending", True)):
        page.keyboard.press(key)
        assert heading.get_attribute("aria-sort") == spoken
        shown = [rates[name] for name in table.evaluate(IDS)]
        known = [rate for rate in shown if rate is not None]
        assert known == sorted(known, reverse=reverse)
        assert shown == known + [None] * (len(shown) - len(known))
    assert page.locator("[aria-sort]").count() == 1


def test_a_filter_takes_every_word_and_says_how_many_rows_are_left(page: Page, site: str) -> None:
    page.goto(f"{site}{HARDWARE}")
    field = page.get_by_label("Filter accelerators")
    field.fill("nvidia 80GB")
    table = page.locator("table.sortable").first
    wanted = [n for n, a in catalog.ACCELERATORS.items() if n.endswith("80gb")]
    assert table.evaluate(IDS) == wanted
    assert page.locator(".data-filter output").first.inner_text().startswith(f"{len(wanted)} of ")
    field.fill("")
    assert len(table.evaluate(IDS)) == len(catalog.ACCELERATORS)


def test_an_address_with_a_row_shows_that_row(page: Page, site: str) -> None:
    page.goto(f"{site}{HARDWARE}#h100-sxm-80gb")
    assert page.locator("tr:target th").inner_text().startswith("NVIDIA H100")


def test_a_long_table_opens_with_its_first_rows_and_a_reader_reaches_every_other(
    page: Page, unscripted: Page, site: str
) -> None:
    """Laying out all rows at once took a phone more than a second."""
    unscripted.goto(f"{site}{RUNS}")
    every = unscripted.locator("table.sortable tbody tr:visible").count()
    last = unscripted.locator("table.sortable tbody tr").last.get_attribute("id")
    assert last
    page.goto(f"{site}{RUNS}#{last}")
    assert page.locator("tr:target").is_visible()
    page.goto(f"{site}{RUNS}")
    table = page.locator("table.sortable")
    shown = table.locator("tbody tr:visible")
    field = page.get_by_label("Filter every run")
    field.wait_for()
    assert (shown.count(), every > FIRST) == (FIRST, True)
    table.locator("thead button", has_text="error").click()
    assert shown.count() == FIRST
    field.fill(last.rpartition("-")[0].replace("-", " "))
    assert table.locator(f"[id='{last}']").is_visible()
    field.fill("")
    assert shown.count() == FIRST
    page.get_by_role("button", name=f"Show all {every} rows").click()
    assert shown.count() == every
    page.emulate_media(media="print")
    assert table.locator("tbody tr:visible").count() == every


def test_the_script_is_small() -> None:
    script = ROOT / "figgen" / "assets" / "javascripts" / "tables.js"
    assert len(script.read_bytes()) <= 3000
