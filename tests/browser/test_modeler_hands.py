"""The modeler in a reader's hands: form, bad input, keyboard, navigation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect

from figgen.catalog.measured_file import FORMAT, read_measured
from figgen.scenarios.measured_rates import rates_of
from figgen.scenarios.resolve import training_step
from tests.browser.modeler import PATH, card, choose, section, settled, takeaway
from tests.browser.site import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_bad_input_is_refused_in_words_with_buttons_that_mend_it(
    open_modeler: Callable[[str], Page],
) -> None:
    page = open_modeler("?tp=<img src=x>&nodes=4&pp=3&model=constructor&b.zero=9")
    said = page.locator("#modeler .tool-message")
    expect(said).to_have_count(2)
    expect(said.first).to_contain_text("cannot be read")
    assert page.locator("#modeler img").count() == 0
    expect(said.nth(1)).to_contain_text("cannot be computed")
    assert card(page, 0).startswith("Step time 2.44 s"), "the defaults are shown"
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
    page = open_modeler("")
    choose(page, "global_batch", "25")
    offers = said.first.get_by_role("button")
    offers.first.click()
    said.first.wait_for(state="detached")
    batch = int(page.locator("[name=global_batch]").input_value())
    replicas = int(page.locator("output[name=dp]").text_content() or "")
    assert batch % replicas == 0


def test_a_second_configuration_that_is_wrong_leaves_the_first(
    open_modeler: Callable[[str], Page],
) -> None:
    page = open_modeler("?preset=deepseek-v3")
    alone = [card(page, at) for at in range(4)]
    page = open_modeler("?preset=deepseek-v3&compare=1&b.model=llama-3-8b")
    said = page.locator("#modeler .tool-message")
    expect(said).to_have_count(1)
    expect(said).to_contain_text("B: ep: expected 1, the model has no experts, got 64")
    expect(said).to_contain_text("those of A")
    assert [card(page, at) for at in range(4)] == alone
    assert page.locator("[name=model]").input_value() == "llama-3-8b", "B is what is mended"
    said.get_by_role("button", name="EP 64 → 1").first.click()
    expect(said).to_have_count(0)
    settled(page)
    assert "B " in card(page, 0)
    page.get_by_role("button", name="Edit A").click()
    page.wait_for_function("() => document.querySelector('[name=model]').value === 'deepseek-v3'")


def test_a_held_batch_stays_while_the_layout_changes(open_modeler: Callable[[str], Page]) -> None:
    page = open_modeler("?nodes=8&tp=8&pp=2&microbatches=8")
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


def test_own_numbers_stand_for_any_model_and_hardware(open_modeler: Callable[[str], Page]) -> None:
    page = open_modeler(
        "?nodes=8&tp=8&pp=2&model=llama-3-405b&chip=a100-sxm-80gb&nic=ib-hdr&sequence=8192"
    )
    before = card(page, 0)
    for name in ("model", "chip", "nic"):
        choose(page, name, "own")
    page.locator("[name=net]").wait_for()
    assert page.locator("[name=layers]").input_value() == "126"
    assert page.locator("[name=peak]").input_value() == "312"
    began = card(page, 0).split()[:4]
    assert began == before.split()[:4], "one begins with what one had"
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


def test_a_pasted_config_json_becomes_the_reader_s_own_model(
    open_modeler: Callable[[str], Page],
) -> None:
    cases = json.loads((ROOT / "tests/oracles/config_json.json").read_text("utf-8"))["cases"]
    config = next(case["config"] for case in cases if case["catalog"] == "deepseek-v3")
    page = open_modeler("?preset=deepseek-v3")
    before = [card(page, at) for at in (0, 2)]
    choose(page, "model", "own")
    settled(page)
    assert [card(page, at) for at in (0, 2)] == before, "all of a shape is one's own at first"
    choose(page, "layers", "40")
    page.wait_for_function("() => location.search.includes('layers=40')")
    settled(page)
    assert [card(page, at) for at in (0, 2)] != before
    paste = page.get_by_label("Paste a Hugging Face config.json")
    paste.fill("{")
    said = page.locator("#modeler .tool-message")
    expect(said).to_contain_text("config.json: the text: expected a config.json")
    paste.fill(json.dumps(config))
    choose(page, "sequence", "4096")
    page.wait_for_function("() => !location.search.includes('layers=40')")
    settled(page)
    expect(said).to_have_count(0)
    wanted = {
        "layers": "61", "experts": "256", "shared": "1", "dense_layers": "3", "kv_rank": "512",
        "value_head_dim": "128",
    }  # fmt: skip
    assert {name: page.locator(f"[name={name}]").input_value() for name in wanted} == wanted
    assert [card(page, at) for at in (0, 2)] == before
    address = page.url.partition(PATH)[2]
    assert [card(open_modeler(address), at) for at in (0, 2)] == before, "the address has it all"


def test_measured_rates_stand_in_the_place_of_datasheets(
    open_modeler: Callable[[str], Page], tmp_path: Path
) -> None:
    rows = {
        "products": [
            {"format": "bf16", "m": n, "n": n, "k": n, "seconds": 4e-6 + 2 * n**3 / 4e14}
            for n in (1024, 8192)
        ],
        "kernels": [{"kernel": "copy", "bytes": 2**30, "seconds": 4e-4}],
        "collectives": [
            {"collective": "all_reduce", "ranks": 8, "nodes": 1, "message_bytes": size,
             "seconds": 1e-5 + size / 2e11}
            for size in (2**20, 2**28, 2**30)
        ],
    }  # fmt: skip
    machine = {"device": "NVIDIA H100 80GB HBM3", "kind": "cuda", "memory_bytes": 85_520_809_984,
               "ranks": 8, "nodes": 1, "torch": "2.9", "runtime": "", "date": ""}  # fmt: skip
    text = json.dumps({"format": FORMAT, "version": 1, "machine": machine, **rows})
    rates = rates_of(read_measured(text)).text
    good, bad = tmp_path / "measured.json", tmp_path / "other.json"
    good.write_text(text)
    bad.write_text('{"format": "another"}')
    page = open_modeler("?chip=h100-sxm-80gb&nodes=12&tp=8&pp=4&microbatches=8")
    before = card(page, 0)
    load = page.get_by_label("Rates that measure.py measured")
    load.set_input_files(bad)
    expect(page.locator("#modeler .tool-message")).to_contain_text("what measure.py writes")
    expect(page.get_by_role("button", name="Forget it")).to_be_hidden()
    load.set_input_files(good)
    page.wait_for_function("() => location.search.includes('measured=bf16-')")
    settled(page)
    expect(page.locator("#modeler .tool-message")).to_have_count(0)
    assert parse_qs(urlsplit(page.url).query)["measured"] == [rates]
    assert card(page, 0) != before
    step = training_step(
        model="llama-3-70b", nodes=12, gpus_per_node=8, tp=8, pp=4, microbatches=8, measured=rates
    )
    assert f"{step.predicted.step_time_s:.3g}" in " ".join(
        page.locator(".modeler-answer").inner_text().split()
    )
    page.get_by_role("button", name="Forget it").click()
    page.wait_for_function("() => !location.search.includes('measured')")
    settled(page)
    assert card(page, 0) == before


def test_keyboard_alone_reaches_and_changes_everything(open_modeler: Callable[[str], Page]) -> None:
    page = open_modeler("")
    page.locator("#modeler-preset").focus()
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        name = page.evaluate("document.activeElement.name || document.activeElement.textContent")
        seen.append(name)
        if name == "All settings":
            page.keyboard.press("Enter")
        if name == "tp":
            break
    assert {"Compare two", "2.44\u00a0s", "model", "nodes", "chip"} <= {*seen}
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
    # A table is one stop, and arrows go from number to number in it.
    stops = """(boxes) => boxes.map(
      (box) => box.querySelectorAll("[data-how]:not([tabindex='-1'])").length)"""
    assert set(page.locator("[data-numbers]:visible").evaluate_all(stops)) == {1}
    memory = section(page, "Memory").locator("tbody tr")
    memory.nth(0).locator("[data-how]").first.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    here = "document.activeElement === document.querySelector('[data-how=\"layers:1\"]')"
    assert page.evaluate(here)
    page.locator("[data-how=step]").first.focus()
    page.keyboard.press("Enter")
    page.locator("#modeler-how").wait_for()
    page.keyboard.press("Escape")
    expect(page.locator("[data-how=step]").first).to_be_focused()


VISIBLE = """() => [...document.querySelectorAll("#modeler form [name]")]
  .filter((one) => one.checkVisibility()).map(({ name }) => name)"""


def test_form_begins_with_the_job_in_short_and_has_all_settings_behind_it(
    open_modeler: Callable[[str], Page], axe: Callable[..., list[str]]
) -> None:
    page = open_modeler("")
    short = ["model", "nodes", "gpus", "chip", "global_batch", "sequence"]
    assert page.evaluate(VISIBLE) == short
    assert axe(page, within="article", without=("color-contrast",)) == []
    page.get_by_label("Model", exact=True).select_option("llama-3-8b")
    page.get_by_label("Nodes", exact=True).fill("4")
    page.wait_for_function("() => location.search.includes('model=llama-3-8b')")
    settled(page)
    shown = card(page, 0)
    everything = page.locator("summary", has_text="All settings")
    everything.focus()
    page.keyboard.press("Enter")
    assert {"tp", "pp", "microbatches", "nic"} <= set(page.evaluate(VISIBLE))
    every = page.locator("#modeler form [name]")
    names = every.evaluate_all("(all) => all.map(({ name }) => name)")
    assert len(names) == len(set(names)), "each field stands once"
    # The same address brings the same answer, with everything that it says in sight.
    page = open_modeler(page.evaluate("location.search"))
    assert card(page, 0) == shown
    assert set(short) | {"tp", "microbatches"} <= set(page.evaluate(VISIBLE))
    page.set_viewport_size({"width": 390, "height": 844})
    page = open_modeler("")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate(VISIBLE) == short


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
    # By key: what is made as it comes near moves the link away under a pointer.
    page.locator("#rank-map a[href*='modeler'][href*='tp=2']").press("Enter")
    page.wait_for_function(f"() => location.pathname.endsWith('{PATH}')")
    settled(page)
    names = ("nodes", "tp", "pp", "model", "zero")
    back = {name: page.locator(f"[name={name}]").input_value() for name in names}
    assert back == {"nodes": "4", "tp": "2", "pp": "2", "model": "llama-3-8b", "zero": "2"}


def test_page_survives_navigation_palette_and_a_narrow_window(
    open_modeler: Callable[[str], Page],
) -> None:
    page = open_modeler("?preset=llama-3-405b-8k-16384")
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
