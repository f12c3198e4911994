"""A press on a tool counts even if parts arrive or are redrawn before or during it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.modeler import answered, choose
from tests.browser.rank_map import opened
from tests.browser.site import ROOT
from tests.browser.waits import Held, drawn, press

TOOLS = ROOT / "docs" / "assets" / "javascripts" / "tools"
LATE = {"map_cube": ("Cube", ".map-cube"), "map_volumes": ("Messages", ".map-volumes")}
"""Scripts of the rank map that arrive late, each with a section and an element that it fills."""
PLACES = """() => [...document.querySelectorAll("article :is(a, button, input, select, h2)")]
  .filter((one) => one.checkVisibility() && !one.closest(".map-late"))
  .map((one) => [one, one.getBoundingClientRect()])
  .filter(([, box]) => box.bottom > 0 && box.top < innerHeight)
  .map(([one, { left, top }]) => [one.name || one.textContent, left, top].join())"""


def test_no_other_script_is_loaded_when_a_reader_comes_near() -> None:
    waiting = {path.stem for path in TOOLS.glob("*.js") if "whenNear(" in path.read_text("utf-8")}
    # What comes late in the planner is its last section, below which nothing can move.
    assert waiting == {"dom", "rank-map", "modeler_results", "planner"}
    text = (TOOLS / "rank-map.js").read_text("utf-8")
    assert set(re.findall(r"import\(\"\./(\w+)\.js\"\)", text)) == LATE.keys()


def arrived(page: Page, script: str) -> None:
    """Wait until a script has arrived and a frame shows its immediate effects."""
    page.evaluate("(path) => import(path)", f"/assets/javascripts/tools/{script}.js")
    drawn(page)


@pytest.mark.parametrize("width", [1366, 390])
@pytest.mark.parametrize("script", LATE)
def test_what_comes_late_on_the_rank_map_moves_nothing(
    page: Page, site: str, script: str, width: int
) -> None:
    """The cube used to scroll the page by 166 pixels, moving a checkbox from under the pointer."""
    label, filled = LATE[script]
    late = Held(page, f"**/{script}.js")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{site}/tools/rank-map/")
    section = page.get_by_role("region", name=label, exact=True)
    section.evaluate("(box) => box.scrollIntoView({ block: 'center' })")
    section.locator("h2").evaluate(
        "(head) => scrollBy(0, head.getBoundingClientRect().top - innerHeight / 2)"
    )
    drawn(page)
    before = page.evaluate(PLACES)
    assert len(before) > 1
    late.come()
    page.locator(filled).wait_for()
    drawn(page)
    assert page.evaluate(PLACES) == before


def test_a_checkbox_is_checked_although_the_cube_comes_while_it_is_pressed(
    page: Page, site: str
) -> None:
    late = Held(page, "**/map_cube.js")
    opened(page, site, "?nodes=4&tp=2&pp=4&order=llama3&show=dp")
    mark = page.locator("[name=moved]")
    mark.evaluate("(box) => scrollBy(0, box.getBoundingClientRect().top - innerHeight / 2)")
    press(page, mark)
    late.come()
    arrived(page, "map_cube")
    page.mouse.up()
    expect(mark).to_be_checked()


def test_a_button_is_pressed_although_its_press_ends_the_typing_before_it(
    page: Page, site: str
) -> None:
    """The press takes the focus from the field, whose new value redraws the list of groups."""
    opened(page, site)
    page.get_by_label("Isolate group number").click()
    page.keyboard.type("3")
    press(page, page.locator("[data-whole]"))
    drawn(page)
    page.mouse.up()
    expect(page.locator("[data-whole]")).to_have_text("Fewer")
    expect(page.locator(".map-entry[aria-pressed=true]")).to_have_attribute("data-group", "3")


def test_a_press_in_the_modeler_is_not_moved_away_by_a_message(
    open_modeler: Callable[..., Page],
) -> None:
    page = open_modeler("", answered)
    late = Held(page, "**/modeler_messages.js")
    choose(page, "tp", "3")
    button = page.locator(".modeler-answer [data-how]").first
    press(page, button)
    late.come()
    arrived(page, "modeler_messages")
    page.mouse.up()
    page.locator("#modeler-how:popover-open").wait_for()
