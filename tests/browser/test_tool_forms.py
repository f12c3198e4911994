"""What the forms of all tools share: the way to the first field, and times as people write them."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.modeler import unfold
from tests.browser.waits import addressed, drawn, resized

FIRST = {
    "modeler": "model", "planner": "preset", "rank-map": "nodes", "schedules": "a",
    "converter": "collective", "profile": "files", "measure": "",
}  # fmt: skip
"""The first field of every tool's form; that of measured machines has no name."""
PRESSES = ("Tab", "Tab", "Enter")
"""Of the skip links, the second leads to the form."""


@pytest.mark.parametrize("width", [1366, 390])
def test_three_keys_lead_to_the_first_field_of_every_tool(
    page: Page, site: str, width: int
) -> None:
    """A reader with a keyboard pressed Tab 51 times to get to the modeler's nodes."""
    resized(page, width, 900)
    for tool, name in FIRST.items():
        page.goto(f"{site}/tools/{tool}/")
        page.locator("article .tool :is(input, select)").first.wait_for(state="attached")
        for key in PRESSES:
            page.keyboard.press(key)
        focused = page.locator(".tool :is(input, select):focus")
        expect(focused).to_have_count(1)
        expect(focused).to_be_in_viewport()
        assert (focused.get_attribute("name") or "") == name
    page.goto(f"{site}/tools/modeler/")
    page.locator("#modeler [name=nodes]").wait_for()
    for key in (*PRESSES, "Tab"):
        page.keyboard.press(key)
    expect(page.locator("#modeler [name=nodes]")).to_be_focused()


def test_a_page_without_a_form_has_one_skip_link(instant: Page, site: str) -> None:
    instant.goto(f"{site}/tools/modeler/")
    expect(instant.locator(".md-skip")).to_have_count(2)
    instant.locator(".job-line a[data-tool=verdict]").click()
    instant.wait_for_url("**/tools/verdict/**")
    expect(instant.locator("h1")).to_have_text(re.compile("Is my number good"))
    expect(instant.locator(".md-skip")).to_have_count(1)


TIMES = (
    ("modeler/?nodes=4&tp=8", "alpha_up", "0,0034 ms", {"alpha_up": "3.4"}),
    ("planner/?ask=deadline&model=llama-3-8b&nodes=1", "days", "1-12:00:00", {"days": "1.5"}),
    ("planner/?ask=deadline&model=llama-3-8b&nodes=1", "days", "36 h", {"days": "1.5"}),
    ("schedules/", "forward", "1m30s", {"forward": "90000"}),
    ("schedules/", "message", "43,5 ms", {"message": "43.5"}),
    ("converter/", "time", "0:01:30", {"time": "0:01:30"}),
)
WAY = "a time, such as 43.5 ms, 2h30 or 1:30:00"


@pytest.mark.parametrize(("path", "name", "text", "wanted"), TIMES)
def test_the_field_of_a_time_takes_what_people_write(
    page: Page, site: str, path: str, name: str, text: str, wanted: dict[str, str]
) -> None:
    page.goto(f"{site}/tools/{path}")
    field = page.locator(f".tool [name={name}]")
    field.wait_for(state="attached")
    unfold(field)
    field.fill("soon")
    said = "such as 43 ms" if name == "time" else WAY
    expect(page.locator(".tool .tool-message").first).to_contain_text(said)
    field.fill(text)
    addressed(page, **wanted)
    expect(page.locator(".tool .tool-message.is-bad")).to_have_count(0)


def test_a_measured_step_is_typed_as_a_time(page: Page, site: str) -> None:
    page.goto(f"{site}/tools/modeler/?nodes=4&tp=8")
    field = page.locator("#modeler [name=step_time]")
    field.wait_for(state="attached")
    unfold(field)
    shown = []
    for text in ("90", "1m30s", "0:01:30", "1,5 min"):
        field.fill("")
        addressed(page, factor=None)
        field.fill(text)
        page.wait_for_url(re.compile("factor="))
        drawn(page)
        shown.append(re.findall(r"factor=([\d.]+)", page.url))
    assert shown == [shown[0]] * 4
    field.fill("1:30")
    expect(page.locator("#modeler .tool-message")).to_contain_text(WAY)


def test_a_verdict_takes_the_time_of_a_step_as_people_write_it(page: Page, site: str) -> None:
    page.goto(f"{site}/tools/modeler/?model=llama-3-8b&nodes=1&tp=2#is-my-number-good")
    box = page.locator("#is-my-number-good")
    box.locator("textarea").fill("0:01:30")
    box.get_by_role("button", name="Compare").click()
    expect(box).to_contain_text("a step took 1.5 min".replace(" min", "\u00a0min"))
    box.locator("textarea").fill("soon")
    box.get_by_role("button", name="Compare").click()
    expect(box.locator(".tool-message")).to_contain_text("the time of a step, tokens/s or TFLOP/s")


@pytest.mark.parametrize("width", [1366, 390])
def test_the_launch_file_is_one_press_from_the_answer(page: Page, site: str, width: int) -> None:
    resized(page, width, 900)
    page.goto(f"{site}/tools/modeler/?model=llama-3-8b&nodes=1&tp=2")
    link = page.get_by_role("link", name="Write its launch file")
    expect(link).to_be_in_viewport()
    link.click()
    code = page.locator(".tool-write pre")
    expect(code).to_contain_text("torchrun --nnodes 1 --nproc-per-node 8")
    heading = page.locator("#launch")
    expect(heading).to_be_in_viewport()
    answer = page.locator(".modeler-answer").bounding_box()
    place = heading.bounding_box()
    assert answer is not None
    assert place is not None
    assert place["y"] >= answer["y"] + answer["height"], "the answer stays, above the heading"
