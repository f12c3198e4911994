"""How soon the tools answer, in Chromium on a processor slowed down four times.

Time runs from the input event to the frame that shows the result, as the median of nine; other work
on the machine makes it longer. Nothing here fails, the numbers are only printed.
"""

from __future__ import annotations

import gzip
import statistics
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Page

SLOWDOWN = 4
MAP = "/tools/rank-map/"
LAYOUTS = {
    8: "?preset=map-8",
    128: "?preset=map-128",
    512: "?nodes=64&tp=8&pp=4",
    16384: "?preset=llama-3-405b-8k-16384",
    131072: "?nodes=16384&tp=8&pp=16",
}
# A shared phone connection: 1.6 Mbit/s down, 150 ms there and back.
NETWORK = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 200_000,
    "uploadThroughput": 94_000,
}

PAINTED = """async ([selector, values]) => {
  const painted = () => new Promise((done) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(0);
  }));
  const times = [];
  for (const value of values) {
    await new Promise((done) => setTimeout(done, 250));
    const control = document.querySelector(selector.replace("VALUE", value));
    const before = performance.now();
    if (control.matches("button")) control.click();
    else {
      control.value = value;
      control.dispatchEvent(new Event("input", { bubbles: true }));
    }
    await painted();
    times.push(performance.now() - before);
  }
  return times;
}"""
PAN = """async () => {
  const box = document.querySelector(".map-box");
  const edge = box.getBoundingClientRect();
  box.setPointerCapture = () => {};
  const move = (kind, x, y) => box.dispatchEvent(new PointerEvent(kind, {
    bubbles: true, pointerId: 1, pointerType: "mouse", button: 0, buttons: 1,
    clientX: edge.left + x, clientY: edge.top + y,
  }));
  move("pointerdown", 400, 400);
  const frames = [];
  let last = await new Promise(requestAnimationFrame);
  for (let step = 1; step <= 120; step++) {
    move("pointermove", 400 - 3 * step, 400 - 2 * step);
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - last);
    last = now;
  }
  move("pointerup", 0, 0);
  return frames;
}"""
BUILT = """new MutationObserver((_, watcher) => {
  if (!document.querySelector(".map-columns")) return;
  window.builtAt = performance.now();
  watcher.disconnect();
}).observe(document, { childList: true, subtree: true });"""


def opened(browser: Browser, address: str, slowdown: int) -> tuple[Page, CDPSession]:
    page = browser.new_page(viewport={"width": 1366, "height": 900})
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
    page.goto(address)
    page.locator(".map-box").wait_for()
    page.wait_for_timeout(500)
    return page, session


def newcomer(browser: Browser, script: str) -> tuple[Page, CDPSession, list[str]]:
    """Open a page on a slow processor that runs `script` first; also return the paths
    it requests."""
    page = browser.new_page(viewport={"width": 1366, "height": 900})
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
    page.add_init_script(script)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    return page, session, asked


def slow_down_network(session: CDPSession) -> None:
    """Load everything anew from here on, over a shared phone connection."""
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    session.send("Network.emulateNetworkConditions", NETWORK)


def first_interactive(browser: Browser, address: str, script: str, ready: str) -> str:
    """Time until the tool can be used, on the first and second visits of five new readers, and
    slowly.

    `script` records in `window.builtAt` when that is, and `ready` selects the element that shows
    it.
    """

    def visit(page: Page) -> float:
        page.goto(address)
        page.locator(ready).first.wait_for(timeout=60_000)
        return float(page.evaluate("window.builtAt"))

    visits = []
    for _ in range(5):
        page, session, _ = newcomer(browser, script)
        visits.append((visit(page), visit(page)))
        if len(visits) == 5:
            slow_down_network(session)
            slow = visit(page)
        page.close()
    first, second = (told(list(times)) for times in zip(*visits, strict=True))
    return (
        f"\nfirst interactive, CPU ÷{SLOWDOWN}: first visit {first}; second {second}; "
        f"slow network {slow:.0f} ms"
    )


def told(times: list[float]) -> str:
    return f"median {statistics.median(times):.0f} ms, worst {max(times):.0f} ms"


@pytest.mark.parametrize("gpus", LAYOUTS)
def test_input_to_painted(chromium: Browser, site: str, gpus: int) -> None:
    page, _ = opened(chromium, f"{site}{MAP}{LAYOUTS[gpus]}", SLOWDOWN)
    sizes = page.evaluate(PAINTED, ["[name=tp]", [4, 8, 2, 8, 4, 2, 8, 4, 8]])
    shows = page.evaluate(
        PAINTED, ["[data-show=VALUE]", ["dp", "pp", "tp", "dp", "none", "pp", "dp", "tp", "pp"]]
    )
    print(f"\n{gpus:,} GPUs, CPU ÷{SLOWDOWN}: a size {told(sizes)}; a communicator {told(shows)}")
    page.close()


@pytest.mark.parametrize("slowdown", [1, SLOWDOWN])
def test_panning_at_16384_gpus(chromium: Browser, site: str, slowdown: int) -> None:
    page, _ = opened(chromium, f"{site}{MAP}{LAYOUTS[16384]}", slowdown)
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    frames: list[float] = page.evaluate(PAN)
    late = sum(time > 20 for time in frames)
    print(
        f"\npanning 16,384 GPUs, CPU ÷{slowdown}: {1000 / statistics.mean(frames):.0f} frames/s, "
        f"{late} of {len(frames)} late"
    )
    page.close()


def test_first_interactive_and_weight(chromium: Browser, site: str, site_folder: Path) -> None:
    print(first_interactive(chromium, f"{site}{MAP}", BUILT, ".map-columns"))
    page, _, asked = newcomer(chromium, BUILT)
    page.goto(f"{site}{MAP}")
    page.locator(".map-columns").wait_for(timeout=60_000)
    own = {p for p in asked if "/javascripts/tools/" in p or "/javascripts/engine/" in p}
    own.add("/assets/javascripts/formulas.js")
    weight = sum(len(gzip.compress((site_folder / p.lstrip("/")).read_bytes(), 9)) for p in own)
    print(f"script {weight / 1000:.1f} kB gz")
    page.close()
