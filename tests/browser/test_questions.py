"""Answers to a page's questions: typed, graded, varied, and the solution without a script."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, Request, expect

from tests.browser.waits import resting

PAGE = "guide/ring-all-reduce/"
SOLVED = "Worked problem: 7 billion BF16 gradients"
ASKED = "at full bandwidth, without latency"


def field(page: Page, site: str) -> Locator:
    page.goto(f"{site}/{PAGE}")
    return page.locator("form.fig-ask").filter(has_text=ASKED)


@pytest.mark.parametrize("width", [390, 1366])
def test_an_answer_is_graded_by_the_keyboard_and_the_slip_is_named(
    page: Page, site: str, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    form = field(page, site)
    answer = form.get_by_label("How long does the all-reduce take")
    verdict = form.get_by_role("status")
    for typed, words in [
        ("27.2 ms", "both directions of the link"),
        ("54", "Please answer with a time, such as 43 ms"),
        ("1 ms", "the right answer is 54"),
        ("54 ms", "Right: 54.4 ms. T_ring = "),
    ]:
        answer.fill(typed)
        answer.press("Enter")
        expect(verdict).to_contain_text(words)
    expect(answer).to_have_attribute("aria-invalid", "false")
    box = form.bounding_box()
    assert box
    assert box["x"] + box["width"] <= width


def test_other_numbers_have_another_answer_and_the_field_keeps_the_focus(
    page: Page, site: str
) -> None:
    form = field(page, site)
    form.get_by_role("button", name="Other numbers").press("Enter")
    expect(form.locator("em")).to_contain_text(re.compile(r"Now with .*: \d"))
    answer = form.locator("input")
    expect(answer).to_be_focused()
    answer.fill("54.4 ms")
    answer.press("Enter")
    expect(form.get_by_role("status")).to_contain_text("Not quite")
    assert page.evaluate("Object.keys(localStorage).length + document.cookie.length") == 0


def test_a_page_fetches_no_script_for_its_questions_before_a_reader_enters_one(
    page: Page, site: str, asked: list[Request]
) -> None:
    with resting(page):
        form = field(page, site)
    script = re.compile(r"/answers\.js$")
    assert not [one.url for one in asked if script.search(one.url)]
    with page.expect_response(script):
        form.locator("input").focus()


def test_without_a_script_and_on_paper_the_solution_stands_in_its_fold_alone(
    chromium: Browser, page: Page, site: str
) -> None:
    context = chromium.new_context(java_script_enabled=False)
    plain = context.new_page()
    expect(field(plain, site)).to_be_hidden()
    fold = plain.locator("details.question").filter(has_text=SOLVED)
    fold.locator("summary").click()
    expect(fold).to_contain_text("54.4 ms")
    context.close()
    form = field(page, site)
    page.emulate_media(media="print")
    expect(form).to_be_hidden()
    page.emulate_media(media="screen")


def test_on_a_readers_cluster_an_answer_is_graded_by_what_the_fold_shows(
    page: Page, site: str
) -> None:
    page.goto(f"{site}/journey/two-replicas/?m.model=llama-3-70b&m.nodes=16")
    expect(page.locator(".job-now")).to_contain_text("This page follows your cluster")
    fold = page.locator("details.question").first
    fold.locator("summary").click()
    form = page.locator("form.fig-ask").first
    expect(form.locator("label")).to_contain_text("On your cluster")
    shown = fold.locator("data").first
    mine, reference = shown.text_content(), shown.get_attribute("value")
    answer, verdict = form.locator("input"), form.get_by_role("status")
    for typed, words in [(f"{float(reference or 0) / 1e9:.3f} GB", "Not quite"), (mine, "Right: ")]:
        answer.fill(str(typed))
        answer.press("Enter")
        expect(verdict).to_contain_text(words)
    form.get_by_role("button", name="Other numbers").click()
    expect(form.locator("em")).to_contain_text("Now with")
    answer.fill(str(mine))
    answer.press("Enter")
    expect(verdict).to_contain_text("Not quite")
    page.get_by_role("button", name="Back to the reference machine").click()
    expect(form.locator("label")).not_to_contain_text("On your cluster")
    expect(form.locator(".fig-verdict")).to_be_empty()
