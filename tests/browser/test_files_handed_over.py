"""Every file that a tool hands over is handed over by one press."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.browser.rank_map import KEEP_FILES
from tests.browser.site import ROOT
from tests.browser.waits import press

if TYPE_CHECKING:
    from playwright.sync_api import Page

TOOLS = ROOT / "docs" / "assets" / "javascripts" / "tools"
MAP, LAB, MODELER = "rank-map/?preset=map-32&show=pp", "schedules/", "modeler/"
PLANNER, PROFILE = "planner/", "profile/"
FILES = (
    *((MAP, name) for name in ("svg", "png", "json", "csv")),
    *((LAB, name) for name in ("order", "svg", "trace")),
    *((MODELER, f"{name}.json") for name in ("step", "memory", "trace")),
    *((MODELER, name) for name in ("communication.csv", "memory.csv", "start")),
    *((PLANNER, name) for name in ("trace", "start")),
    *((PROFILE, f"profile.{ending}") for ending in ("txt", "json")),
)
FIRST = {
    (PLANNER, "start"): "[data-write]",
    **{one: "text=Read a recorded example" for one in FILES if one[0] == PROFILE},
}
"""What is pressed before there is such a file."""


def test_every_file_of_every_tool_is_listed() -> None:
    """By its button; those of the schedule lab and the profile reader have endings and names."""
    given = "".join(path.read_text("utf-8") for path in TOOLS.glob("*.js"))
    named = set(re.findall(r"\"data-file\": \"(\w+)\"|\bfile\(\"[^\"]+\", \"([\w.]+)\"", given))
    assert {one or other for one, other in named} <= {name for _, name in FILES}
    assert len(re.findall(r"[^.]\bdownload\(", given)) == 1 + 3 + 4 + 1 + 1 + 2 + 1


@pytest.mark.parametrize(("tool", "name"), FILES)
def test_every_file_is_handed_over_by_one_press(
    page: Page, site: str, tool: str, name: str
) -> None:
    page.set_viewport_size({"width": 1366, "height": 900})
    page.goto(f"{site}/tools/{tool}")
    page.evaluate(KEEP_FILES)
    if tool == MODELER:
        page.locator("#modeler .modeler-card").first.wait_for()
        page.get_by_role("heading", name="Take away", exact=True).scroll_into_view_if_needed()
    if first := FIRST.get((tool, name)):
        page.locator(first).click()
    press(page, page.locator(f"[data-file='{name}']"))
    page.mouse.up()
    page.wait_for_function("() => window.kept.length === 1")
    assert page.evaluate("() => window.kept[0].size") > 100
