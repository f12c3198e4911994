"""The modeler's form: valid and invalid input, two configurations, the keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from figgen.scenarios.options.resolve import training_step
from figgen.units import format_quantity
from tests.browser.modeler import answered, card, choose, section, settled
from tests.browser.waits import Held, addressed, drawn, resized


def first_step() -> str:
    """The step time of the modeler's first example, which readers without a job see."""
    layout = {"nodes": 12, "gpus_per_node": 8, "tp": 8, "pp": 4, "microbatches": 8}
    found = training_step(model="llama-3-70b", **layout)
    return format_quantity(found.predicted.step_time_s, "s", "time")


def test_bad_input_is_refused_in_words_with_buttons_that_mend_it(
    open_modeler: Callable[..., Page],
) -> None:
    page = open_modeler("?tp=<img src=x>&nodes=4&pp=3&model=constructor&b.zero=9", answered)
    said = page.locator("#modeler .tool-message")
    expect(said).to_have_count(2)
    expect(said.first).to_contain_text("can't be read")
    assert page.locator("#modeler img").count() == 0
    expect(said.nth(1)).to_contain_text("can't be computed")
    assert card(page, 0).startswith(f"Step time {first_step()}".replace("\u00a0", " ")), (
        "the defaults are shown"
    )
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
    choose(page, "efficiency", "55")
    said.get_by_role("button", name="0.55").click()
    said.first.wait_for(state="detached")
    assert page.locator("[name=efficiency]").input_value() == "0.55"
    choose(page, "gpus", "72")
    said.get_by_role("button", name="GPUs per node 72 → 8").wait_for()
    page = open_modeler("", answered)
    choose(page, "global_batch", "25")
    offers = said.first.get_by_role("button")
    offers.first.click()
    said.first.wait_for(state="detached")
    settled(page)
    batch = int(page.locator("[name=global_batch]").input_value())
    replicas = int(page.locator("output[name=dp]").text_content() or "")
    assert batch % replicas == 0


@pytest.mark.parametrize(
    ("chip", "microseconds"),
    [
        ("h100-sxm-80gb", "3.4"),
        ("gaudi3", "3.4"),
        ("tpu-v5p", "1"),
        ("mi350x", "2.1"),
        ("trainium3", "1.5"),
    ],
)
def test_a_latency_that_is_left_out_shows_the_one_that_is_taken(
    open_modeler: Callable[..., Page], chip: str, microseconds: str
) -> None:
    """It is NCCL's constant, or that of the link's own library or vendor."""
    page = open_modeler(f"?chip={chip}", answered)
    left = page.locator("[name=alpha_up]")
    expect(left).to_have_attribute("placeholder", microseconds)
    assert left.input_value() == ""


def test_adapters_have_a_fold_of_their_own_and_mend_what_does_not_go_with_them(
    open_modeler: Callable[..., Page], axe: Callable[..., list[str]]
) -> None:
    page = open_modeler("?model=llama-3-8b&nodes=1&zero=3&microbatches=4&activations=fp8", answered)
    whole = card(page, 2)
    fold = page.locator("#modeler summary", has_text="Fine-tuning")
    expect(fold).to_contain_text("all weights are trained")
    fold.press("Enter")
    expect(page.locator("[name=frozen_weights]")).to_be_hidden()
    choose(page, "lora_rank", "16")
    said = page.locator("#modeler .tool-message")
    expect(said).to_contain_text("expected 16-bit with lora_rank")
    said.get_by_role("button").first.click()
    said.first.wait_for(state="detached")
    page.locator("[name=frozen_weights]").select_option("nf4")
    expect(fold).to_contain_text("LoRA of rank 16 next to nf4 weights")
    page.wait_for_function("() => location.search.includes('frozen_weights=nf4')")
    assert card(page, 2) != whole
    assert axe(page, within="article", without=("color-contrast",)) == []


def test_a_second_configuration_that_is_wrong_leaves_the_first(
    open_modeler: Callable[..., Page],
) -> None:
    page = open_modeler("?preset=deepseek-v3", answered)
    alone = [card(page, at) for at in range(4)]
    page = open_modeler("?preset=deepseek-v3&compare=1&b.model=llama-3-8b", answered)
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


