"""Every page of the navigation in a reader's browser."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Request, ViewportSize

from tests.browser.gate.measured import LIMIT_KB, NAME, PUBLISHED_KB, kind_of
from tests.browser.paths import PATHS
from tests.browser.waits import Held, resting
from tests.thorough import one_in

DESK: ViewportSize = {"width": 1366, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
# A4 between margins of 10 mm, at 96 px per inch
PAPER: ViewportSize = {"width": 718, "height": 1000}

# axe takes seconds for what repeats: further rows, formulas, links of a list of pages and words of
# a program, and the insides of pictures, which to a reader of the accessibility tree are one image
# (their colors: tests/test_theme.py).
SHORTEN = """() => {
  for (const item of document.querySelectorAll(".md-nav__item:nth-child(n+4)"))
    if (!item.matches(".md-nav__item--active")) item.remove();
  for (const code of document.querySelectorAll("article pre code")) {
    const seen = new Set();
    for (const word of [...code.querySelectorAll("span:not(:has(*))")])
      if (seen.has(word.className)) word.replaceWith(word.textContent);
      else seen.add(word.className);
  }
  document.querySelectorAll("article svg.fig").forEach((picture) => picture.replaceChildren());
  document.querySelectorAll("article tbody tr:nth-child(n+4)").forEach((row) => row.remove());
  for (const [kind, kept] of [["p", 9], ["figure.figgen", 4], [".md-typeset__scrollwrap", 4]])
    [...document.querySelectorAll(`article > ${kind}`)].slice(kept).forEach((one) => one.remove());
  for (const kind of ["[popover]", ".fig-value:not(.tool *)", "math"])
    [...document.querySelectorAll(kind)].slice(5).forEach((one) => one.remove());
  let node = document.querySelectorAll("article h3")[5];
  while (node) { const next = node.nextSibling; node.remove(); node = next; }
}"""
# Marks blocks that have a text of a look that is new: its colors and classes, its size where that
# makes a difference (from 14 bold points on), the color of the block's own text, and the grounds
# it stands on.  Takes away what is in no such block, as axe looks at the whole page each time.
# Returns these looks.
DISTINCT = """(known) => {
  const style = getComputedStyle, seen = new Set(known), blocks = new Map();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode;
    if (!text.data.trim()) continue;
    const { color, fontSize, fontWeight } = style(text.parentElement);
    const look = [color, parseFloat(fontSize) < 18.5 ? "small" : fontSize, fontWeight];
    let block = text.parentElement;
    for (; style(block).display.startsWith("inline"); block = block.parentElement)
      look.push(block.localName, block.className);
    look.push(block.localName, block.className, style(block).color);
    for (let node = text.parentElement; node; node = node.parentElement) {
      const { backgroundColor, opacity } = style(node);
      if (backgroundColor === "rgba(0, 0, 0, 0)" && opacity === "1") continue;
      look.push(backgroundColor, opacity);
    }
    blocks.set(block, [...(blocks.get(block) ?? []), [text, look.join()]]);
  }
  for (const [block, texts] of blocks) {
    if (texts.every(([, look]) => seen.has(look))) texts.forEach(([text]) => text.remove());
    else texts.forEach(([, look]) => seen.add(look)), block.classList.add("new-look");
  }
  for (const one of [...document.querySelectorAll("body :not(form, form *, style, script)")])
    if (one.isConnected && !one.closest(".new-look") && !one.querySelector(".new-look, form"))
      one.remove();
  return [...seen.difference(new Set(known))];
}"""
# Boxes that scroll sideways and that no key can scroll.
STUCK = """() => [...document.querySelectorAll("article *")]
  .filter((box) => ["auto", "scroll"].includes(getComputedStyle(box).overflowX))
  .filter((box) => box.clientWidth > 0 && box.scrollWidth > box.clientWidth + 1)
  .filter((box) => box.tabIndex < 0 && !box.closest("[popover]"))
  .map((box) => box.outerHTML.slice(0, 99))"""
SHIFTS = """() => {
  const observer = new PerformanceObserver(() => {});
  observer.observe({ type: "layout-shift", buffered: true });
  return observer.takeRecords().reduce((sum, entry) => sum + entry.value, 0);
}"""
LAY_OUT = """() => document.querySelectorAll(".fig-scroll")
  .forEach((box) => { box.style.contentVisibility = "visible"; })"""
# The fonts are there and what they moved is drawn.
SETTLED = """() => document.fonts.ready.then(() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(done))))"""
# What is drawn of these elements.  Asked without a locator, as all is of these pages: it first puts
# a quarter of a megabyte of its own into each page that it looks at.
DRAWN = """(selector) => [...document.querySelectorAll(selector)]
  .filter((one) => one.checkVisibility({ visibilityProperty: true }))
  .filter((one) => one.getBoundingClientRect().width && one.getBoundingClientRect().height)
  .map((one) => one.outerHTML.slice(0, 99))"""
# Colors that fade into those of another palette have arrived.
FADED = "() => Promise.allSettled(document.getAnimations().map(({ finished }) => finished))"
PALETTE = "document.body.dataset.mdColorScheme"
TEXT_WITHOUT_SCRIPTS = 0.95
SHIFT_LIMIT = 0.02  # a fifth of what Core Web Vitals call good
# A tool that computes for seconds has its whole answer.
COMPUTED = "() => !document.querySelector('[aria-busy=true]')"
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def sample(step: int, *whole_parts: str) -> set[str]:
    """Return one page in `step` of each part of the site, and every page of `whole_parts`."""
    return {
        path
        for part, paths in groupby(sorted(PATHS), lambda path: path.split("/")[1])
        for path in list(paths)[:: 1 if part in whole_parts else step]
    }


# Pages of one part have the same styles: one in 24 is looked at wholly, and every tool; one in 16
# on a phone and on paper.  `make site-check` looks at all.
WHOLLY = sample(24, "tools")
NARROW = WHOLLY | sample(16)

OFF_PAPER = ".fig-tools, .fig-controls, .fig-tabs, .fig-how, .md-header, .md-code__nav"

# Rules that look at colors; the other rules see the same elements in both palettes.
OF_COLOUR = ("color-contrast", "link-in-text-block")
# What else depends on the width of the screen.
OF_SIZE = ("target-size", "scrollable-region-focusable", "landmark-unique", "bypass", "region")


def wire_bytes(site_folder: Path, addresses: list[str]) -> dict[str, int]:
    """Return the size of each response as a static host sends it, compressed where it helps."""
    sizes = {}
    for address in addresses:
        name = urlsplit(address).path.lstrip("/")
        file = site_folder / (f"{name}index.html" if name.endswith("/") or not name else name)
        sizes[name or "/"] = sent(file)
    return sizes


@cache
def sent(file: Path) -> int:
    content = file.read_bytes()
    return min(len(content), len(gzip.compress(content, 9)))


PAINTED = "() => performance.getEntriesByName('first-contentful-paint').length > 0"


def test_a_font_that_comes_after_the_text_moves_nothing(first_visit: Page, site: str) -> None:
    """Lines with math used to be broken anew, which moved everything below them."""
    held = Held(first_visit, "**/math.woff2")
    first_visit.set_viewport_size(PHONE)
    with first_visit.expect_request("**/math.woff2"):
        first_visit.goto(f"{site}/guide/pipeline-schedules/", wait_until="domcontentloaded")
    first_visit.wait_for_function(PAINTED)
    with first_visit.expect_response("**/math.woff2"):
        held.come()
    first_visit.evaluate(SETTLED)
    assert first_visit.evaluate(SHIFTS) < 0.002


@pytest.fixture(scope="module")
def looks() -> set[str]:
    """Styles of text that were legible on the pages so far."""
    return set()


# A browser is slow to load a page, so one visit looks at everything.


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "looks" in metafunc.fixturenames:
        given = metafunc.config.getoption("--site")
        metafunc.parametrize("path", [path for path in PATHS if given or path in NARROW])


def test_page_is_light_still_and_accessible_on_a_desk_on_a_phone_and_on_paper(
    first_visit: Page,
    asked: list[Request],
    looks: set[str],
    unscripted: Page,
    site: str,
    site_folder: Path,
    axe: Callable[..., list[str]],
    path: str,
    record_property: Callable[[str, Any], None],
    request: pytest.FixtureRequest,
) -> None:
    """There is also no error, third party or breach of the policy; see the `page` fixture."""
    page = first_visit
    whole = path in WHOLLY or request.config.getoption("--site") is not None
    with resting(page):
        on_screen(page, f"{site}{path}", DESK if whole else PHONE)
        if whole:
            unscripted.goto(f"{site}{path}")
    stays_still(page)
    fetched = [request for request in asked if request.url.startswith("http")]
    answers = [request.response() for request in fetched]
    assert {answer.status for answer in answers if answer} == {200}
    sizes = wire_bytes(site_folder, [request.url for request in fetched])
    assert not any(name.startswith("search/") for name in sizes if name != "search/"), "not yet"
    weight = sum(sizes.values()) / 1000 + PUBLISHED_KB
    record_property(NAME, [path, {"kB": weight, "requests": len(sizes)}])
    assert weight <= LIMIT_KB[kind_of(path)], sizes
    if whole:
        page.set_viewport_size(PHONE)
    page.wait_for_function(COMPUTED)
    no_wider_than_the_screen(page)
    on_paper(page)
    if whole:
        page.emulate_media(media="screen")
        page.set_viewport_size(DESK)
        share = shown_without_scripts(page, unscripted)
        record_property(NAME, [path, {"no-JS %": 100 * share}])
        assert share >= TEXT_WITHOUT_SCRIPTS
        page.evaluate(SHORTEN)
        page.set_viewport_size(PHONE)
        assert axe(page, tags=OF_SIZE) == []
        page.set_viewport_size(DESK)
        assert axe(page, without=OF_COLOUR) == []
        in_palettes(page, axe, looks)


@pytest.mark.parametrize("path", one_in(3, [path for path in PATHS if path.startswith("/tools/")]))
def test_page_is_still_on_a_phone_in_the_palette_that_was_chosen(
    page: Page, site: str, path: str
) -> None:
    page.goto(f"{site}{path}")
    page.evaluate("document.querySelector('#__palette_1').click()")
    with resting(page):
        on_screen(page, f"{site}{path}", PHONE)
    stays_still(page)
    assert page.evaluate(PALETTE) == "slate"


def on_screen(page: Page, address: str, size: ViewportSize) -> None:
    page.set_viewport_size(size)
    page.emulate_media(color_scheme="light")
    page.goto(address)


def stays_still(page: Page) -> None:
    page.evaluate(SETTLED)
    assert page.evaluate("document.querySelectorAll('h1').length") == 1
    assert page.evaluate(SHIFTS) <= SHIFT_LIMIT


# What a menu offers is no text: a hundred names of the catalog, which has tables of its own.
READ = """() => {
  const offered = [...document.querySelectorAll("article option")].map((one) => one.innerText);
  return document.querySelector("article").innerText.length - offered.join("\\n").length;
}"""


def shown_without_scripts(page: Page, unscripted: Page) -> float:
    """Return the share of the page's text that it also has without scripts."""
    for reader in (page, unscripted):  # what is far down has no text until it is laid out
        reader.evaluate(LAY_OUT)
    return float(unscripted.evaluate(READ) / page.evaluate(READ))


