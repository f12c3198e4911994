"""Every page of the navigation, as a reader's browser meets it."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.browser.paths import PATHS, PIPELINE, RANKS, RINGS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

PAGE_LIMIT_BYTES = 250_000
DESK: ViewportSize = {"width": 1366, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
# A4 between margins of 10 mm, at 96 px per inch
PAPER: ViewportSize = {"width": 718, "height": 1000}

# axe takes seconds for what repeats: further rows, further formulas, and the insides of pictures,
# which to a reader of the accessibility tree are one image (their colours: tests/test_theme.py).
SHORTEN = """() => {
  document.querySelectorAll("article svg.fig").forEach((picture) => picture.replaceChildren());
  document.querySelectorAll("article tbody tr:nth-child(n+6)").forEach((row) => row.remove());
  let node = document.querySelectorAll("article h3")[12];
  while (node) { const next = node.nextSibling; node.remove(); node = next; }
}"""
# Boxes that scroll sideways and that no key can scroll.
STUCK = """() => [...document.querySelectorAll("article *")]
  .filter((box) => ["auto", "scroll"].includes(getComputedStyle(box).overflowX))
  .filter((box) => box.clientWidth > 0 && box.scrollWidth > box.clientWidth + 1)
  .filter((box) => box.tabIndex < 0 && !box.closest("[popover]"))
  .map((box) => box.outerHTML.slice(0, 99))"""
SHIFTS = """() => new Promise((resolve) => {
  new PerformanceObserver((list) =>
    resolve(list.getEntries().reduce((sum, entry) => sum + entry.value, 0))
  ).observe({ type: "layout-shift", buffered: true });
  setTimeout(resolve, 200, 0);
})"""
SHIFT_LIMIT = 0.02  # a fifth of what Core Web Vitals call good
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

# Rules that look at colours; the other rules see the same elements in both palettes.
OF_COLOUR = ("color-contrast", "link-in-text-block")


def wire_bytes(site_folder: Path, addresses: list[str]) -> dict[str, int]:
    """The size of each answer as a static host sends it: compressed where that helps."""
    sizes = {}
    for address in addresses:
        name = urlsplit(address).path.lstrip("/")
        file = site_folder / (f"{name}index.html" if name.endswith("/") or not name else name)
        content = file.read_bytes()
        sizes[name or "/"] = min(len(content), len(gzip.compress(content, 9)))
    return sizes


@pytest.mark.parametrize("path", PATHS)
def test_page_loads_within_its_weight_and_with_nothing_from_elsewhere(
    page: Page, site: str, site_folder: Path, path: str
) -> None:
    """No error, third party or breach of the policy either; see the `page` fixture."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    answers: list[int] = []
    page.on("response", lambda response: answers.append(response.status))
    page.goto(f"{site}{path}", wait_until="networkidle")

    assert page.locator("h1").count() == 1
    assert {*answers} == {200}
    sizes = wire_bytes(site_folder, [url for url in asked if url.startswith("http")])
    assert not any(name.endswith("search_index.json") for name in sizes), "nobody searches yet"
    assert sum(sizes.values()) <= PAGE_LIMIT_BYTES, sizes


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_nothing_moves_while_the_page_loads(
    page: Page, site: str, path: str, size: ViewportSize
) -> None:
    page.set_viewport_size(size)
    page.goto(f"{site}{path}", wait_until="networkidle")
    assert page.evaluate(SHIFTS) <= SHIFT_LIMIT


@pytest.mark.parametrize("path", PATHS)
def test_page_is_accessible_in_light(
    page: Page, site: str, axe: Callable[..., list[str]], path: str
) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(f"{site}{path}")
    page.evaluate(SHORTEN)
    assert page.locator("body").get_attribute("data-md-color-scheme") == "default"
    assert axe(page) == []


@pytest.mark.parametrize("path", PATHS)
def test_page_has_contrast_in_dark(
    page: Page, site: str, axe: Callable[..., list[str]], path: str
) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(f"{site}{path}")
    page.evaluate(SHORTEN)
    assert page.locator("body").get_attribute("data-md-color-scheme") == "slate"
    assert axe(page, tags=OF_COLOUR) == []


@pytest.mark.parametrize("path", PATHS)
def test_page_fits_a_phone_and_is_accessible_there(
    page: Page, site: str, axe: Callable[..., list[str]], path: str
) -> None:
    page.set_viewport_size(PHONE)
    page.goto(f"{site}{path}")
    assert page.evaluate(SIDEWAYS) == 0
    page.wait_for_timeout(100)
    assert page.evaluate(STUCK) == []
    page.evaluate(SHORTEN)
    assert axe(page, also=("target-size",), without=OF_COLOUR) == []


def test_a_line_that_is_too_wide_would_be_seen(page: Page, site: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto(f"{site}/")
    page.evaluate("document.querySelector('h1').style.width = '500px'")
    assert page.evaluate(SIDEWAYS) > 0


@pytest.mark.parametrize("path", PATHS)
def test_paper_holds_the_whole_width_and_none_of_the_tools(
    page: Page, site: str, path: str
) -> None:
    page.set_viewport_size(PAPER)
    page.emulate_media(media="print")
    page.goto(f"{site}{path}")

    assert page.evaluate(SIDEWAYS) == 0
    for tool in (".fig-tools", ".fig-controls", ".fig-tabs", ".fig-how", ".md-header"):
        found = page.locator(tool)
        assert [found.nth(i).is_visible() for i in range(found.count())].count(True) == 0, tool


def test_missing_page_is_a_page_of_the_site(page: Page, site: str) -> None:
    page.goto(f"{site}/404.html")
    assert page.locator("h1").inner_text() == "404 - Not found"
    assert page.evaluate("getComputedStyle(document.querySelector('.md-header')).position")


@pytest.fixture
def unscripted(chromium: Browser) -> Iterator[Page]:
    """A page in a browser whose reader has switched JavaScript off."""
    context = chromium.new_context(java_script_enabled=False)
    context.set_default_timeout(10_000)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("path", PATHS)
def test_page_says_the_same_without_scripts(
    page: Page, unscripted: Page, site: str, path: str
) -> None:
    lengths = []
    for reader in (page, unscripted):
        reader.goto(f"{site}{path}")
        lengths.append(len(reader.locator("article").inner_text()))
    assert lengths[1] >= 0.95 * lengths[0]


@pytest.mark.parametrize("path", [PIPELINE, RANKS, RINGS])
def test_figures_are_there_without_scripts(unscripted: Page, site: str, path: str) -> None:
    unscripted.goto(f"{site}{path}")
    shown = unscripted.locator("article > figure.figgen")
    assert shown.count() >= 5
    for figure in shown.all():
        picture = figure.locator(".fig-scroll > :is(svg, table, pre)").locator("visible=true").first
        box = picture.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 30
    assert unscripted.locator(".fig-explore").locator("visible=true").count() == 0
