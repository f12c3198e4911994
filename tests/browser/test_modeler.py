"""The modeler's page: form, answer, address, files, keyboard, navigation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.browser.test_modeler_model import printed, same

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

PATH = "/tools/modeler/"
QUIET = "() => !document.querySelector('#modeler [aria-busy=true]')"


# Presses every number in turn; those whose line does not have it, without units and spaces.
OPEN_ALL = """async () => {
  const box = document.querySelector("#modeler-how");
  const digits = (text) => text.replace(/[^0-9.]/g, "");
  const wrong = [];
  for (const details of document.querySelectorAll("#modeler details")) details.open = true;
  const all = [...document.querySelectorAll("#modeler [data-how]")];
  for (const number of all) {
    box.hidePopover();
    number.click();
    for (let turn = 0; turn < 9 && !box.matches(":popover-open"); turn++) await null;
    const lines = [...box.querySelectorAll(".modeler-line")].map((line) => line.textContent);
    const shown = lines.some((line) => digits(line).includes(digits(number.textContent)));
    if (!box.matches(":popover-open") || !shown)
      wrong.push([number.dataset.how, number.textContent, ...lines]);
  }
  return [all.length, wrong];
}"""
# Numbers in cells and sentences that open nothing.
LEFT = """() => [".modeler-details td", ".modeler-top small", ".modeler-tips span"]
  .flatMap((places) => [...document.querySelectorAll(places)])
  .flatMap((box) => [...box.childNodes])
  .filter((node) => node.nodeType === Node.TEXT_NODE && /^[\\s+−]*[0-9]/.test(node.data))
  .map((node) => node.data).filter((text) => !text.startsWith("6 per"))"""


@pytest.fixture
def opened(page: Page, site: str) -> Callable[[str], Page]:
    """`opened(query)`: the page with that query, when it has settled."""

    def open_page(query: str = "") -> Page:
        page.goto(f"{site}{PATH}{query}")
        settled(page)
        return page

    page.set_viewport_size({"width": 1366, "height": 900})
    return open_page


def settled(page: Page) -> None:
    """Wait until the answer stands and nothing more is being computed."""
    page.locator("#modeler .modeler-card").first.wait_for()
    page.wait_for_function(QUIET)


def card(page: Page, index: int) -> str:
    """What a card of the answer says, on one line."""
    return " ".join(page.locator(".modeler-card").nth(index).inner_text().split())


def section(page: Page, title: str) -> Locator:
    return page.locator("#modeler section", has=page.get_by_role("heading", name=title, exact=True))


def choose(page: Page, name: str, value: str) -> None:
    """Put a value into a field or a list, as a reader does."""
    field = page.locator(f"#modeler [name={name}]")
    field.evaluate(
        "(field) => { if (field.closest('details')) field.closest('details').open = true; }"
    )
    if field.evaluate("(field) => field.tagName") == "SELECT":
        field.select_option(value)
    else:
        field.fill(value)


def takeaway(page: Page) -> Locator:
    """What can be taken away, which comes when a reader is near it."""
    section(page, "Take away").scroll_into_view_if_needed()
    return page.locator("#modeler .modeler-take")


def file_of(page: Page, name: str) -> Any:
    with page.expect_download() as download:
        page.locator(f"[data-file='{name}']").click()
    text = download.value.path().read_text(encoding="utf-8")
    return json.loads(text) if name.endswith(".json") else text


def test_first_example_shows_the_source_s_cases_and_each_number_its_line(
    opened: Callable[[str], Page], axe: Callable[..., list[str]]
) -> None:
    page = opened("")
    pipeline = section(page, "Pipeline")
    assert "27.3%" in pipeline.inner_text()
    tips = section(page, "What to change").get_by_role("listitem")
    tip = tips.filter(has_text="Microbatches 8 → 16")
    assert "72.7% → 84.2%" in tip.inner_text()
    fewer = tips.filter(has_text="PP 4 → 3")
    assert "72.7% → 80.0%" in fewer.inner_text()
    # Readers without scripts are told the same, by the models in Python.
    static = page.evaluate("document.querySelector('noscript.tool-static').textContent")
    for one in (tip, fewer):
        gained = re.search(r"[+][\d.]+%", one.inner_text())
        assert gained
        assert f">{gained[0]}<" in static

    number = pipeline.get_by_role("button", name="27.3%").first
    number.click()
    line = page.locator("#modeler-how")
    expect(line).to_contain_text("(4 − 1) / (8 + 4 − 1) ≈ 27.3%")
    assert line.get_by_role("link", name="bubble_fraction").get_attribute("href") is not None
    assert axe(page, without=("color-contrast",)) == []
    page.keyboard.press("Escape")
    expect(line).to_be_hidden()

    before = card(page, 0)
    tip.get_by_role("button", name="Apply").click()
    page.wait_for_function("() => location.search.includes('microbatches=16')")
    settled(page)
    assert "15.8%" in pipeline.inner_text()
    assert card(page, 0) != before
    assert page.evaluate("document.activeElement.textContent") == "What to change"
    small = page.get_by_role("group", name="Small pipelines").get_by_role("button")
    assert small.filter(has_text="M = 16").get_attribute("aria-pressed") == "true"
    small.filter(has_text="P = 3").click()
    page.wait_for_function("() => location.search.includes('pp=3')")
    settled(page)
    assert "20.0%" in pipeline.inner_text()
    spoken = "#modeler [role=status]"
    page.wait_for_function(
        f"""() => /^step [\\d.]+ s, MFU 35\\.\\d%, fits with .* free/
          .test(document.querySelector("{spoken}").textContent)"""
    )


def test_every_number_opens_a_line_with_it(opened: Callable[[str], Page]) -> None:
    page = opened("?nodes=4&cp=2&tp=4&pp=2&compare=1&b.pp=4")
    for title in ("Side by side", "What to change", "What one more unit buys", "Memory"):
        assert section(page, title).locator("[data-how]").count() > 6, title
    first = page.locator("#modeler [data-how]").first
    first.click()
    page.locator("#modeler-how:popover-open").wait_for()
    checked, wrong = page.evaluate(OPEN_ALL)
    assert checked > 200
    assert wrong == []
    # What is left are inputs, names and shares of the whole.
    left = page.evaluate(LEFT)
    assert [text for text in left if text != "100%"] == []


def test_nodes_of_the_catalog_are_one_press_away(opened: Callable[[str], Page]) -> None:
    page = opened("?nodes=16&tp=8&pp=4&microbatches=8")
    for name, shown in {"gb200-ndr": ("2", "72"), "mi300x-roce": ("16", "8")}.items():
        chip = page.locator(f"[data-node={name}]")
        chip.click()
        page.locator(f"[data-node={name}][aria-pressed=true]").wait_for()
        settled(page)
        sizes = [page.locator(f"[name={field}]").input_value() for field in ("nodes", "gpus")]
        assert page.locator("#modeler .tool-message").count() == 0
        if name == "gb200-ndr":
            assert sizes[1] == shown[1]
            assert int(sizes[0]) * 72 % 32 == 0


def test_presets_show_and_hand_out_what_the_command_line_prints(
    opened: Callable[[str], Page],
) -> None:
    """All presets are compared with it in test_modeler_model; here three through the page."""
    page = opened("")
    for name in ("gpt-3-175b", "deepseek-v3", "llama-3-405b-8k-16384"):
        page.locator("#modeler-preset").select_option(name)
        page.wait_for_function(f"() => location.search === '?preset={name}'")
        settled(page)
        commands = takeaway(page).locator(".tool-code").inner_text().splitlines()
        for file, command in zip(("step.json", "memory.json"), commands, strict=True):
            assert same(file_of(page, file), printed(command)), name
        step = printed(commands[0])
        assert f"{step['model_flops_utilisation']:.1%}" in card(page, 1)
        if name == "deepseek-v3":
            told = section(page, "Where the time goes").inner_text()
            assert "1,542 tokens/s per GPU" in told
            assert "Assumed, since the run does not say: chunks, efficiency of products" in told
            assert "without masked attention" in card(page, 1)
    rows = file_of(page, "communication.csv").splitlines()
    assert len(rows) == 1 + len(step["communication"])
    stages = file_of(page, "memory.csv").splitlines()
    assert len(stages) == 1 + step["pp"]
    handed = takeaway(page).get_by_role("link", name="GPU process mapping")
    assert "nodes=2048" in str(handed.get_attribute("href"))


def test_address_holds_both_configurations(opened: Callable[[str], Page]) -> None:
    page = opened("?preset=llama-3-405b-131k")
    page.get_by_role("button", name="Compare two").click()
    choose(page, "pp", "8")
    choose(page, "recompute", "full")
    page.wait_for_function("() => location.search.includes('b.recompute=full')")
    settled(page)
    shown = [card(page, at) for at in range(4)]
    assert "A " in shown[0]
    assert "B " in shown[0]
    assert "B against A" in section(page, "Side by side").inner_text()
    assert takeaway(page).get_by_role("textbox").input_value() == page.url
    again = opened(page.url.partition(PATH)[2])
    assert [card(again, at) for at in range(4)] == shown
    again.get_by_role("button", name="Edit B").click()
    again.wait_for_function("() => document.querySelector('[name=pp]').value === '8'")
    again.get_by_role("button", name="Compare two").click()
    again.wait_for_function("() => location.search === '?preset=llama-3-405b-131k'")


def test_bad_input_is_refused_in_words_with_buttons_that_mend_it(
    opened: Callable[[str], Page],
) -> None:
    page = opened("?tp=<img src=x>&nodes=4&pp=3&model=constructor&b.zero=9")
    said = page.locator("#modeler .tool-message")
    expect(said).to_have_count(2)
    expect(said.first).to_contain_text("cannot be read")
    assert page.locator("#modeler img").count() == 0
    expect(said.nth(1)).to_contain_text("cannot be computed")
    assert card(page, 0).startswith("Step time 3.14 s"), "the defaults are shown"
    said.nth(1).get_by_role("button").first.click()
    expect(said).to_have_count(0)

    choose(page, "tp", "7")
    expect(said.first).to_contain_text("expected a divisor")
    expect(page.locator(".modeler-answer.is-stale")).to_have_count(1)
    said.first.get_by_role("button").first.click()
    said.first.wait_for(state="detached")
    choose(page, "tp", "eight")
    expect(said.first).to_contain_text("expected a whole number")
    expect(page.locator("[name=tp]")).to_have_attribute("aria-invalid", "true")
    choose(page, "tp", "8")
    said.first.wait_for(state="detached")
    choose(page, "efficiency", "55%")
    said.get_by_role("button", name="0.55").click()
    said.first.wait_for(state="detached")
    assert page.locator("[name=efficiency]").input_value() == "0.55"
    choose(page, "gpus", "72")
    said.get_by_role("button", name="GPUs per node 72 → 8").wait_for()
    page = opened("")
    choose(page, "global_batch", "25")
    offers = said.first.get_by_role("button")
    offers.first.click()
    said.first.wait_for(state="detached")
    batch = int(page.locator("[name=global_batch]").input_value())
    replicas = int(page.locator("output[name=dp]").inner_text())
    assert batch % replicas == 0


def test_a_held_batch_stays_while_the_layout_changes(opened: Callable[[str], Page]) -> None:
    page = opened("?nodes=8&tp=8&pp=2&microbatches=8")
    batch, microbatches = page.locator("[name=global_batch]"), page.locator("[name=microbatches]")
    assert batch.input_value() == "32"
    page.locator("[name=hold]").check()
    for name, value, follows in (("pp", "4", "16"), ("nodes", "16", "8"), ("tp", "4", "4")):
        choose(page, name, value)
        page.wait_for_function(f"() => location.search.includes('microbatches={follows}')")
        assert batch.input_value() == "32"
        assert microbatches.input_value() == follows
    choose(page, "microbatch_size", "3")
    said = page.locator("#modeler .tool-message")
    said.get_by_role("button", name="global batch 24").click()
    page.wait_for_function("() => location.search.includes('microbatches=1&')")
    assert batch.input_value() == "24"
    page.locator("[name=hold]").uncheck()
    choose(page, "microbatch_size", "1")
    page.wait_for_function("() => !location.search.includes('microbatch_size')")
    assert batch.input_value() == "8"


def test_own_numbers_stand_for_any_model_and_hardware(opened: Callable[[str], Page]) -> None:
    page = opened(
        "?nodes=8&tp=8&pp=2&model=llama-3-405b&chip=a100-sxm-80gb&nic=ib-hdr&sequence=8192"
    )
    before = card(page, 0)
    for name in ("model", "chip", "nic"):
        choose(page, name, "own")
    page.locator("[name=net]").wait_for()
    assert page.locator("[name=layers]").input_value() == "126"
    assert page.locator("[name=peak]").input_value() == "312"
    assert card(page, 0) == before, "one begins with what one had"
    for name, value in {
        "layers": "40",
        "peak": "2250",
        "hbm": "180",
        "up": "900",
        "net": "100",
    }.items():
        choose(page, name, value)
    page.wait_for_function("() => location.search.includes('net=100')")
    settled(page)
    assert card(page, 0) != before
    assert "180 GB" in card(page, 2)
    assert "no name" in takeaway(page).locator(".tool-code").inner_text()
    choose(page, "experts", "8")
    choose(page, "ep", "8")
    page.wait_for_function("() => location.search.includes('ep=8')")
    settled(page)
    sent = section(page, "What a GPU sends").get_by_role("table").first.inner_text()
    assert "ETP\tinside" in sent.replace("\n", "")


def test_keyboard_alone_reaches_and_changes_everything(opened: Callable[[str], Page]) -> None:
    page = opened("")
    page.locator("#modeler-preset").focus()
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        name = page.evaluate("document.activeElement.name || document.activeElement.textContent")
        seen.append(name)
        if name == "tp":
            break
    assert {"Compare two", "3.14\u00a0s", "model", "nodes", "chip"} <= {*seen}
    page.keyboard.press("ArrowUp")
    assert page.locator("[name=tp]").input_value() == "9"
    page.locator("#modeler .tool-message").wait_for()
    page.keyboard.press("ArrowDown")
    page.locator("#modeler .tool-message").wait_for(state="detached")
    assert page.evaluate("document.activeElement.name") == "tp", "the field keeps the focus"
    page.locator("summary", has_text="State and activations").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "zero"
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => location.search.includes('zero=2')")
    page.locator("[data-how=step]").first.focus()
    page.keyboard.press("Enter")
    page.locator("#modeler-how").wait_for()
    page.keyboard.press("Escape")
    expect(page.locator("[data-how=step]").first).to_be_focused()


def test_page_is_reached_from_the_rank_map_with_its_layout(page: Page, site: str) -> None:
    """Without a new page: what one tool loads must not be missing from the other."""
    page.goto(f"{site}/tools/rank-map/?nodes=4&tp=4&pp=2")
    page.locator("#rank-map a[href*=modeler]").click()
    page.wait_for_function(f"() => location.pathname.endsWith('{PATH}')")
    settled(page)
    sizes = {name: page.locator(f"[name={name}]").input_value() for name in ("nodes", "tp", "pp")}
    assert sizes == {"nodes": "4", "tp": "4", "pp": "2"}
    columns = page.locator(".modeler-columns")
    assert columns.evaluate("(box) => getComputedStyle(box).display") == "grid"
    choose(page, "model", "llama-3-8b")
    choose(page, "zero", "2")
    page.wait_for_function("() => location.search.includes('zero=2')")
    settled(page)
    takeaway(page).locator("a[href*='rank-map/']").click()
    page.wait_for_function("() => location.pathname.endsWith('/tools/rank-map/')")
    tp = page.locator("#rank-map [name=tp]")
    tp.wait_for()
    assert tp.input_value() == "4"
    tp.fill("2")
    page.locator("#rank-map a[href*='modeler'][href*='tp=2']").click()
    page.wait_for_function(f"() => location.pathname.endsWith('{PATH}')")
    settled(page)
    names = ("nodes", "tp", "pp", "model", "zero")
    back = {name: page.locator(f"[name={name}]").input_value() for name in names}
    assert back == {"nodes": "4", "tp": "2", "pp": "2", "model": "llama-3-8b", "zero": "2"}


def test_page_survives_navigation_palette_and_a_narrow_window(
    opened: Callable[[str], Page],
) -> None:
    page = opened("?preset=llama-3-405b-8k-16384")
    before = card(page, 0)
    page.locator(".md-footer__link--prev, .md-footer__link").first.click()
    page.wait_for_function(f"() => !location.pathname.endsWith('{PATH}')")
    page.locator("#modeler").wait_for(state="detached")
    page.go_back()
    settled(page)
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
    page.set_viewport_size({"width": 390, "height": 844})
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