def in_palettes(page: Page, axe: Callable[..., list[str]], known: set[str]) -> None:
    """Check that every text color contrasts with its background.

    Every style is checked only once, because all pages share the stylesheet.
    """
    new = page.evaluate(DISTINCT, [*known])
    if not new:
        return
    assert axe(page, tags=OF_COLOUR, within=".new-look") == [], "in the light palette"
    page.evaluate("document.querySelector('#__palette_1').click()")
    assert page.evaluate(PALETTE) == "slate"
    page.evaluate(FADED)
    assert axe(page, tags=OF_COLOUR, within=".new-look") == [], "in the dark palette"
    known.update(new)


CUT_PROGRAMS = """() => [...document.querySelectorAll(".md-typeset pre")]
  .filter((box) => box.clientWidth && box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.textContent.trim().slice(0, 80))"""


# Boxes whose edges are shaded where they go on, which paper has no use for.
SHADED = """() => [...document.querySelectorAll("article *")]
  .filter((box) => {
    const { backgroundImage, backgroundAttachment } = getComputedStyle(box);
    return backgroundImage !== "none" && backgroundAttachment.includes("local");
  })
  .map((box) => box.className)"""


def no_wider_than_the_screen(page: Page) -> None:
    assert page.evaluate(SIDEWAYS) == 0
    assert page.evaluate(STUCK) == []


