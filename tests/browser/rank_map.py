"""Opens the page of the rank map for tests and waits until it settles."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.browser.waits import drawn

MAP = "/tools/rank-map/"
# Runs in the page: whatever would be downloaded is kept as text instead.
KEEP_FILES = """() => {
  window.kept = [];
  URL.createObjectURL = (blob) => { window.kept.push(blob); return "data:,"; };
}"""
# A change is drawn in the next frame; the address follows when the reader pauses.
REWRITTEN = "() => document.querySelector('.map-share input').value === location.href"


def opened(page: Page, site: str, query: str = "") -> Page:
    page.set_viewport_size({"width": 1366, "height": 900})
    page.goto(f"{site}{MAP}{query}")
    page.locator(".map-table tbody tr").first.wait_for(state="attached")  # it is drawn last
    return page


def query_of(page: Page) -> str:
    """Return the query of the address after it has been rewritten."""
    drawn(page)
    page.wait_for_function(REWRITTEN)
    return str(page.evaluate("location.search"))
