"""A reader's own model, hardware and measured rates in the modeler."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from figgen.catalog.measured_file import FORMAT, read_measured
from figgen.scenarios.options.resolve import training_step
from figgen.scenarios.runs.machine_rates import rates_of
from tests.browser.modeler import answered, card, choose, section, settled, takeaway
from tests.browser.site import ROOT
from tests.browser.waits import addressed, drawn


def test_own_numbers_stand_for_any_model_and_hardware(open_modeler: Callable[..., Page]) -> None:
    asked = "?nodes=8&tp=8&pp=2&model=llama-3-405b&chip=a100-sxm-80gb&nic=ib-hdr&sequence=8192"
    page = open_modeler(asked, answered)
    before = card(page, 0)
    for name in ("model", "chip", "nic"):
        choose(page, name, "own")
    page.locator("[name=net]").wait_for()
    assert page.locator("[name=layers]").input_value() == "126"
    assert page.locator("[name=peak]").input_value() == "312"
    began = card(page, 0).split()[:4]
    assert began[:2] == before.split()[:2]
    # What nobody timed is simulated at the share of the peak that the catalog's chip reaches.
    assert float(began[2]) == pytest.approx(float(before.split()[2]), rel=0.05)
    for name, value in {
        "layers": "40",
        "peak": "2250",
        "hbm": "180",
        "up": "900",
        "net": "100",
    }.items():
        choose(page, name, value)
    addressed(page, layers=40, net=100)
    assert card(page, 0) != before
    assert "180 GB" in card(page, 2)
    assert "no name" in takeaway(page).get_by_label("Commands").inner_text()
    choose(page, "experts", "8")
    choose(page, "ep", "8")
    addressed(page, ep=8)
    settled(page)
    sent = section(page, "What a GPU sends").get_by_role("table").first.inner_text()
    assert "ETP\tinside" in sent.replace("\n", "")


LATE = """() => {
  const read = Blob.prototype.text;
  Blob.prototype.text = function () {
    if (this.name !== "first.json") return read.call(this);
    return new Promise((done) => { window.late = async () => done(await read.call(this)); });
  };
}"""


def test_of_two_files_the_one_that_was_chosen_last_counts_whichever_is_read_first(
    open_modeler: Callable[..., Page],
) -> None:
    page = open_modeler("?chip=h100-sxm-80gb&nodes=12&tp=8&pp=4&microbatches=8", answered)
    page.evaluate(LATE)
    load = page.get_by_label("Rates measured by measure.py")
    said = page.locator("#modeler .tool-message")
    for name, text in (("first.json", "{}"), ("second.json", "{")):
        file = {"name": name, "mimeType": "application/json", "buffer": text.encode()}
        load.set_input_files([file])
    expect(said).to_have_count(1)
    told = said.inner_text()
    page.evaluate("late()")
    drawn(page)
    assert said.inner_text() == told


def test_a_pasted_config_json_becomes_the_reader_s_own_model(
    open_modeler: Callable[..., Page],
) -> None:
    cases = json.loads((ROOT / "tests/oracles/config_json.json").read_text("utf-8"))["cases"]
    config = next(case["config"] for case in cases if case["catalog"] == "deepseek-v3")
    page = open_modeler("?preset=deepseek-v3", answered)
    before = [card(page, at) for at in (0, 2)]
    choose(page, "model", "own")
    page.locator("[name=layers]").wait_for()
    assert [card(page, at) for at in (0, 2)] == before, "all of a shape is one's own at first"
    choose(page, "layers", "40")
    addressed(page, layers=40)
    assert [card(page, at) for at in (0, 2)] != before
    page.locator(".tool-bring summary").click()
    paste = page.get_by_label("Script, command, configuration or config.json")
    load = page.get_by_role("button", name="Load it")
    said = page.locator("#modeler .tool-answer")
    paste.fill("{")
    load.click()
    expect(said).to_contain_text("the text: expected")
    # What no address could bring back, as from a form that no reader can fill so.
    paste.fill(json.dumps(config | {"num_hidden_layers": 2_000}))
    load.click()
    expect(said).to_contain_text("layers: expected a whole number from 1 to 1,000")
    paste.fill(json.dumps(config))
    load.click()
    expect(said).to_contain_text("a model of 671,026,419,200 parameters")
    # It says how long a sequence may be at most, a moment after it was pasted.
    expect(page.locator("[name=layers]")).to_have_value("61")
    choose(page, "sequence", "4096")
    addressed(page, layers=61, sequence=None)  # as in the preset
    wanted = {
        "layers": "61", "experts": "256", "shared": "1", "dense_layers": "3", "kv_rank": "512",
        "value_head_dim": "128",
    }  # fmt: skip
    assert {name: page.locator(f"[name={name}]").input_value() for name in wanted} == wanted
    assert [card(page, at) for at in (0, 2)] == before
    address = str(page.evaluate("location.search"))
    assert [card(open_modeler(address), at) for at in (0, 2)] == before, "the address has it all"
    # A log's step scales the configuration, where it is of the same batch.
    page.locator(".tool-bring summary").click()
    for batch, told in ((512, "global batch is 512"), (15_360, "A step took 55\u00a0s")):
        steps = f"iteration 1/9 | train_step_timing in s: 55.0 | global_batch_size: {batch}"
        paste.fill("\n".join([steps] * 3))
        load.click()
        expect(said).to_contain_text(told)
    expect(page.locator(".modeler-card").first).to_contain_text("55.0\u00a0s")


def test_measured_rates_stand_in_the_place_of_datasheets(
    open_modeler: Callable[..., Page], tmp_path: Path
) -> None:
    rows = {
        "products": [
            {"format": "bf16", "m": n, "n": n, "k": n, "seconds": 4e-6 + 2 * n**3 / 4e14}
            for n in (1024, 8192)
        ],
        "kernels": [{"kernel": "copy", "bytes": 2**30, "seconds": 4e-4}],
        "collectives": [
            {
                "collective": "all_reduce",
                "ranks": 8,
                "nodes": 1,
                "message_bytes": size,
                "seconds": 1e-5 + size / 2e11,
            }
            for size in (2**20, 2**28, 2**30)
        ],
    }
    machine = {"device": "NVIDIA H100 80GB HBM3", "kind": "cuda", "memory_bytes": 85_520_809_984,
               "ranks": 8, "nodes": 1, "torch": "2.9", "runtime": "", "date": ""}  # fmt: skip
    text = json.dumps({"format": FORMAT, "version": 1, "machine": machine, **rows})
    rates = rates_of(read_measured(text)).text
    good, bad = tmp_path / "measured.json", tmp_path / "other.json"
    good.write_text(text)
    bad.write_text('{"format": "another"}')
    page = open_modeler("?chip=h100-sxm-80gb&nodes=12&tp=8&pp=4&microbatches=8", answered)
    before = card(page, 0)
    load = page.get_by_label("Rates measured by measure.py")
    load.set_input_files(bad)
    expect(page.locator("#modeler .tool-message")).to_contain_text(
        'measured file: expected "format"'
    )
    expect(page.get_by_role("button", name="Forget it")).to_be_hidden()
    load.set_input_files(good)
    addressed(page, measured=rates)
    settled(page)
    expect(page.locator("#modeler .tool-message")).to_have_count(0)
    assert card(page, 0) != before
    step = training_step(
        model="llama-3-70b", nodes=12, gpus_per_node=8, tp=8, pp=4, microbatches=8, measured=rates
    )
    assert f"{step.predicted.step_time_s:.3g}" in " ".join(
        page.locator(".modeler-answer").inner_text().split()
    )
    page.get_by_role("button", name="Forget it").click()
    addressed(page, measured=None)
    assert card(page, 0) == before
