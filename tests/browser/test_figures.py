"""What comes with every figure: words, numbers, downloads, and an address of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.paths import PIPELINE, RINGS, ROOT, SOURCES, address_of

# One question for all figures of a page, which is read but neither run nor laid out.
FURNITURE = """async (address) => {
  const text = await (await fetch(address)).text();
  const page = new DOMParser().parseFromString(text, "text/html");
  return [...page.querySelectorAll("figure.figgen")].map((figure) => {
    const panels = figure.querySelectorAll(":scope > .fig-panel");
    const views = panels.length ? [...panels] : [figure];
    const number = figure.querySelector(":scope > figcaption > a.fig-number");
    return {
      id: figure.id,
      caption: figure.querySelector(":scope > figcaption").textContent,
      number: number.textContent,
      permalink: number.hash,
      views: views.map((view) => {
        const seen = view.querySelector(".fig-scroll > :is(svg, table, pre)");
        const table = view.querySelector(".fig-scroll > table.fig-table");
        const [data] = view.querySelectorAll(".fig-tools > details");
        const cite = data.querySelector(".fig-cite");
        return {
          kind: seen.localName,
          alt: seen.getAttribute("aria-label") ?? "",
          late: view.querySelector(".fig-scroll > a.fig-late")?.getAttribute("href"),
          rows: table?.querySelectorAll("tbody tr").length,
          heads: table?.querySelectorAll("thead th[scope]").length,
          downloads: [...data.querySelectorAll("a[download]")].map((a) => a.textContent),
          citation: cite.textContent,
          cited: cite.querySelector("a").hash,
        };
      }),
    };
  });
}"""


def fences_of(source: str) -> int | None:
    """Return how many figures the author wrote; None for a generated page."""
    path = ROOT / "docs" / source
    if not path.exists():
        return None
    return len(re.findall(r"^ *```figure$", path.read_text("utf-8"), re.M))


@pytest.fixture(scope="module")
def shelf(profile: BrowserContext, site: str) -> Iterator[Page]:
    """A page of the site that may fetch the others."""
    with profile.new_page() as opened:
        opened.goto(f"{site}/404.html")
        yield opened


AT_THE_TOP = """(id) => {
  const { top } = document.getElementById(id).getBoundingClientRect();
  return 0 <= top && top <= 250;
}"""


@pytest.mark.parametrize("source", SOURCES)
def test_every_figure_is_complete(shelf: Page, site: str, source: str) -> None:
    path = address_of(source)
    figures: list[dict[str, Any]] = shelf.evaluate(FURNITURE, f"{site}{path}")
    assert fences_of(source) in (None, len(figures))
    for figure in figures:
        assert figure["id"].startswith("fig-")
        assert re.fullmatch(r"Figure J?\d+(\.\d+)?", figure["number"])
        assert figure["permalink"] == f"#{figure['id']}"
        assert len(figure["caption"].removeprefix(figure["number"]).split()) >= 4, figure["caption"]
        for view in figure["views"]:
            assert len(view["alt"].split()) >= 4, figure["id"]
            assert bool(view.get("late")) != bool(view.get("rows")), figure["id"]
            assert view.get("late") or view["heads"] >= 2, figure["id"]
            assert f"{figure['number']}. " in view["citation"]
            assert view["citation"].endswith(f"{path}#{figure['id']}")
            assert view["cited"] == figure["permalink"]
            assert view["downloads"] == ["SVG", "CSV", "JSON"]


def test_a_long_table_comes_when_it_is_opened_and_without_scripts_by_a_link(
    page: Page, unscripted: Page, site: str
) -> None:
    for reader in (page, unscripted):
        reader.goto(f"{site}{PIPELINE}")
    name = page.locator("figure.figgen:has(a.fig-late)").first.get_attribute("id")
    figure = page.locator(f"#{name}")
    assert figure.locator(".fig-tools table").count() == 0
    figure.locator("summary", has_text="Data").click()
    table = figure.locator(".fig-tools .fig-scroll > table.fig-table")
    table.wait_for()
    rows = table.locator("tbody tr").count()
    assert rows > 10
    assert figure.locator("a.fig-late").count() == 0
    unscripted.locator(f"#{name} summary", has_text="Data").click()
    unscripted.locator(f"#{name} a.fig-late").click()
    expect(unscripted.locator("table.fig-table tbody tr")).to_have_count(rows)
    unscripted.get_by_role("link", name="Back to the page").click()
    expect(unscripted).to_have_url(f"{site}{PIPELINE}")


def test_numbers_of_figures_are_unique_and_in_order(site_folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    for source in SOURCES:
        name = address_of(source).lstrip("/") + "index.html"
        html = (site_folder / name).read_text(encoding="utf-8")
        found = re.findall(r'class="fig-number" href="[^"]*">Figure (\d+)\.(\d+)<', html)
        numbers = [(int(chapter), int(place)) for chapter, place in found]
        assert [place for _, place in numbers] == list(range(1, len(numbers) + 1)), source
        seen += numbers
    assert len(seen) > 20
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("path", [PIPELINE, RINGS])
def test_link_to_a_figure_ends_at_that_figure(page: Page, site: str, path: str) -> None:
    """This also holds far down a page, whose pictures are laid out only when they come near."""
    page.goto(f"{site}{path}")
    last = page.locator("figure.figgen").last.get_attribute("id")
    page.goto(f"{site}/")
    page.goto(f"{site}{path}#{last}")
    page.wait_for_function(AT_THE_TOP, arg=last)
