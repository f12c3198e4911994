"""A number in the text opens its derivation: by pointer, by keyboard, and without a script."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page

from tests.browser.paths import PIPELINE
from tests.browser.waits import drawn

# "With four stages it's 27% at eight microbatches": (4-1)/(8+4-1).
NUMBER = "27%"
# Together: between two questions a figure nearby may be laid out and move both.
RECTANGLES = """(number) => [document.querySelector(".fig-how:popover-open"), number]
  .map((element) => element.getBoundingClientRect().toJSON())"""


def opened(page: Page) -> Locator:
    """Return the popovers that are open."""
    return page.locator(".fig-how:popover-open")


@pytest.fixture
def reader(either: Page, site: str) -> Page:
    """The page on pipeline schedules, read with and without JavaScript."""
    either.goto(f"{site}{PIPELINE}")
    return either


def test_click_shows_formula_substitution_and_source(reader: Page) -> None:
    reader.locator(".fig-value", has_text=NUMBER).first.click()
    box = opened(reader)
    assert box.count() == 1
    formula, substitution = box.locator("p.fig-math > math[display=block]").all()
    assert "".join((formula.text_content() or "").split()) == "fbubble=P−1M+P−1"
    assert "".join((substitution.text_content() or "").split()) == f"fbubble=4−18+4−1≈{NUMBER}"
    assert formula.locator("mfrac").count() == 1
    source = box.locator("p", has_text="Source: ").inner_text()
    assert source == "Source: Huang et al. 2019 (GPipe), §2.3"
    held = box.locator(".fig-held").inner_text()
    assert held.startswith(
        "Held by tests/formulas/test_points.py::test_value_at_point_is_the_catalogues "
        "(1e-8 relative) and tests/"
    )
    call = box.locator("p:not(.fig-held) > code").inner_text()
    assert call == "bubble_fraction(stages=4, microbatches=8)"


def test_keyboard_opens_and_escape_closes(reader: Page) -> None:
    number = reader.locator(".fig-value", has_text=NUMBER).first
    for key in ("Enter", "Space"):
        number.focus()
        reader.keyboard.press(key)
        assert opened(reader).count() == 1
        reader.keyboard.press("Escape")
        assert opened(reader).count() == 0
        assert number.evaluate("(e) => e === document.activeElement"), (
            "the keyboard's place is kept"
        )


def test_another_number_and_the_page_close_it(reader: Page) -> None:
    first, second = (reader.locator(".fig-value").nth(n) for n in (0, 1))
    first.click()
    reader.mouse.click(4, 400)
    assert opened(reader).count() == 0
    first.click()
    second.focus()
    reader.keyboard.press("Enter")
    assert opened(reader).count() == 1
    assert opened(reader).get_attribute("id") == second.get_attribute("popovertarget")


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844), (320, 480)])
def test_derivation_opens_at_its_number_and_inside_the_window(
    page: Page, site: str, width: int, height: int
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{site}{PIPELINE}")
    for number in page.locator(".fig-value").all()[:8]:
        number.scroll_into_view_if_needed()
        # A tall figure above it is laid out only now, and moves the number; focus follows it.
        drawn(page)
        number.focus()
        page.keyboard.press("Enter")
        drawn(page)
        box, place = number.evaluate(RECTANGLES)
        assert 0 <= box["left"] < box["right"] <= width
        assert 0 <= box["top"] < box["bottom"] <= height
        between = max(place["top"] - box["bottom"], box["top"] - place["bottom"])
        assert 0 <= between <= 24, "next to the number, not over it"
        page.keyboard.press("Escape")


def test_derivation_is_accessible_when_open(
    page: Page, axe: Callable[..., list[str]], site: str
) -> None:
    page.goto(f"{site}{PIPELINE}")
    page.locator(".fig-value", has_text=NUMBER).first.click()
    rules = ("color-contrast", "aria-dialog-name", "scrollable-region-focusable")
    assert axe(page, tags=rules, within=".fig-how:popover-open") == []