def test_a_held_batch_stays_while_the_layout_changes(open_modeler: Callable[..., Page]) -> None:
    page = open_modeler("?nodes=8&tp=8&pp=2&microbatches=8", answered)
    batch, microbatches = page.locator("[name=global_batch]"), page.locator("[name=microbatches]")
    assert batch.input_value() == "32"
    expect(page.locator("[name=hold]")).to_be_checked()
    for name, value, follows in (("pp", "4", "16"), ("nodes", "16", "8"), ("tp", "4", "4")):
        choose(page, name, value)
        addressed(page, **{name: value, "microbatches": follows})
        assert batch.input_value() == "32"
        assert microbatches.input_value() == follows
    choose(page, "microbatch_size", "3")
    said = page.locator("#modeler .tool-message")
    said.get_by_role("button", name="global batch 24").click()
    addressed(page, microbatch_size=3, microbatches=1)
    assert batch.input_value() == "24"
    page.locator("[name=hold]").uncheck()
    choose(page, "microbatch_size", "1")
    addressed(page, microbatch_size=None)
    assert batch.input_value() == "8"


def test_a_batch_that_is_typed_beside_an_error_is_the_one_that_is_computed(
    open_modeler: Callable[..., Page],
) -> None:
    """The tool used to compute 2,048 sequences although 512 were typed."""
    page = open_modeler(
        "?nodes=16&chip=h200-sxm-141gb&tp=8&pp=4&microbatches=64&sequence=8192", answered
    )
    batch, said = page.locator("[name=global_batch]"), page.locator("#modeler .tool-message")
    choose(page, "tp", "7")
    expect(said).to_have_count(1)
    choose(page, "global_batch", "512")
    assert batch.input_value() == "512"
    choose(page, "tp", "8")
    addressed(page, microbatches=128)
    assert batch.input_value() == "512"
    choose(page, "nodes", "32")
    addressed(page, nodes=32, microbatches=64)
    assert batch.input_value() == "512", "twice the GPUs work on the same batch"


def test_fields_take_what_people_write_and_nonsense_has_a_message_of_its_own(
    open_modeler: Callable[..., Page],
) -> None:
    page = open_modeler("?nodes=16&chip=h200-sxm-141gb&tp=8&pp=4&microbatches=1", answered)
    said = page.locator("#modeler .tool-message")
    typed = (("sequence", "8k"), ("global_batch", "4M tokens"), ("alpha_up", "0,0034 ms"))
    for name, text in typed:
        choose(page, name, text)
    addressed(page, sequence=8192, microbatches=128, alpha_up="3.4")
    for name, value in (("sequence", "8192"), ("global_batch", "512"), ("alpha_up", "3.4")):
        page.locator(f"#modeler [name={name}]").blur()
        assert page.locator(f"#modeler [name={name}]").input_value() == value
    expect(said).to_have_count(0)
    for name, text, message in (
        ("global_batch", "510", "a multiple of 4"),
        ("global_batch", "many", "a whole number from 1"),
        ("global_batch", "4M", "512 sequences or 4M tokens"),
        ("nodes", "1.000", "a whole number"),
        ("alpha_up", "3 GB", "a quantity in s"),
    ):
        choose(page, name, text)
        expect(said).to_have_count(1)
        expect(said).to_contain_text(message)
        expect(said).to_contain_text(text)
        page.locator(f"#modeler [name={name}]").fill({"nodes": "16"}.get(name, "512"))
        choose(page, name, {"nodes": "16", "alpha_up": ""}.get(name, "512"))
        expect(said).to_have_count(0)


def test_a_batch_that_was_refused_stays_until_it_fits(open_modeler: Callable[..., Page]) -> None:
    page = open_modeler("", answered)  # 3 replicas
    said = page.locator("#modeler .tool-message")
    batch = page.locator("#modeler [name=global_batch]")
    choose(page, "global_batch", "4M tokens")
    expect(said).to_contain_text("a multiple of 3 sequences of 8,192 tokens, not “4M tokens”")
    choose(page, "sequence", "4096")
    expect(said).to_contain_text("a multiple of 3 sequences of 4,096 tokens, not “4M tokens”")
    expect(said).to_contain_text("24 is computed")
    assert batch.input_value() == "4M tokens"
    choose(page, "nodes", "16")
    expect(said).to_have_count(0)
    addressed(page, nodes=16, microbatches=256)
    assert batch.input_value() == "1024"


def test_the_last_answer_fades_while_a_job_cannot_be_computed(
    open_modeler: Callable[..., Page],
) -> None:
    page = open_modeler("?nodes=8&tp=8&pp=2&microbatches=8", answered)
    cards = page.locator("#modeler .modeler-card")
    expect(cards.first).to_be_visible()
    answer = page.locator(".modeler-answer")
    expect(answer).to_have_css("opacity", "1")
    choose(page, "tp", "7")
    expect(answer).to_have_css("opacity", "0.45")
    choose(page, "tp", "8")
    expect(answer).to_have_css("opacity", "1")


