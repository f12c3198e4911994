"""The schedule lab in a real browser, compared with the command line and the models."""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import shlex
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from figgen.__main__ import main
from figgen.models.pipeline.schedule_words import CarriedOut, held_words, schedules_sentence
from figgen.models.pipeline.schedule_work import carried_out, peak_held, stage_shares
from figgen.models.pipeline.schedules import SCHEDULES, build
from figgen.models.pipeline.trace import Durations
from figgen.quantity_shown import format_number, shown
from tests.browser.engine import Ask
from tests.browser.modeler import printed, same

SUITES = "lab_suites.js"
PATH = "/tools/schedules/"


def said_by(command: str) -> str:
    """Return what the command line prints for `command`, either an answer or an error."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        main(shlex.split(command)[1:])
    return said.getvalue()


def random_query(rng: random.Random) -> dict[str, Any]:
    """Return sizes and times of any schedule, including indivisible microbatches and unequal
    stages."""
    name = rng.choice(list(SCHEDULES))
    stages = rng.choice((1, 2, 3, 4, 4, 6, 8))
    query: dict[str, Any] = {
        "a": name,
        "stages": stages,
        "microbatches": rng.choice((1, 3, 5, 7, 8, 10, 13, 16, 18, 24)),
        "memory": rng.choice((1, 0.5, 2.75)),
    }
    for key in ("forward", "inputs", "weights"):
        if rng.random() < 0.7:
            query[key] = rng.choice((1, 2, 3.5, 10, 12.25, 0.3))
    if rng.random() < 0.5:
        query["message"] = rng.choice((0.5, 1, 2.25))
    if rng.random() < 0.4 and name in ("looped-bfs", "interleaved-1f1b", "zb1p"):
        query["chunks"] = rng.choice((1, 2, 3, 4))
    if rng.random() < 0.4:
        count = stages * query.get("chunks", 1) if rng.random() < 0.3 else stages
        query["layers"] = ",".join(str(rng.choice((0, 4, 6, 7, 8, 8.5))) for _ in range(count))
    if name.startswith("dualpipe") and rng.random() < 0.4:
        query["pair"] = rng.choice((20, 40, 60))
    return query


def test_lab_answers_as_the_command_line_for_200_random_configurations(ask: Ask) -> None:
    rng = random.Random(12)
    queries = [random_query(rng) for _ in range(200)]
    shown = ask("answered", [urlencode(query) for query in queries])
    refused = 0
    for query, got in zip(queries, shown, strict=True):
        assert got["problems"] == []
        assert got["stays"], query
        if "error" in got:
            refused += 1
            assert got["error"] in said_by(got["command"]), query
            continue
        assert same(got["answer"], printed(f"{got['command']} --json")), query
    assert {query["a"] for query in queries} == set(SCHEDULES)
    assert 20 < refused < 70


def test_files_are_those_of_the_command_line(ask: Ask) -> None:
    cases = itertools.product(SCHEDULES, ((2, 4), (4, 11)))
    for name, (stages, microbatches) in cases:
        query = {"a": name, "stages": stages, "microbatches": microbatches, "message": 0.1}
        [got] = ask("answered", [urlencode(query)])
        if "error" in got:
            continue
        for form in ("csv", "torch"):
            wanted = said_by(f"{got['command']} --as {form}")
            shown = got[form]["error"] if isinstance(got[form], dict) else got[form]
            assert shown.strip() in wanted
        assert got["text"].strip() in said_by(got["command"])


def lab(page: Page, site: str, query: str = "") -> Page:
    page.goto(f"{site}{PATH}{query}")
    page.locator("#schedules .lab-svg rect").first.wait_for()
    return page


def sentence(runs: Sequence[tuple[str, str, int | None]]) -> str:
    """Return the lab's first answer about schedules of the example, in the command line's words."""
    times = Durations(forward=10, backward_input=10, backward_weight=10)
    told = []
    for title, name, chunks in runs:
        schedule = build(name, stages=4, microbatches=8, chunks=chunks)
        trace = carried_out(schedule, times)
        shares = [1e9 * share for share in stage_shares(schedule.placement)]
        peaks = peak_held(trace.placed, shares)
        held = held_words(f"{shown(max(peaks), 'B')} of activations", peaks.index(max(peaks)))
        told.append(CarriedOut(title=title, trace=trace, held=held))
    return schedules_sentence(told, lambda time: f"{format_number(time, 4)}\u00a0ms")


def test_page_is_worked_by_keys_and_by_hand(
    page: Page, site: str, axe: Callable[..., list[str]]
) -> None:
    page.set_viewport_size({"width": 1366, "height": 900})
    lab(page, site, "?path=1")
    table = page.get_by_role("group", name="The schedules compared")
    expect(table).to_contain_text("1F1B1330\u00a0ms–27.3%4\u00a0GB (rank 0)4")
    assert axe(page) == []
    runs = [("1F1B", "1f1b", None), ("interleaved 1F1B", "interleaved-1f1b", 2), ("ZBV", "zbv", 2)]
    assert page.locator(".tool-sentence").inner_text() == sentence(runs)
    lanes = page.locator(".lab-scroll")
    lanes.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator(".lab-told")).to_contain_text(
        "1F1B: 2F1, forward of microbatch 1 on stage 2, rank 2, from 30\u00a0ms to 40\u00a0ms. "
        "The activation of 1F1 from rank 1 arrived at 30\u00a0ms. The rank was busy until"
    )
    # It stands at its slot, below it: rank 2's lane is the third.
    # The outline is drawn anew in the frame after the key, so an element found before is gone then.
    page.evaluate("() => new Promise(requestAnimationFrame)")
    slot, told = (page.locator(of).bounding_box() for of in (".lab-chosen", ".lab-told"))
    assert slot
    assert told
    assert 0 <= told["y"] - (slot["y"] + slot["height"]) < 16
    assert abs(told["x"] - slot["x"]) < 16
    page.keyboard.press("Escape")
    expect(page.locator(".lab-told")).to_be_hidden()
    page.get_by_role("button", name="Start", exact=True).click()
    for _ in range(2):
        page.get_by_role("button", name="One event on").press("Enter")
    expect(page.locator(".lab-moment")).to_contain_text("1F1B: 2 of 4 ranks work")
    page.locator("[name=action]").fill("1F0")
    page.keyboard.press("Enter")
    answer = page.locator(".lab-answer")
    expect(answer).to_contain_text("1F0 waits for the activation of 0F0 on rank 0, which has not")
    page.get_by_role("button", name="0F0, forward", exact=True).click()
    expect(answer).to_contain_text("0F0 runs on rank 0 from 0\u00a0ms to 10\u00a0ms.")
    page.get_by_role("button", name="Finish as the schedule would").click()
    expect(answer).to_contain_text("Every slot is placed: 330\u00a0ms, as long as 1F1B.")
    assert axe(page) == []
    page.wait_for_function("() => location.search.includes('moves=0F0.')")
    page.reload()
    expect(page.locator(".lab-score")).to_contain_text("All placed")
    page.locator("[name=layers]").fill("8,8")
    expect(page.locator(".lab-messages")).to_contain_text(
        "1F1B: number of layers: expected 4, one for each rank or each virtual stage, got 2."
    )
    # No other number of stages goes with two, and what does not mend it is not offered.
    expect(page.locator(".lab-messages button")).to_have_count(0)
    page.locator("[name=layers]").fill("")
    page.locator("[name=stages]").fill("100")
    page.get_by_role("button", name="Take 64").click()
    expect(table).to_contain_text("2,130\u00a0ms")


# Boxes of the tool that scroll sideways: how many, and those that do not show it.
SCROLLED = """() => {
  const wide = [...document.querySelectorAll("#schedules *")].filter((box) =>
    getComputedStyle(box).overflowX === "auto" && box.scrollWidth > box.clientWidth + 1);
  const shaded = (box) => getComputedStyle(box).backgroundImage.includes("gradient");
  return [wide.length, wide.filter((box) => !shaded(box)).map((box) => box.className)];
}"""


def test_hostile_addresses_are_refused_in_words_and_nothing_moves_unasked(
    page: Page, unscripted: Page, site: str
) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": 390, "height": 844})
    lab(
        page,
        site,
        "?a=1f1p&stages=<img src=x>&b=dualpipe&c=dualpipe&microbatches=6&moves=0F0.<b>&layers=1e9",
    )
    told = page.locator(".lab-messages")
    expect(told).to_contain_text("a, got '1f1p' (did you mean 1f1b?)")
    expect(told).to_contain_text("stages: expected a whole number from 1 to 64, got '<img src=x>'")
    expect(told).to_contain_text("layers: expected numbers with commas between")
    expect(told).to_contain_text("expected an even number ≥ 2 × stages = 8, got 6")
    expect(page.locator(".lab-answer")).to_contain_text("<b> of the address: cannot read action")
    assert page.locator("#schedules :is(img, b)").count() == 0
    assert page.get_by_role("button", name="Play", exact=True).count() == 0
    page.get_by_role("button", name="4 stages, 8 microbatches").click()
    expect(told).not_to_contain_text("even number")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    scrolled, plain = page.evaluate(SCROLLED)
    assert scrolled >= 2
    assert plain == [], "what goes on beyond an edge is shaded there"
    unscripted.goto(f"{site}{PATH}")
    expect(unscripted.locator("#fig-schedules-compared svg").first).to_be_visible()
    expect(unscripted.locator("#fig-schedules-all")).to_contain_text("DualPipeV")
    expect(unscripted.locator(".tool-wait")).to_be_hidden()


def test_a_wider_picture_names_the_chunk_of_every_slot(page: Page, site: str) -> None:
    page.set_viewport_size({"width": 1366, "height": 900})
    page.goto(f"{site}{PATH}?a=interleaved-1f1b&b=&c=")
    picture = page.locator(".lab-svg")
    labels = picture.locator("text[text-anchor=middle]")
    expect(labels.first).to_have_text("0")
    width = picture.evaluate("(svg) => svg.getBoundingClientRect().width")
    page.locator("[data-zoom='2']").click()
    expect(labels.first).to_have_text("0₁")
    texts = labels.all_text_contents()
    assert {text[-1] for text in texts if len(text) == 2} == {"₁", "₂"}
    assert picture.evaluate("(svg) => svg.getBoundingClientRect().width") == 2 * width
