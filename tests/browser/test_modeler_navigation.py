"""The modeler's page, reached from and left for other pages, in both palettes and narrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from figgen.models.step.step import carried_out
from figgen.scenarios.options.resolve import training_step
from tests.browser.modeler import PATH, answered, card, choose, settled
from tests.browser.waits import addressed, resized


def test_page_is_reached_from_the_rank_map_with_its_layout(page: Page, site: str) -> None:
    """The change loads no new page, so nothing that one tool loads may be missing from
    the other."""
    page.goto(f"{site}/tools/rank-map/?nodes=4&tp=4&pp=2")
    page.locator(".job-line a[href*='modeler/?'][href*='tp=4']").click()
    page.wait_for_function(f"() => location.pathname.endsWith('{PATH}')")
    answered(page)
    sizes = {name: page.locator(f"[name={name}]").input_value() for name in ("nodes", "tp", "pp")}
    assert sizes == {"nodes": "4", "tp": "4", "pp": "2"}
    columns = page.locator(".modeler-columns")
    assert columns.evaluate("(box) => getComputedStyle(box).display") == "grid"
    choose(page, "model", "llama-3-8b")
    choose(page, "zero", "2")
    addressed(page, model="llama-3-8b", zero=2)
    page.locator(".job-line a[href*='rank-map/']").click()
    page.wait_for_function("() => location.pathname.endsWith('/tools/rank-map/')")
    tp = page.locator("#rank-map [name=tp]")
    tp.wait_for()
    assert tp.input_value() == "4"
    tp.fill("2")
    page.locator(".job-line a[href*='modeler'][href*='tp=2']").click()
    page.wait_for_function(f"() => location.pathname.endsWith('{PATH}')")
    answered(page)
    names = ("nodes", "tp", "pp", "model", "zero")
    back = {name: page.locator(f"[name={name}]").input_value() for name in names}
    assert back == {"nodes": "4", "tp": "2", "pp": "2", "model": "llama-3-8b", "zero": "2"}


def test_page_survives_navigation_palette_and_a_narrow_window(
    open_modeler: Callable[..., Page],
) -> None:
    page = open_modeler("?preset=llama-3-405b-8k-16384", answered)
    before = card(page, 0)
    page.locator(".md-footer__link--prev, .md-footer__link").first.click()
    page.wait_for_function(f"() => !location.pathname.endsWith('{PATH}')")
    page.locator("#modeler").wait_for(state="detached")
    page.go_back()
    answered(page)
    assert card(page, 0) == before
    assert page.locator("#modeler .tool-form").count() == 1
    page.locator("[data-md-component=palette] label:visible").click()
    page.locator("body[data-md-color-scheme=slate]").wait_for()
    assert (
        page.locator("#modeler svg").first.evaluate(
            "(svg) => getComputedStyle(svg.querySelector('text')).fill"
        )
        != "rgb(31, 37, 41)"
    )
    resized(page, 390, 844)
    page.wait_for_function(
        "() => document.querySelector('#modeler .modeler-svg').viewBox.baseVal.width < 390"
    )
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    sizes = page.locator("#modeler .modeler-svg text").evaluate_all(
        "(texts) => texts.map((text) => parseFloat(getComputedStyle(text).fontSize)"
        " * text.getScreenCTM().a)"
    )
    assert min(sizes) >= 11
    small = page.locator("#modeler :is(button, select, input, summary):visible").evaluate_all(
        "(all) => all.map((one) => one.type === 'checkbox' ? one.closest('label') : one)"
        ".filter((one) => one.getBoundingClientRect().height < 23.5).map((one) => one.outerHTML)"
    )
    assert small == []


def test_an_address_that_names_a_section_shows_it_below_the_tool(page: Page, site: str) -> None:
    """On the second visit everything is cached, so the browser scrolls before the tool is built."""
    for _ in range(2):
        page.goto("about:blank")
        page.goto(f"{site}{PATH}#what-is-computed")
        answered(page)
        settled(page)
        page.wait_for_function(
            """() => {
              const top = document.getElementById("what-is-computed").getBoundingClientRect().top;
              return top > 40 && top < innerHeight / 2;
            }"""
        )
    page.goto("about:blank")
    page.goto(f"{site}{PATH}#100%")  # no name of anything, and no text that could be decoded
    answered(page)


@pytest.mark.parametrize("chunks", [1, 2])
def test_the_schedule_lab_opens_with_the_times_of_the_modeler(
    page: Page, site: str, chunks: int
) -> None:
    job: dict[str, Any] = {"model": "llama-3-8b", "nodes": 2, "gpus_per_node": 8, "tp": 2, "pp": 4}
    job |= {"microbatches": 8, "sequence": 4096}
    query = "model=llama-3-8b&nodes=2&tp=2&pp=4&microbatches=8&sequence=4096"
    if chunks > 1:
        job |= {"schedule": "interleaved-1f1b", "chunks": chunks}
        query += f"&schedule=interleaved-1f1b&chunks={chunks}"
    page.goto(f"{site}/tools/modeler/?{query}")
    settled(page)
    page.locator("[data-lab]").first.click()
    answer = page.locator(".lab-table tbody td").nth(1)  # after the chunks
    expect(answer).to_be_visible()
    found = training_step(**job)
    trace, _, _ = carried_out(found.setup, found.stages)
    number, unit = answer.inner_text().split()
    seconds = float(number.replace(",", "")) * {"ms": 1e-3, "s": 1.0}[unit]
    # Of unequal stages the lab keeps the whole time and the mean shares of the passes.
    assert seconds == pytest.approx(trace.makespan, rel=0.01)
    assert "m.model=llama-3-8b" in page.url
