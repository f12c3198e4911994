"""The line above every tool: one job, in words and in the address, which goes along to
other tools."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_presses import PLACES
from tests.browser.waits import Held, drawn

TOOLS = (
    "modeler", "planner", "rank-map", "schedules", "profile", "converter", "measure", "verdict",
)  # fmt: skip
JOB = {
    "model": "llama-3-70b", "nodes": "16", "chip": "h200-sxm-141gb", "tp": "8", "pp": "4",
    "sequence": "8192", "global_batch": "512", "zero": "1",
}  # fmt: skip
QUERY = "&".join(f"{key}={value}" for key, value in JOB.items())
SAID = "llama-3-70b · 128 × H200 · 512 × 8,192 tokens · megatron-bridge 26.04"


def go(page: Page, tool: str) -> None:
    """Press the line's link and wait until the other tool's line shows the job."""
    page.locator(f".job-line a[data-tool={tool}]").click()
    page.wait_for_url(f"**/tools/{tool}/**")
    expect(page.locator(".job-line [aria-current]")).to_have_attribute("data-tool", tool)
    expect(page.locator(".job-words")).to_contain_text("Job")


def query_of(page: Page) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(page.url).query))


def test_a_job_goes_through_every_tool_and_comes_back(page: Page, site: str) -> None:
    page.goto(f"{site}/tools/modeler/?{QUERY}")
    words = page.locator(".job-words span")
    expect(words).to_have_text(SAID)
    for tool in ("rank-map", "schedules", "converter", "profile", "measure", "verdict"):
        go(page, tool)
        expect(words).to_have_text(SAID)
        expect(page).to_have_title(re.compile(f"^{SAID} - [A-Z]"))  # links to two jobs differ
    go(page, "modeler")
    page.locator("#modeler .modeler-card").first.wait_for()
    expect(page.locator("[name=global_batch]")).to_have_value("512")
    fields = {key: page.locator(f"[name={key}]").input_value() for key in JOB if key != "model"}
    assert fields == {key: value for key, value in JOB.items() if key != "model"}
    expect(page.locator("#modeler .tool-message")).to_have_count(0)


def test_the_planner_tries_every_layout_and_hands_on_the_best(page: Page, site: str) -> None:
    page.goto(f"{site}/tools/modeler/?model=llama-3-8b&nodes=1&tp=4&global_batch=16&sequence=2048")
    expect(page.locator(".job-words")).to_contain_text("16 × 2,048 tokens")
    go(page, "planner")
    assert "tp" not in query_of(page)
    page.locator("#planner .plan-best").wait_for()
    name = page.locator("#planner .plan-best strong").inner_text()
    go(page, "modeler")
    page.locator("#modeler .modeler-card").first.wait_for()
    for axis in ("tp", "pp"):
        size = page.locator(f"[name={axis}]").input_value()
        assert size == "1" or f"{axis.upper()} {size}" in name.replace("\u00a0", " ")
    expect(page.locator("[name=global_batch]")).to_have_value("16")


def test_what_a_tool_changes_goes_into_the_job(page: Page, site: str) -> None:
    page.goto(f"{site}/tools/modeler/?{QUERY}")
    expect(page.locator(".job-words span")).to_have_text(SAID)
    go(page, "schedules")
    page.locator("#schedules [name=microbatches]").fill("64")
    expect(page.locator(".job-words")).to_contain_text("256 × 8,192 tokens")
    go(page, "rank-map")
    page.locator("#rank-map [name=nodes]").fill("32")
    expect(page.locator(".job-words")).to_contain_text("256 × H200 · 256 × 8,192 tokens")
    go(page, "modeler")
    page.locator("#modeler .modeler-card").first.wait_for()
    expect(page.locator("[name=nodes]")).to_have_value("32")
    expect(page.locator("[name=global_batch]")).to_have_value("256")


def test_the_profile_reader_compares_with_the_job(page: Page, site: str) -> None:
    page.goto(f"{site}/tools/profile/?m.model=llama-3-8b&m.nodes=1&m.gpus=8&m.tp=2")
    page.get_by_role("button", name="Read a recorded example").click()
    expect(page.locator("[name=address]")).to_have_value("?model=llama-3-8b&nodes=1&gpus=8&tp=2")
    page.locator(".profile-beside table").wait_for()


@pytest.mark.parametrize("width", [1366, 390])
@pytest.mark.parametrize("tool", ["converter", "measure"])
def test_the_line_moves_nothing_when_its_script_comes(
    page: Page, site: str, tool: str, width: int
) -> None:
    late = Held(page, "**/job_line.js")
    page.set_viewport_size({"width": width, "height": 900})
    query = "&".join(f"m.{key}={value}" for key, value in JOB.items())
    page.goto(f"{site}/tools/{tool}/?{query}", wait_until="domcontentloaded")
    page.wait_for_function("() => !document.querySelector('.tool-wait')")
    drawn(page)
    before = page.evaluate(PLACES)
    late.come()
    expect(page.locator(".job-words")).to_contain_text("128 × H200")
    assert page.evaluate(PLACES) == before


def test_without_a_script_the_links_open_the_tools(chromium: Browser, site: str) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    for path in ("/tools/verdict/", "/journey/sharding/"):
        page.goto(f"{site}{path}")
        links = page.locator(".job-line a")
        found = [urljoin(page.url, str(one.get_attribute("href"))) for one in links.all()]
        journey = [] if "/journey/" in path else [f"{site}/journey/one-gpu/"]
        assert found == [f"{site}/tools/{tool}/" for tool in TOOLS] + journey
        links.nth(1).click()
        page.wait_for_url("**/tools/planner/")
    context.close()


def test_the_journey_opens_for_the_job_of_a_tool(page: Page, site: str) -> None:
    query = "&".join(f"m.{key}={value}" for key, value in JOB.items())
    page.goto(f"{site}/tools/verdict/?{query}")
    expect(page.locator(".job-words")).to_contain_text("128 × H200")
    page.locator(".job-line").get_by_role("link", name="Journey").click()
    expect(page.locator(".job-now")).to_contain_text("This page follows your cluster")
    expect(page.locator(".job-words")).to_contain_text("H200")


def test_a_page_of_the_journey_opens_its_job(page: Page, site: str) -> None:
    page.goto(f"{site}/journey/splitting-the-depth/")
    expect(page).not_to_have_title(re.compile(" × "))
    expect(page.locator(".job-words")).to_contain_text("llama-3-405b · 512 GPUs")
    go(page, "modeler")
    page.locator("#modeler .modeler-card").first.wait_for()
    expect(page.locator("[name=pp]")).to_have_value("16")
    expect(page.locator("[name=global_batch]")).to_have_value("1024")
