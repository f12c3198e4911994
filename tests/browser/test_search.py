"""The search of the site finds identifiers, words, symbols and names of formulas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.paths import FORMULAS, PIPELINE, RANKS, RINGS

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

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


def find(page: Page, query: str) -> None:
    """Type as a keyboard does; what this one lacks, such as α, would come without a key event."""
    from playwright.sync_api import expect

    page.locator(".md-search__input").fill("")
    page.keyboard.press("Shift")
    expect(page.locator(".md-search-result__item")).to_have_count(0)
    page.keyboard.type(query)
    page.keyboard.press("Shift")


@pytest.fixture(scope="module")
def searched(profile: BrowserContext, site: str) -> Iterator[Page]:
    """One page for all queries: each would load the index again."""
    with profile.new_page() as page:
        page.goto(f"{site}/")
        page.locator(".md-search__input").click()
        yield page


@pytest.mark.parametrize(("query", "wanted"), QUERIES)
def test_query_finds_the_page(searched: Page, query: str, wanted: str) -> None:
    find(searched, query)
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
    find(searched, "qwxzvk")
    searched.get_by_text("No matching documents").wait_for()
    assert searched.locator(".md-search-result__item").count() == 0


def test_insides_of_figures_are_not_searched(site_folder: Path) -> None:
    """Cells of data tables would drown the pages that explain them."""
    page = (site_folder / RANKS.strip("/") / "index.html").read_text(encoding="utf-8")
    index = json.loads((site_folder / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert "GPU of the node" in page
    assert not any("GPU of the node" in entry["text"] for entry in index["docs"])
