"""A page of the journey on a reader's cluster: recomputed in place, and reset by one press."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect

from figgen.equations.call_data import all_hold, followed
from figgen.errors import InputError
from figgen.units import format_quantity
from figgen.values import evaluated_or_nan
from tests.browser.waits import drawn, resting
from tests.yours import lookups

RECORD = {
    "m.model": "llama-3-405b", "m.chip": "b200-sxm-hgx", "m.nodes": "128", "m.gpus": "8",
    "m.nic": "ib-xdr", "m.global_batch": "2048",
}  # fmt: skip
YOURS: dict[str, Any] = {
    "model": "llama-3-405b", "accelerator": "b200-sxm-hgx", "nodes": 128, "gpus_per_node": 8,
    "nic": "ib-xdr", "global_batch": 2048,
}  # fmt: skip
QUERY = urlencode(RECORD)
PAGES = {
    1: "one-gpu", 2: "two-replicas", 3: "hiding", 4: "sharding", 5: "leaving-the-node",
    6: "splitting-the-layer", 7: "splitting-the-depth", 8: "long-sequences", 9: "experts",
    10: "all-at-once", 11: "when-it-does-not",
}  # fmt: skip
NUMBERS = """() => [...document.querySelectorAll("article data[data-follows]")]
  .filter((one) => !one.closest("figure"))
  .map((one) => [one.dataset.follows, one.dataset.spec, one.textContent,
    one.classList.contains("is-yours")])"""
TEXT = """() => [...document.querySelectorAll("article :is(p, li, figcaption, svg)")]
  .filter((one) => !one.closest(".job-yours, .job-now, .job-line, [data-film]"))
  .map((one) => one.textContent).join(" ").replace(/\\s+/g, " ")"""


def reach(page: Page, site: str, name: str, query: str = QUERY) -> None:
    """Open a page of the journey for a cluster and wait until it is recomputed."""
    page.goto(f"{site}/journey/{name}/?{query}")
    expect(page.locator(".job-now")).to_contain_text("This page follows your cluster")


@pytest.mark.parametrize("number", PAGES)
def test_every_number_that_follows_is_what_python_computes(
    page: Page, site: str, number: int
) -> None:
    reach(page, site, PAGES[number])
    names = dict(lookups(number, YOURS))

    def look_up(name: str, given: list[Any], field: str) -> float:
        return float(getattr(names[name](*given), field))

    found = page.evaluate(NUMBERS)
    assert len(found) > 5
    for call, spec, text, mine in found:
        unit, _, shown = spec.partition(" ")
        if not mine:  # a number that this cluster does not have
            with pytest.raises(InputError):
                followed(json.loads(call), evaluated_or_nan, look_up)
            continue
        value = followed(json.loads(call), evaluated_or_nan, look_up)
        assert text == format_quantity(value, unit, shown), call
    for claim in page.locator(".fig-claim").all():
        condition = str(claim.get_attribute("data-holds"))
        turned = "is-turned" in str(claim.get_attribute("class"))
        assert turned is not all_hold(json.loads(condition), evaluated_or_nan, look_up), condition


def test_a_page_that_is_still_read_when_its_script_comes_is_recomputed_whole(
    page: Page, site: str
) -> None:
    """Parts that arrived later kept the reference values; here the parser waits for a script
    halfway."""
    late: list[Route] = []

    def interrupted(route: Route) -> None:
        answer = route.fetch()
        body = answer.text().replace("<h2", '<script src="/late.js"></script><h2', 1)
        route.fulfill(response=answer, body=body)

    page.route("**/journey/hiding/?*", interrupted)
    page.route("**/late.js", lambda route: late.append(route))
    with page.expect_response("**/tools/journey.js"), page.expect_response("**/journey.css"):
        page.goto(f"{site}/journey/{PAGES[3]}/?{QUERY}", wait_until="commit")
    drawn(page)
    late[0].fulfill(body="", content_type="text/javascript")
    expect(page.locator(".job-now")).to_contain_text("This page follows your cluster")
    whole = page.evaluate(NUMBERS)
    page.unroute_all()
    reach(page, site, PAGES[3])
    assert whole == page.evaluate(NUMBERS)


@pytest.mark.parametrize("number", [1, 6])
def test_one_press_shows_the_reference_machine_again(page: Page, site: str, number: int) -> None:
    page.goto(f"{site}/journey/{PAGES[number]}/")
    before = page.evaluate(TEXT)
    page.locator(".job-yours summary").click()
    page.locator(".yours-form [name=nodes]").fill("16")
    page.locator(".yours-form [name=nodes]").press("Tab")
    page.locator(".yours-form [name=chip]").select_option("h200-sxm-141gb")
    expect(page.locator(".job-now")).to_be_visible()
    expect(page.locator(".job-words")).to_contain_text("× H200")
    assert dict(parse_qsl(urlsplit(page.url).query))["m.chip"] == "h200-sxm-141gb"
    assert page.locator("figure .fig-yours").count() > 0
    assert page.evaluate(TEXT) != before
    page.get_by_role("button", name="Back to the reference machine").click()
    expect(page.locator(".job-now")).to_be_hidden()
    page.locator(".job-yours summary").click()
    assert page.evaluate(TEXT) == before
    assert urlsplit(page.url).query == ""


def test_nothing_is_loaded_before_a_reader_asks(
    page: Page, site: str, asked: list[Request]
) -> None:
    with resting(page):
        page.goto(f"{site}/journey/splitting-the-layer/")
    assert not [one.url for one in asked if re.search(r"/journey\.(js|css)$|catalog", one.url)]
    page.locator(".job-yours summary").press("Enter")
    expect(page.locator(".yours-form [name=chip]")).to_be_visible()
    assert [one.url for one in asked if one.url.endswith("/journey.js")]


def test_a_slider_keeps_the_focus_and_the_next_page_takes_the_job_along(
    page: Page, site: str
) -> None:
    reach(page, site, "splitting-the-layer")
    number = page.locator("article p button > data.is-yours").first
    number.click()
    how = page.locator(".fig-how:popover-open")
    expect(how).to_contain_text(f"{number.text_content()}, on your cluster")
    assert "reference machine" not in how.inner_text()
    page.keyboard.press("Escape")
    page.locator(".job-yours summary").press("Enter")
    page.locator("[name=slider-tp]").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[name=slider-tp]")).to_be_focused()
    expect(page.locator("#fig-journey-scoreboard")).to_contain_text("TP 4")
    page.locator("article a[href*='one-gpu'], nav a[href*='one-gpu']").first.click()
    page.wait_for_url("**/journey/one-gpu/?*")
    expect(page.locator(".job-now")).to_contain_text("follows your cluster")
    assert dict(parse_qsl(urlsplit(page.url).query))["m.tp"] == "4"


def test_what_cannot_be_laid_out_or_read_is_told(page: Page, site: str) -> None:
    reach(page, site, "splitting-the-layer", f"{QUERY}&m.dtype=none")
    expect(page.locator(".job-now")).to_contain_text("cannot use none")
    reach(page, site, "splitting-the-layer", f"{QUERY}&m.software=nosuch+1.0")
    expect(page.locator(".job-now")).to_contain_text("Software: this page cannot use nosuch 1.0")
    assert page.locator(".is-yours").count() > 20
    reach(page, site, "splitting-the-layer", "m.nodes=3&m.gpus=5")
    assert page.locator(".is-yours").count() > 20


def test_a_chip_that_no_catalog_has_is_described_by_its_numbers(page: Page, site: str) -> None:
    own = "m.chip=own&m.peak=165.2&m.hbm=24&m.bw=1008&m.up=32&m.nodes=1&m.gpus=1"
    reach(page, site, "one-gpu", own)
    page.locator(".job-yours summary").click()
    expect(page.locator("[name=hbm]")).to_have_value("24")
    expect(page.locator(".is-turned").first).to_contain_text("24 GB")


def test_without_a_script_the_reference_stands_whole(chromium: Browser, site: str) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}/journey/one-gpu/?{QUERY}")
    text = page.locator("article").inner_text()
    assert "Nothing yet: the model fits." in text
    assert "your model doesn't fit" not in text
    page.locator(".job-yours summary").click()
    expect(page.locator(".yours-place")).to_have_text(
        "Without scripts, this page shows the reference machine."
    )
    context.close()
