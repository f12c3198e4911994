"""Operates the modeler's page for tests, and gives the values that it is compared with."""

from __future__ import annotations

import contextlib
import io
import json
import math
import random
import shlex
from typing import Any

from playwright.sync_api import Locator, Page

from figgen.__main__ import main
from figgen.models.shape.adapters import ADAPTED, FROZEN
from figgen.models.shape.recipes import RECIPES
from tests.browser.waits import drawn

PATH = "/tools/modeler/"
FIRST = "nodes=12&tp=8&pp=4&microbatches=8"
COME_NEAR = """async () => {
  const [sections, y] = [document.querySelectorAll(".modeler-details section"), scrollY];
  const drawn = () => sections[5].querySelector(".modeler-body").childElementCount > 0;
  while (!drawn()) {
    sections[5].scrollIntoView({ behavior: "instant" });
    await new Promise(requestAnimationFrame);
  }
  scrollTo({ top: y, behavior: "instant" });
}"""
QUIET = "() => !document.querySelector('#modeler [aria-busy=true]')"


def answered(page: Page) -> None:
    """Wait until the answer is shown. Later answers are shown before the address is updated."""
    page.locator("#modeler .modeler-card").first.wait_for()


def settled(page: Page) -> None:
    """Wait until the answer to an action and everything below it are shown and nothing is
    computing."""
    answered(page)
    drawn(page)
    # What is not on the screen waits until a reader comes near it.
    page.evaluate(COME_NEAR)
    page.wait_for_function(QUIET)


def card(page: Page, index: int) -> str:
    """Return the text of a card of the answer, on one line."""
    return " ".join(page.locator(".modeler-card").nth(index).inner_text().split())


def section(page: Page, title: str) -> Locator:
    return page.locator("#modeler section", has=page.get_by_role("heading", name=title, exact=True))


def unfold(field: Locator) -> None:
    """Open everything in which a field is folded."""
    field.evaluate(
        "(field) => { for (let box = field; (box = box.parentElement.closest('details')); )"
        " box.open = true; }"
    )


def choose(page: Page, name: str, value: str) -> None:
    """Set a field or choose from a list, as a reader does, and wait for the answer."""
    field = page.locator(f"#modeler [name={name}]")
    unfold(field)
    if field.evaluate("(field) => field.tagName") == "SELECT":
        field.select_option(value)
    else:
        field.fill(value)
    drawn(page)


def takeaway(page: Page) -> Locator:
    """Return the files that can be taken away, which load when a reader is near them."""
    section(page, "Take away").scroll_into_view_if_needed()
    return page.locator("#modeler .modeler-take")


def file_of(page: Page, name: str) -> Any:
    with page.expect_download() as download:
        page.locator(f"[data-file='{name}']").click()
    text = download.value.path().read_text(encoding="utf-8")
    return json.loads(text) if name.endswith(".json") else text


def printed(command: str) -> Any:
    """Return the JSON that the command line prints for `command`."""
    return json.loads(text_of(command))


def text_of(command: str) -> str:
    """Return what the command line prints for `command`."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert main(shlex.split(command)[1:]) == 0
    return said.getvalue()


def same(one: Any, other: Any) -> bool:
    """Assert equal values under equal keys; sums of floats may differ in the last digits."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float | int) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
    return bool(one == other)


TUNED = (
    "model=llama-3-8b&nodes=1&zero=3&microbatches=4&lora_rank=16&frozen_weights=nf4",
    "model=mixtral-8x7b&nodes=4&tp=2&ep=4&etp=1&lora_rank=8&lora_matrices=attention&zero=3",
    "model=llama-3-70b&nodes=4&tp=8&pp=2&microbatches=8&recipe=muon14",
    "model=deepseek-v3&nodes=16&pp=4&ep=32&etp=1&lora_rank=32&recipe=muon14&efficiency=0.4",
)
"""Adapters of frozen weights, the optimizer's matmuls, and both."""


def random_query(rng: random.Random) -> str:
    """Return random choices; about half of them do not fit together."""
    given: dict[str, object] = {
        "nodes": rng.choice((1, 2, 4, 12, 16)),
        "gpus": rng.choice((4, 8, 8, 8)),
        "tp": rng.choice((1, 2, 3, 4, 8)),
        "pp": rng.choice((1, 2, 3, 4)),
        "cp": rng.choice((1, 1, 1, 2)),
        "microbatches": rng.choice(("auto", 1, 5, 8, 24)),
        "model": rng.choice(("llama-3-8b", "llama-3-70b", "gpt-3-175b", "mixtral-8x7b")),
        "schedule": rng.choice(("1f1b", "1f1b", "gpipe", "interleaved-1f1b", "zb1p", "zbv")),
        "zero": rng.randint(0, 3),
        "recompute": rng.choice(("none", "selective", "full")),
        "microbatch_size": rng.choice((1, 1, 2)),
        "sp": rng.choice((1, 1, 1, 0)),
        "double": rng.randint(0, 1),
        "overlap": rng.randint(0, 1),
        "flash": rng.randint(0, 1),
        "chip": rng.choice(("h100-sxm-80gb", "a100-sxm-80gb")),
        "efficiency": rng.choice((0.4, 0.6)),
        "measured": rng.choice(
            (
                "bf16-300000-3_near-250-4_far-20-15",
                "memory-1500_attention-200000_capacity-60",
            )
        ),
    }
    if given["model"] == "mixtral-8x7b":
        given["ep"] = rng.choice((1, 2, 4, 8))
    if rng.random() < 0.4:
        given["lora_rank"] = rng.choice((1, 16, 64))
        given["lora_matrices"] = rng.choice(list(ADAPTED))
        given["frozen_weights"] = rng.choice(list(FROZEN))
    given["recipe"] = rng.choice(list(RECIPES))
    kept = rng.sample(sorted(given), rng.randint(3, len(given)))
    return "&".join(f"{key}={given[key]}" for key in sorted({*kept, "nodes"}))
