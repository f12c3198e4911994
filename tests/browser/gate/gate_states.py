"""The tools in each of their states, and a reader's path through the site."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.gate.measured import NAME
from tests.browser.modeler import PATH as MODELER
from tests.browser.modeler import settled
from tests.browser.paths import PIPELINE, RANKS, RINGS
from tests.browser.rank_map import MAP
from tests.browser.test_pages import DESK, PHONE
from tests.browser.test_planner import PATH as PLANNER
from tests.browser.test_schedule_lab import PATH as SCHEDULES

WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
FOLLOW = """(path) => [...document.links].find(({ pathname }) => pathname.endsWith(path)).click()"""
OPEN_ALL = "() => document.querySelectorAll('article details').forEach((d) => { d.open = true; })"


def modeler(page: Page) -> None:
    settled(page)


def unfolded(page: Page) -> None:
    settled(page)
    page.evaluate(OPEN_ALL)


def explained(page: Page) -> None:
    settled(page)
    page.locator("#modeler [data-how]").first.click()
    page.locator("#modeler-how:popover-open").wait_for()


def mapped(page: Page) -> None:
    page.locator(".map-box").wait_for()


def refused(page: Page) -> None:
    page.locator(".tool-message, [role=alert]").first.wait_for()


def refused_field(page: Page) -> None:
    page.locator("#converter .is-bad").first.wait_for()


def planned(page: Page) -> None:
    page.locator("#planner tbody tr").first.wait_for(timeout=30_000)
    page.evaluate(OPEN_ALL)


def scheduled(page: Page) -> None:
    page.locator("#schedules .lab-svg rect").first.wait_for()


def converted(page: Page) -> None:
    page.locator("#converter output, #converter [role=group]").first.wait_for()


def profiled(page: Page) -> None:
    page.get_by_role("button", name="Read a recorded example").click()
    page.locator(".tool-sentence a").wait_for()


STATES: dict[str, tuple[str, Callable[[Page], None]]] = {
    "modeler": (MODELER, modeler),
    "modeler unfolded": (MODELER, unfolded),
    "modeler explained": (MODELER, explained),
    "modeler compared": (f"{MODELER}?nodes=4&cp=2&tp=4&pp=2&compare=1&b.pp=4", unfolded),
    "modeler too large": (f"{MODELER}?model=llama-3-405b&nodes=1&tp=8&pp=1", unfolded),
    "modeler refused": (f"{MODELER}?tp=3", refused),
    "map": (MAP, mapped),
    "map with experts": (f"{MAP}?preset=deepseek-v3", mapped),
    "map refused": (f"{MAP}?tp=0", refused),
    "planner": (f"{PLANNER}?model=llama-3-8b&nodes=1", planned),
    "planner refused": (f"{PLANNER}?nodes=0", refused),
    "schedules": (f"{SCHEDULES}?path=1", scheduled),
    "schedules refused": (f"{SCHEDULES}?layers=8,8", refused),
    "converter": ("/tools/converter/", converted),
    "converter refused": ("/tools/converter/?ranks=1e9", refused_field),
    "profile with a file": ("/tools/profile/", profiled),
}


@pytest.mark.parametrize("state", STATES)
def test_tool_is_accessible_in_each_state(
    page: Page,
    site: str,
    axe: Callable[..., list[str]],
    state: str,
    record_property: Callable[[str, Any], None],
) -> None:
    query, reach = STATES[state]
    found: dict[str, list[str]] = {}
    for look, size, scheme in (
        ("light", DESK, "light"), ("dark", DESK, "dark"), ("phone", PHONE, "light"),
    ):  # fmt: skip
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        page.goto("about:blank")
        page.goto(f"{site}{query}")
        reach(page)
        found[look] = axe(page, tags=WCAG, within="article")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), look
    record_property(NAME, [query.partition("?")[0], {"axe": sum(map(len, found.values()))}])
    assert found == {"light": [], "dark": [], "phone": []}


def test_no_error_and_no_third_party_on_a_way_through_the_site(instant: Page, site: str) -> None:
    """Search, palette, instant navigation, both tools, a figure in Plotly; see `page`."""
    page = instant
    page.set_viewport_size(DESK)
    page.goto(f"{site}/")
    page.keyboard.press("/")
    page.keyboard.type("ring all-reduce")
    page.locator(".find-text:has(mark)").first.wait_for()
    page.locator(f".find-list a[href*='{RINGS}']").first.click()
    page.wait_for_url(re.compile(RINGS))
    page.locator("label[for=__palette_1]:visible, label[for=__palette_0]:visible").first.click()
    for path in (RANKS, PIPELINE, MAP, MODELER):
        page.evaluate(FOLLOW, path)
        page.wait_for_url(re.compile(path))
    settled(page)
    page.goto(f"{site}{PIPELINE}")
    page.locator(".fig-explore").first.click()
    page.locator(".js-plotly-plot").first.wait_for()
