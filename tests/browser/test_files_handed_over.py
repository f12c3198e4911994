"""Every file that a tool hands over is handed over by one press, whatever comes meanwhile."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.browser.rank_map import KEEP_FILES
from tests.browser.site import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, Route

TOOLS = ROOT / "docs" / "assets" / "javascripts" / "tools"
MAP, LAB, MODELER = "rank-map/?preset=map-32&show=pp", "schedules/", "modeler/"
FILES = (
    *((MAP, name) for name in ("svg", "png", "json", "csv")),
    *((LAB, name) for name in ("order", "svg", "trace")),
    *((MODELER, f"{name}.json") for name in ("step", "memory", "trace")),
    *((MODELER, f"{name}.csv") for name in ("communication", "memory")),
)
LATE = {"map_volumes": ".map-volumes", "map_cube": "canvas.map-cube"}
"""What is loaded above such buttons when a reader comes near, and an element that shows it is."""


def test_no_other_script_is_loaded_when_a_reader_comes_near() -> None:
    waiting = {path.stem for path in TOOLS.glob("*.js") if "whenNear(" in path.read_text("utf-8")}
    assert waiting == {"dom", "rank-map", "modeler_results"}
    text = (TOOLS / "rank-map.js").read_text("utf-8")
    assert set(re.findall(r"import\(\"\./(\w+)\.js\"\)", text)) == LATE.keys()


def at_rest(page: Page, address: str, site: str) -> None:
    page.set_viewport_size({"width": 1366, "height": 900})
    page.goto(f"{site}/tools/{address}")
    page.evaluate(KEEP_FILES)


def press(page: Page, button: Locator) -> None:
    """Press a button where it is now, and hold it."""
    button.wait_for()
    button.scroll_into_view_if_needed()
    place = button.bounding_box()
    assert place
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.mouse.down()


@pytest.mark.parametrize("name", [name for tool, name in FILES if tool == MAP])
def test_a_press_is_not_lost_when_a_part_of_the_page_comes_meanwhile(
    page: Page, site: str, name: str
) -> None:
    """The table of messages came 125 pixels higher than its place, and moved the buttons away."""
    late: list[Route] = []
    page.route(re.compile(rf"/({'|'.join(LATE)})\.js"), lambda route: late.append(route))
    at_rest(page, MAP, site)
    page.locator(".map-cube, [aria-label=Cube]").first.scroll_into_view_if_needed()
    button = page.locator(f"[data-file={name}]")
    press(page, button)
    page.wait_for_function("() => document.activeElement.dataset.file")
    assert late, "the parts above have come"
    for route in late:
        route.continue_()
    page.wait_for_load_state("networkidle")
    page.evaluate(
        "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"
    )
    page.mouse.up()
    page.wait_for_function("() => window.kept.length === 1")
    page.locator(LATE["map_volumes"]).wait_for()


@pytest.mark.parametrize(("tool", "name"), FILES)
def test_every_file_is_handed_over_by_one_press(
    page: Page, site: str, tool: str, name: str
) -> None:
    at_rest(page, tool, site)
    if tool == MODELER:
        page.locator("#modeler .modeler-card").first.wait_for()
        page.get_by_role("heading", name="Take away", exact=True).scroll_into_view_if_needed()
    press(page, page.locator(f"[data-file='{name}']"))
    page.mouse.up()
    page.wait_for_function("() => window.kept.length === 1")
    assert page.evaluate("() => window.kept[0].size") > 100
