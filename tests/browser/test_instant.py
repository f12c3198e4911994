"""Links that load no new page, clicked before the previous page has loaded."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.paths import EXPLORED, LIGHT, PIPELINE
from tests.browser.rank_map import MAP
from tests.browser.waits import Held, at_rest, resting

SHEET = "**/rank-map.css*"
FOLLOW = """(path) => [...document.querySelectorAll("article a, .md-nav a")]
  .find(({ pathname }) => pathname.endsWith(path)).click()"""


def test_who_follows_another_link_while_a_page_comes_ends_where_that_one_leads(
    instant: Page, site: str
) -> None:
    """The second address was set before its page came, and the page still shown had links relative
    to it."""
    page = instant
    at_rest(page, f"{site}{LIGHT}")
    held = Held(page, SHEET)
    with page.expect_request(SHEET):
        page.evaluate(FOLLOW, MAP)
    assert page.evaluate("location.pathname") == LIGHT
    page.evaluate(FOLLOW, EXPLORED)
    page.wait_for_url(f"**{EXPLORED}")
    expect(page.locator("h1")).to_have_text(re.compile("^Failures"))
    with resting(page):
        held.come()
    expect(page.locator("h1")).to_have_text(re.compile("^Failures"))
    assert page.locator("#rank-map").count() == 0
    assert page.evaluate("location.pathname") == EXPLORED


def test_back_to_the_page_that_is_shown_ends_the_way_to_another(instant: Page, site: str) -> None:
    page = instant
    at_rest(page, f"{site}{EXPLORED}")
    page.evaluate(FOLLOW, LIGHT)
    page.wait_for_url(f"**{LIGHT}")
    held = Held(page, f"**{EXPLORED}")
    with page.expect_request(f"**{EXPLORED}"):
        page.evaluate("history.back()")
    page.evaluate("history.forward()")
    page.wait_for_url(f"**{LIGHT}")
    with page.expect_response(f"**{EXPLORED}"):
        held.come()
    page.evaluate("fetch(location.href).then((answer) => answer.text())")  # comes after it
    assert page.locator("h1").inner_text().startswith("Efficiency")


# Follows a link of the page to a section of another one.
SECTION = """([path, hash]) => {
  const link = [...document.querySelectorAll("article a")].find((one) => one.pathname === path);
  link.href = path + hash;
  link.click();
}"""
IN_CONTENTS = ".md-sidebar--secondary .md-nav__link--active"
AT_TARGET = """() => {
  const top = document.querySelector("h2:target")?.getBoundingClientRect().top;
  return top > 40 && top < innerHeight / 3 && scrollY > innerHeight;
}"""


def test_a_link_leads_to_the_section_that_it_names_or_to_the_top(instant: Page, site: str) -> None:
    page = instant
    for named in (True, False):
        at_rest(page, f"{site}{LIGHT}")
        page.evaluate("scrollTo(0, 900)")
        # The second is no name of anything, and no text that could be decoded.
        page.evaluate(SECTION, [PIPELINE, "#how-to-choose" if named else "#100%"])
        page.wait_for_url(f"**{PIPELINE}#*")
        expect(page.locator(IN_CONTENTS)).to_have_count(int(named))
        if named:
            page.wait_for_function(AT_TARGET)
        else:
            assert page.evaluate("scrollY") == 0