def on_paper(page: Page) -> None:
    page.set_viewport_size(PAPER)
    page.emulate_media(media="print")
    assert page.evaluate(SIDEWAYS) == 0
    assert page.evaluate(DRAWN, OFF_PAPER) == []
    assert page.evaluate(CUT_PROGRAMS) == []
    assert page.evaluate(SHADED) == []


def test_a_line_that_is_too_wide_would_be_seen(page: Page, site: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto(f"{site}/")
    page.evaluate("document.querySelector('h1').style.width = '500px'")
    assert page.evaluate(SIDEWAYS) > 0


@pytest.mark.parametrize("palette", ["light", "dark"])
def test_a_colour_that_cannot_be_read_would_be_seen(
    page: Page, axe: Callable[..., list[str]], site: str, palette: str
) -> None:
    page.goto(f"{site}/")
    colours = {"light": "[data-md-color-scheme=default] p { color: #ccc !important }",
               "dark": "[data-md-color-scheme=slate] p { color: #444 !important }"}  # fmt: skip
    page.evaluate(
        "(text) => { const sheet = new CSSStyleSheet();"
        " sheet.replaceSync(text); document.adoptedStyleSheets.push(sheet); }",
        colours[palette],
    )
    page.evaluate(SHORTEN)
    with pytest.raises(AssertionError, match=f"in the {palette} palette"):
        in_palettes(page, axe, set())


def test_missing_page_is_a_page_of_the_site(page: Page, site: str) -> None:
    page.goto(f"{site}/404.html")
    assert page.locator("h1").inner_text() == "This page does not exist"
    assert page.evaluate("getComputedStyle(document.querySelector('.md-header')).position")