def test_back_undoes_the_last_change(open_modeler: Callable[..., Page]) -> None:
    page = open_modeler("?nodes=8&tp=8&pp=2&microbatches=8", answered)
    choose(page, "pp", "4")
    addressed(page, pp=4, microbatches=16)
    choose(page, "sequence", "4096")
    addressed(page, sequence=4096)
    page.go_back()
    addressed(page, pp=4, sequence=None)
    page.wait_for_function("() => document.querySelector('#modeler [name=sequence]').value === ''")
    assert page.locator("#modeler [name=pp]").input_value() == "4"
    page.go_back()
    addressed(page, pp=2, microbatches=8)
    page.wait_for_function("() => document.querySelector('#modeler [name=pp]').value === '2'")


def test_a_measured_step_scales_all_times_and_says_so(open_modeler: Callable[..., Page]) -> None:
    layout = {"nodes": 8, "gpus_per_node": 8, "tp": 8, "pp": 2, "microbatches": 8}
    predicted = training_step(model="llama-3-70b", **layout).estimate.step_time_s
    page = open_modeler("?nodes=8&tp=8&pp=2&microbatches=8", answered)
    open_all(page)
    page.locator("#modeler [name=step_time]").fill("20 s")
    page.wait_for_function("() => new URLSearchParams(location.search).has('factor')")
    factor = float(page.evaluate("new URLSearchParams(location.search).get('factor')"))
    assert factor == pytest.approx(20 / predicted, rel=1e-6)
    expect(page.locator("#modeler .modeler-card").first).to_contain_text("20.0\u00a0s")
    expect(page.locator("#modeler .modeler-card").first).to_contain_text(
        f"{factor:#.3g} × the prediction"
    )
    choose(page, "tp", "4")
    addressed(
        page, tp=4, factor=page.evaluate("new URLSearchParams(location.search).get('factor')")
    )
    page.locator("#modeler [name=step_time]").fill("0.1")
    expect(page.locator("#modeler .modeler-messages")).to_contain_text(
        "would exceed the dense peak"
    )
    page.locator("#modeler [name=step_time]").fill("")
    page.wait_for_function("() => !new URLSearchParams(location.search).has('factor')")


def open_all(page: Page) -> None:
    page.evaluate("document.querySelectorAll('#modeler details').forEach((one) => one.open = true)")


def test_a_step_twice_as_fast_on_twice_the_gpus_is_no_loss(
    open_modeler: Callable[..., Page],
) -> None:
    page = open_modeler(
        "?nodes=16&tp=8&pp=4&microbatches=64&compare=1&b.nodes=32&b.microbatches=32", answered
    )
    rows = page.locator("#modeler table", has_text="B against A").locator("tbody tr")
    expect(rows.filter(has_text="step time")).to_contain_text("better")
    expect(rows.filter(has_text="tokens/s per GPU")).not_to_contain_text("worse")
    expect(page.locator("#modeler")).to_contain_text("B is faster than A")


RETURNS = """async () => {
  const field = document.querySelector("#modeler [name=microbatches]");
  const before = field.value;
  for (const value of ["16", before]) {
    field.value = value;
    field.dispatchEvent(new Event("input"));
    await new Promise(requestAnimationFrame);
  }
}"""


def test_what_variants_add_is_there_again_after_an_edit_and_its_undoing(
    open_modeler: Callable[..., Page],
) -> None:
    """The undoing comes within two frames, before the sections of the first edit are drawn."""
    page = open_modeler("?nodes=8&tp=8&pp=4&microbatches=8")
    tried = section(page, "Pipeline").locator("summary", has_text="Every number of chunks")
    expect(tried).to_have_count(1)
    page.evaluate(RETURNS)
    settled(page)
    assert tried.count() == 1


def test_a_pasted_text_is_forgotten_when_it_is_taken_away_before_it_is_read(
    open_modeler: Callable[..., Page],
) -> None:
    page = open_modeler("?preset=llama-3-8b-fsdp", answered)
    choose(page, "model", "own")
    held = Held(page, "**/modeler_taken.js")
    page.locator(".tool-bring summary").click()
    paste = page.get_by_label("Script, command, configuration or config.json")
    paste.fill("{")
    with page.expect_request("**/modeler_taken.js"):
        page.get_by_role("button", name="Load it").click()
    paste.fill("")
    page.get_by_role("button", name="Load it").click()
    with page.expect_response("**/modeler_taken.js"):
        held.come()
    # What comes after the file in the page's own order.
    page.evaluate("async () => { await import('/assets/javascripts/tools/modeler_taken.js'); }")
    drawn(page)
    assert page.locator("#modeler .tool-message").count() == 0


