"""Every file that a tool offers is delivered after a single press."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page

from tests.browser.rank_map import KEEP_FILES
from tests.browser.site import ROOT
from tests.browser.waits import press

TOOLS = ROOT / "docs" / "assets" / "javascripts" / "tools"
MAP, LAB, MODELER = "rank-map/?preset=map-32&show=pp", "schedules/", "modeler/"
PLANNER, PROFILE = "planner/", "profile/"
FILES = {
    MAP: ("svg", "png", "json", "csv"),
    LAB: ("order", "svg", "trace"),
    MODELER: (
        *(f"{name}.json" for name in ("step", "memory", "trace")),
        *("communication.csv", "memory.csv", "start"),
    ),
    PLANNER: ("trace", "start"),
    PROFILE: ("profile.txt", "profile.json"),
}
FIRST = {
    (PLANNER, "start"): "[data-write]",
    (PROFILE, "profile.txt"): "text=Read a recorded example",
}
"""What to press first, for files that do not exist at the start."""


def test_every_file_of_every_tool_is_listed() -> None:
    """Every file has a button; the schedule lab and the profile reader also list
    endings and names."""
    given = "".join(path.read_text("utf-8") for path in TOOLS.glob("*.js"))
    named = set(re.findall(r"\"data-file\": \"(\w+)\"|\bfile\(\"[^\"]+\", \"([\w.]+)\"", given))
    assert {one or other for one, other in named} <= {
        name for names in FILES.values() for name in names
    }
    assert len(re.findall(r"[^.]\bdownload\(", given)) == 1 + 3 + 1 + 1 + 1 + 2 + 1


@pytest.mark.parametrize("tool", FILES)
def test_every_file_is_handed_over_by_one_press(page: Page, site: str, tool: str) -> None:
    page.set_viewport_size({"width": 1366, "height": 900})
    page.goto(f"{site}/tools/{tool}")
    page.evaluate(KEEP_FILES)
    if tool == MODELER:
        page.locator("#modeler .modeler-card").first.wait_for()
        page.get_by_role("heading", name="Take away", exact=True).scroll_into_view_if_needed()
    for count, name in enumerate(FILES[tool], 1):
        if first := FIRST.get((tool, name)):
            page.locator(first).click()
        press(page, page.locator(f"[data-file='{name}']"))
        page.mouse.up()
        page.wait_for_function("(count) => window.kept.length === count", arg=count)
        assert page.evaluate("() => window.kept.at(-1).size") > 100, name
