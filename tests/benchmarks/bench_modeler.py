"""How soon the modeler answers, in Chromium on a processor slowed down four times.

Time runs from the input event to the frame that shows the answer and where the time goes; `all`
runs until every section, recommendation and sensitivity is shown. Nothing here fails.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.bench_tools import PAINTED, SLOWDOWN, first_interactive, newcomer, told

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MODELER = "/tools/modeler/"
CONFIGURATIONS = {
    "96 GPUs": "",
    "512 GPUs": "?nodes=64&tp=8&pp=8&microbatches=32",
    "16,384 GPUs": "?preset=llama-3-405b-8k-16384",
    "16,384 GPUs twice": "?preset=llama-3-405b-131k&compare=1&b.recompute=full",
}
BUILT = """new MutationObserver((_, watcher) => {
  if (!document.querySelector(".modeler-card")) return;
  window.builtAt = performance.now();
  watcher.disconnect();
}).observe(document, { childList: true, subtree: true });"""
# A group of options that is closed takes no keys.
TYPE = """(field, value) => {
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}"""
IDLE = "() => !document.querySelector('#modeler [aria-busy=true]')"


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_input_to_painted(chromium: Browser, site: str, name: str) -> None:
    page = chromium.new_page(viewport={"width": 1366, "height": 900})
    session = page.context.new_cdp_session(page)
    page.goto(f"{site}{MODELER}{CONFIGURATIONS[name]}")
    page.locator(".modeler-card").first.wait_for()
    page.wait_for_function(IDLE, timeout=60_000)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
    chosen = [str(number) for number in (16, 32, 24, 48, 40, 16, 32, 24, 64)]
    times: list[float] = page.evaluate(PAINTED, ["[name=microbatches]", chosen])
    page.wait_for_function(IDLE, timeout=60_000)
    before = page.evaluate("performance.now()")
    page.locator("[name=microbatches]").evaluate(TYPE, "56")
    page.wait_for_timeout(20)
    page.wait_for_function(IDLE, timeout=60_000)
    everything = page.evaluate("performance.now()") - before
    least = min(times)
    print(
        f"\n{name}, CPU ÷{SLOWDOWN}: {told(times)}, least {least:.0f} ms; all {everything:.0f} ms"
    )
    page.close()


def test_first_interactive_and_weight(chromium: Browser, site: str, site_folder: Path) -> None:
    print(first_interactive(chromium, f"{site}{MODELER}", BUILT, ".modeler-card"))
    page, _, asked = newcomer(chromium, BUILT)
    page.goto(f"{site}{MODELER}")
    page.locator(".modeler-card").first.wait_for(timeout=60_000)
    at_start = page.evaluate("[...document.querySelectorAll('link[rel=modulepreload]')].length")
    page.wait_for_function(IDLE, timeout=60_000)
    idle = set(asked)
    page.locator("[data-how=step]").first.click()
    page.locator("#modeler-how").wait_for()

    def weight(paths: set[str]) -> float:
        own = {p for p in paths if "/javascripts/" in p and p.endswith(".js")}
        own = {p for p in own if "/tools/" in p or "/engine/" in p or "formula" in p}
        return sum(len(gzip.compress((site_folder / p[1:]).read_bytes(), 9)) for p in own) / 1000

    print(
        f"{at_start} modules at start; script {weight(idle):.1f} kB gz, "
        f"with worked lines {weight(set(asked)):.1f} kB"
    )
    page.close()
