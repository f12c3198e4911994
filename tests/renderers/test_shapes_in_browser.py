"""Every picture in a wide box and in a phone's: no sideways scrolling, no text too small."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from figgen import theme
from figgen.charts import Chart
from figgen.registry import build
from figgen.renderers import svg
from tests.renderers.samples import CURVES, GROUPED, STACKED

SHEET = Path(__file__).parents[2] / "figgen" / "assets" / "stylesheets" / "figures.css"
CHARTS: dict[str, Chart] = {
    "curves": CURVES,
    "stacked": STACKED,
    "grouped": GROUPED,
    "efficiency": build("strategies-roofline", {"preset": "h100-ndr"}),
    "in-flight": build("in-flight-over-time", {}),
    "bubble": build("bubble-curves", {"stages": [4, 8, 16, 64]}),
    "grid-128": build("rank-grid", {"preset": "map-128"}),
    "grid-256": build("rank-grid", {"preset": "map-256"}),
    "ring-4": build(
        "collective-steps", {"collective": "all-reduce", "algorithm": "ring", "ranks": 4}
    ),
    "ring-8": build(
        "collective-steps", {"collective": "all-reduce", "algorithm": "ring", "ranks": 8}
    ),
}
# The text column on a desktop, between sidebars, on a phone and on a small one.
BOXES = (688, 660, 358, 328)

MEASURED = """() => {
  const box = document.querySelector(".fig-scroll").getBoundingClientRect();
  const scroll = document.querySelector(".fig-scroll");
  const texts = [...document.querySelectorAll("text, tspan")]
    .filter(text => text.tagName == "tspan" || !text.children.length)
    .map(text => {
      const range = document.createRange();
      range.selectNodeContents(text);
      const place = range.getBoundingClientRect();
      const scale = text.closest("text").getScreenCTM().a;
      return [text.textContent, place.left - box.left, place.top - box.top,
              place.right - box.left, place.bottom - box.top, 12 * scale];
    })
    .filter(([, left, top, right, bottom]) => right > left && bottom > top);
  return [scroll.scrollWidth - scroll.clientWidth, scroll.clientHeight, texts];
}"""


@pytest.fixture(scope="module")
def opened(chromium: Browser) -> Iterator[Page]:
    page = chromium.new_page()
    yield page
    page.close()


def measured(page: Page, chart: Chart, width: int) -> Any:
    """Return how far the box scrolls sideways, its height, and all visible text with
    box and size."""
    style = f"{theme.stylesheet()}{SHEET.read_text(encoding='utf-8')}"
    page.set_content(
        f"<!doctype html><meta charset=utf-8><style>{style}"
        "body{margin:0;font-family:Arial,'Liberation Sans',sans-serif}</style>"
        f'<div style="width:{width}px"><div class="fig-scroll">{svg.render(chart, "f")}</div></div>'
    )
    return page.evaluate(MEASURED)


@pytest.mark.parametrize("width", BOXES)
@pytest.mark.parametrize("name", CHARTS)
def test_a_picture_fits_its_box_and_its_texts_can_be_read(
    opened: Page, name: str, width: int
) -> None:
    scrolls, height, texts = measured(opened, CHARTS[name], width)
    assert scrolls <= 0
    assert texts
    for text, left, top, right, bottom, size in texts:
        assert size >= 10.9, text
        assert left >= -0.5, text
        assert right <= width + 0.5, text
        assert top >= -0.5, text
        assert bottom <= height + 3, text
    for one, two in itertools.combinations(texts, 2):
        across = min(one[3], two[3]) - max(one[1], two[1])
        down = min(one[4], two[4]) - max(one[2], two[2])
        assert across <= 0.5 or down <= 3.5, (one[0], two[0])


def test_only_one_shape_of_a_plot_is_shown(opened: Page) -> None:
    for width, shown in ((688, "wide"), (358, "narrow")):
        measured(opened, CURVES, width)
        visible = opened.evaluate(
            """() => [...document.querySelectorAll("svg svg")]
                 .filter(shape => shape.getBoundingClientRect().width).map(
                   shape => shape.getAttribute("class"))"""
        )
        assert visible == [shown]
