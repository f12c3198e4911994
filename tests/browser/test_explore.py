"""Explore: Plotly loads only on request, follows the page, and leaves nothing behind."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, Request, expect

from tests.browser.paths import EXPLORED, LIGHT, PIPELINE
from tests.browser.waits import Held, at_rest

LIBRARY = "plotly.min.js"


def explorable(page: Page) -> Locator:
    return page.locator("figure.figgen:has(.fig-explore)").first


def explore(figure: Locator) -> Locator:
    """Press the button and wait for the plot."""
    figure.get_by_role("button", name="Explore").click()
    plot = figure.locator(".fig-plot")
    plot.locator(".main-svg").first.wait_for()
    figure.get_by_role("button", name="Back to the figure").wait_for()
    return plot


def count(asked: list[Request]) -> int:
    return sum(request.url.endswith(LIBRARY) for request in asked)


def test_library_comes_only_after_the_click_and_only_once(
    page: Page, site: str, asked: list[Request]
) -> None:
    at_rest(page, f"{site}{EXPLORED}")
    page.mouse.wheel(0, 20_000)
    assert count(asked) == 0
    figure = explorable(page)
    explore(figure)
    assert count(asked) == 1
    other = page.locator("figure.figgen:has(.fig-explore)").nth(1)
    explore(other)
    assert count(asked) == 1
    expect(page.locator(".js-plotly-plot")).to_have_count(2)


def test_fields_recompute_and_back_to_the_figure_restores_it(page: Page, site: str) -> None:
    """A stage does two passes per microbatch, forward and backward."""
    page.goto(f"{site}{PIPELINE}")
    figure = explorable(page)
    still = figure.locator(".fig-picture .fig-scroll")
    before = still.inner_html()
    plot = explore(figure)
    expect(still).to_be_hidden()
    works = "plot => plot.data.reduce((sum, trace) => sum + trace.x.length, 0)"
    stages = int(figure.get_by_label("stages", exact=True).input_value())
    count_of = figure.get_by_label("microbatches", exact=True)
    assert plot.evaluate(works) == 2 * stages * int(count_of.input_value())
    count_of.fill("5")
    count_of.press("Enter")
    page.wait_for_function(
        f"([plot, wanted]) => ({works})(plot) === wanted", arg=[plot.element_handle(), 10 * stages]
    )
    for typed, said in (("0", "expected an integer"), ("many", "microbatches"), ("4", "Computed")):
        count_of.fill(typed)
        count_of.press("Enter")
        expect(figure.get_by_role("status")).to_contain_text(said)
    expect(count_of).to_have_attribute("aria-invalid", "false")
    figure.get_by_label("schedule", exact=True).select_option(label="GPipe")
    expect(figure.get_by_role("status")).to_contain_text("Computed again")
    button = figure.get_by_role("button", name="Back to the figure")
    button.press("Enter")
    expect(button).to_be_hidden()
    expect(figure.get_by_role("button", name="Explore")).to_be_focused()
    expect(still).to_be_visible()
    assert still.inner_html() == before
    expect(page.locator(".fig-plot")).to_have_count(0)
    explore(figure)


@pytest.fixture
def ready(instant: Page, site: str) -> Page:
    """A page with figures to explore, after the theme is ready to change pages."""
    at_rest(instant, f"{site}{EXPLORED}")
    instant.evaluate("window.stayed = true")
    return instant


def leave(page: Page) -> None:
    """Go to a different page as a reader does."""
    page.locator(".md-nav--primary a", has_text="Efficiency").first.click()
    page.wait_for_url(f"**{LIGHT}")
    page.locator("h1", has_text="Efficiency").wait_for()
    assert page.evaluate("window.stayed"), "the theme reloaded the page"


def test_instant_navigation_away_and_back(ready: Page, asked: list[Request]) -> None:
    explore(explorable(ready))
    leave(ready)
    expect(ready.locator(".js-plotly-plot")).to_have_count(0)
    ready.go_back()
    ready.wait_for_url(f"**{EXPLORED}")
    ready.locator("h1", has_text="Failures").wait_for()
    assert ready.evaluate("window.stayed"), "the theme reloaded the page"
    figure = explorable(ready)
    expect(figure.locator(".fig-picture svg").first).to_be_visible()
    explore(figure)
    expect(ready.locator(".js-plotly-plot")).to_have_count(1)
    assert count(asked) == 1


@pytest.mark.parametrize("away", [False, True])
def test_closed_plot_is_not_kept_in_memory(ready: Page, away: bool) -> None:
    """The test uses only scripts, because a Playwright locator would itself keep the
    element alive."""
    press = "document.querySelector('.fig-explore').click()"
    ready.evaluate(press)
    ready.wait_for_function("() => !!document.querySelector('.fig-scroll[hidden]')")
    ready.evaluate("void (window.left = new WeakRef(document.querySelector('.fig-plot')))")
    assert ready.evaluate("window.left.deref().isConnected")
    leave(ready) if away else ready.evaluate(press)
    collector = ready.context.new_cdp_session(ready)
    for _ in range(200):
        collector.send("HeapProfiler.collectGarbage")
        if ready.evaluate("window.left.deref() === undefined"):
            break
        ready.evaluate("() => new Promise(requestAnimationFrame)")
    assert ready.evaluate("window.left.deref() === undefined")


def test_leaving_while_the_plot_loads_is_no_error(ready: Page) -> None:
    held = Held(ready, f"**/{LIBRARY}")
    with ready.expect_request(f"**/{LIBRARY}"):
        explorable(ready).get_by_role("button", name="Explore").click()
    ready.get_by_role("button", name="Loading").wait_for()
    ready.evaluate("() => { window.pressed = document.querySelector('[aria-busy=true]') }")
    leave(ready)
    held.come()
    ready.wait_for_function("() => window.Plotly && window.pressed.ariaBusy === 'false'")
    assert ready.locator(".js-plotly-plot").count() == 0


def test_plot_that_cannot_be_loaded_leaves_the_figure(
    page: Page, page_errors: list[str], site: str
) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(f"{site}{EXPLORED}")
    held = Held(page, f"**/{LIBRARY}")
    figure = explorable(page)
    with page.expect_request(f"**/{LIBRARY}"):
        figure.get_by_role("button", name="Explore").click()
    page.locator("label[title='Switch to dark']").click()  # which repaints what is drawn already
    page.locator("body[data-md-color-scheme=slate]").wait_for()
    held.fail()
    figure.get_by_role("button", name="could not be loaded").wait_for()
    expect(figure.locator(".fig-picture svg").first).to_be_visible()
    expect(page.locator(".fig-plot")).to_have_count(0)
    assert [error for error in page_errors if "ERR_FAILED" not in error] == []
    page_errors.clear()
    figure.get_by_role("button", name="try again").click()
    figure.locator(".fig-plot .main-svg").first.wait_for()


INK = """() => getComputedStyle(document.querySelector(".fig-plot .xtick text")).fill"""
# Whether the numbers at the axis have the color that they should have.
IN_INK = """() => {
  const probe = document.createElement("i");
  probe.style.color = "var(--fig-muted)";
  document.body.append(probe);
  const wanted = getComputedStyle(probe).color;
  probe.remove();
  return getComputedStyle(document.querySelector(".fig-plot .xtick text")).fill === wanted;
}"""


def test_colours_follow_the_palette(page: Page, site: str) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(f"{site}{EXPLORED}")
    explore(explorable(page))
    page.wait_for_function(IN_INK)
    light = page.evaluate(INK)
    page.locator("label[title='Switch to dark']").click()
    page.locator("body[data-md-color-scheme=slate]").wait_for()
    page.wait_for_function(IN_INK)
    assert page.evaluate(INK) != light
