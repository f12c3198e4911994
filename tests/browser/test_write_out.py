"""Jobs that readers bring and take away: dropped, chosen, written, and read back."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.modeler import settled, takeaway
from tests.browser.waits import addressed

BRING = "Script, command, configuration or config.json"
JOB = "?model=llama-3-70b&nodes=8&tp=8&pp=4&microbatches=16&schedule=1f1b"
SCRIPT = """#!/bin/bash
torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 4 \\
  --pipeline-model-parallel-size 2 --bf16 --micro-batch-size 2 --global-batch-size 64
"""
DROP = """([text, name]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, { type: "text/plain" }));
  const given = { dataTransfer: data, bubbles: true, cancelable: true };
  document.querySelector("main").dispatchEvent(new DragEvent("drop", given));
}"""


@pytest.mark.parametrize(
    ("software", "more"), [("megatron-lm", ""), ("torchtitan", "&zero=3&recipe=fsdp16")]
)
def test_the_file_of_a_job_is_read_back_as_that_job(
    open_modeler: Callable[..., Page], software: str, more: str
) -> None:
    page = open_modeler(JOB + more)
    box = takeaway(page)
    box.locator(f"[data-software={software}]").click()
    code = box.get_by_label("File that starts the job")
    expect(code).to_contain_text("torchrun --nnodes 8 --nproc-per-node 8")
    text = code.inner_text()
    page.locator("#modeler [name=tp]").fill("4")
    addressed(page, tp=4)
    page.locator(".tool-bring summary").click()
    page.get_by_label(BRING).fill(text)
    page.get_by_role("button", name="Load it").click()
    addressed(page, tp=8, pp=4, nodes=8, microbatches=16)
    settled(page)
    box.locator(f"[data-software={software}]").click()
    expect(code).to_have_text(text)


def test_what_a_framework_cannot_run_is_said(open_modeler: Callable[..., Page]) -> None:
    page = open_modeler(JOB)
    box = takeaway(page)
    box.locator("[data-software=deepspeed]").click()
    expect(box).to_contain_text("divides a job by data parallelism only")
    expect(box.get_by_label("File that starts the job")).to_be_hidden()
    box.locator("[data-software=torchtitan]").click()
    expect(box).to_contain_text("Not in this file: zero_stage")


def test_the_fastest_plan_starts_with_the_state_that_it_counted(page: Page, site: str) -> None:
    """The command used to omit ZeRO 3, so the run would have been out of memory at once."""
    held = "?model=llama-3-8b&nodes=1&tp=1&pp=1&cp=1&zero=3&global_batch=64"
    page.goto(f"{site}/tools/planner/{held}")
    page.locator("[data-write]").click()
    code = page.get_by_label("File that starts the job")
    expect(code).to_contain_text("--data-parallel-sharding-strategy optim_grads_params")
    expect(code).to_contain_text("--global-batch-size 64")


@pytest.mark.parametrize("way", ["drop", "choose"])
def test_a_script_is_taken_dropped_or_chosen(open_modeler: Callable[..., Page], way: str) -> None:
    page = open_modeler("?nodes=1")
    if way == "drop":
        page.evaluate(DROP, [SCRIPT, "train.sh"])
    else:
        file = {"name": "train.sh", "mimeType": "text/x-sh", "buffer": SCRIPT.encode()}
        page.locator(".tool-bring summary").click()
        page.get_by_label("Choose a file").set_input_files([file])
    addressed(page, nodes=4, tp=4, pp=2)
    told = page.locator(".tool-bring .tool-answer")
    expect(told).to_contain_text("Read as megatron-lm")
    expect(told).to_contain_text(re.compile("kept from the page.*Llama"))
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