@pytest.mark.parametrize("then", ["Compare two", "preset"])
def test_a_pasted_text_is_forgotten_when_the_reader_goes_on_to_another_configuration(
    open_modeler: Callable[..., Page], then: str
) -> None:
    """It used to be written into the edited configuration once it had been read."""
    page = open_modeler("?preset=llama-3-8b-fsdp", answered)
    choose(page, "model", "own")
    addressed(page, layers=32)
    held = Held(page, "**/modeler_taken.js")
    page.locator(".tool-bring summary").click()
    page.get_by_label("Script, command, configuration or config.json").fill(LLAMA)
    with page.expect_request("**/modeler_taken.js"):
        page.get_by_role("button", name="Load it").click()
    if then == "preset":
        page.locator("#modeler-preset").select_option("gpt-3-175b")
        addressed(page, preset="gpt-3-175b")
    else:
        page.get_by_role("button", name=then).click()
        addressed(page, compare=1)
    before = page.evaluate("location.search")
    with page.expect_response("**/modeler_taken.js"):
        held.come()
    page.evaluate("async () => { await import('/assets/javascripts/tools/modeler_taken.js'); }")
    drawn(page)
    page.locator("#modeler [name=nodes]").fill("2")
    addressed(page, **{"nodes" if then == "preset" else "b.nodes": 2})
    after = page.evaluate("location.search")
    typed = r"&(b\.)?(nodes|microbatches)=\d+"  # the batch is kept
    assert re.sub(typed, "", after) == re.sub(typed, "", before)


def test_keyboard_alone_reaches_and_changes_everything(open_modeler: Callable[..., Page]) -> None:
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
    assert {"Compare two", first_step(), "model", "nodes", "chip"} <= {*seen}
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
    addressed(page, zero=2)
    settled(page)  # a table that is drawn again takes the focus with it
    # A table is one stop, and arrows go from number to number in it.
    stops = """(boxes) => boxes.map(
      (box) => box.querySelectorAll("[data-how]:not([tabindex='-1'])").length)"""
    assert set(page.locator("[data-numbers]:visible").evaluate_all(stops)) == {1}
    memory = section(page, "Memory").locator("tbody tr")
    memory.nth(0).locator("[data-how]").first.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    here = "document.activeElement === document.querySelector('[data-how=\"layers:1\"]')"
    page.wait_for_function(f"() => {here}")
    page.locator("[data-how=step]").first.focus()
    page.keyboard.press("Enter")
    page.locator("#modeler-how").wait_for()
    page.keyboard.press("Escape")
    expect(page.locator("[data-how=step]").first).to_be_focused()


LLAMA = json.dumps(
    {
        "model_type": "llama",
        "hidden_size": 2048,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 8192,
        "vocab_size": 128256,
        "max_position_embeddings": 4096,
    }
)
VISIBLE = """() => [...document.querySelectorAll("#modeler form [name]")]
  .filter((one) => one.checkVisibility()).map(({ name }) => name)"""


def test_form_begins_with_the_job_in_short_and_has_all_settings_behind_it(
    open_modeler: Callable[..., Page], axe: Callable[..., list[str]]
) -> None:
    page = open_modeler("")
    short = ["model", "nodes", "gpus", "chip", "global_batch", "sequence"]
    assert page.evaluate(VISIBLE) == short
    assert axe(page, within="article", without=("color-contrast",)) == []
    page.get_by_label("Model", exact=True).select_option("llama-3-8b")
    page.get_by_label("Nodes", exact=True).fill("4")
    addressed(page, model="llama-3-8b", nodes=4)
    shown = card(page, 0)
    everything = page.locator("summary", has_text="All settings")
    everything.focus()
    page.keyboard.press("Enter")
    assert {"tp", "pp", "microbatches", "nic"} <= set(page.evaluate(VISIBLE))
    every = page.locator("#modeler form [name]")
    names = every.evaluate_all("(all) => all.map(({ name }) => name)")
    assert len(names) == len(set(names)), "each field stands once"
    # The same address brings the same answer, with everything that it says in sight.
    page = open_modeler(page.evaluate("location.search"), answered)
    assert card(page, 0) == shown
    assert set(short) | {"tp", "microbatches"} <= set(page.evaluate(VISIBLE))
    resized(page, 390, 844)
    page = open_modeler("")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate(VISIBLE) == short
