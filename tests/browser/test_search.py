"""The search of the site finds identifiers, words, symbols and names of formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.paths import FORMULAS, PIPELINE, RINGS

if TYPE_CHECKING:
    from playwright.sync_api import Page

QUERIES = [
    ("bubble_fraction", PIPELINE),
    ("bubble_fraction", f"{FORMULAS}pipeline/#bubble_fraction"),
    ("bubble fraction", PIPELINE),
    ("bubble fraction", f"{FORMULAS}pipeline/#bubble_fraction"),
    ("ring all-reduce", RINGS),
    ("α", RINGS),
    ("ring_all_reduce_time", f"{FORMULAS}collectives/#ring_all_reduce_time"),
    ("All reduce bytes sent", f"{FORMULAS}collectives/#all_reduce_bytes_sent"),
    ("microbatch", PIPELINE),
]


def type_in(page: Page, query: str) -> None:
    """Type as a keyboard does; what this one lacks, such as α, would come without a key event."""
    page.keyboard.type(query)
    page.keyboard.press("Shift")


@pytest.fixture
def searched(page: Page, site: str) -> Page:
    page.goto(f"{site}/")
    page.locator(".md-search__input").click()
    return page


@pytest.mark.parametrize(("query", "wanted"), QUERIES)
def test_query_finds_the_page(searched: Page, query: str, wanted: str) -> None:
    type_in(searched, query)
    page, _, section = wanted.partition("#")
    ending = f"[href$='#{section}']" if section else ""
    found = searched.locator(f".md-search-result__link[href*='{page}']{ending}")
    found.first.wait_for(state="attached")


def test_shared_search_is_answered_at_once(page: Page, site: str) -> None:
    """The index is loaded late, but not by a link that already asks for something."""
    page.goto(f"{site}/?q=bubble+fraction")
    found = page.locator(f".md-search-result__link[href*='{PIPELINE}']")
    found.first.wait_for(state="attached")


def test_nonsense_finds_nothing(searched: Page) -> None:
    type_in(searched, "qwxzvk")
    searched.get_by_text("No matching documents").wait_for()
    assert searched.locator(".md-search-result__item").count() == 0


def test_insides_of_figures_are_not_searched(searched: Page) -> None:
    """Cells of data tables would drown the pages that explain them."""
    type_in(searched, "stride 8, 2 nodes per group")
    searched.wait_for_timeout(500)
    assert searched.locator(".md-search-result__item", has_text="GPU of the node").count() == 0
