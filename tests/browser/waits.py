"""What tests wait for after an action: the next frame, the size, the address of exactly that
action."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Locator, Page, Request, Route

NEXT_FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
OF_SIZE = "([width, height]) => innerWidth === width && innerHeight === height"
SAYS = """(keys) => {
  const query = new URLSearchParams(location.search);
  return keys.every(([key, value]) => query.get(key) === value);
}"""


# Half a second in which no answer was complete.
QUIET = """() => new Promise((done) => {
  let last = performance.now();
  const look = () => {
    const left = last + 500 - performance.now();
    if (left > 0) AbortSignal.timeout(left).addEventListener("abort", look);
    else done();
  };
  new PerformanceObserver(() => { last = performance.now(); }).observe({ type: "resource" });
  look();
})"""
LONGEST_REST = 60


@contextmanager
def resting(page: Page) -> Iterator[None]:
    """At the end of the block, wait until the page has requested nothing for half a second.

    Playwright's `networkidle` never comes if a busy page is idle for half a second before it has
    loaded and makes requests when it does: the timer has expired and isn't started again.
    """
    under_way: set[Request] = set()

    def begin(request: Request) -> None:
        under_way.add(request)

    def end(request: Request) -> None:
        under_way.discard(request)

    page.on("request", begin)
    page.on("requestfinished", end)
    page.on("requestfailed", end)
    try:
        yield
        for _ in range(LONGEST_REST):
            page.evaluate(QUIET)
            # That the script of a worker has come is told to the worker, not to the page.
            at_work = {worker.url for worker in page.workers}
            if all(request.url in at_work for request in under_way):
                break
        else:
            raise AssertionError(f"still under way: {[request.url for request in under_way]}")
    finally:
        page.remove_listener("request", begin)
        page.remove_listener("requestfinished", end)
        page.remove_listener("requestfailed", end)


def at_rest(page: Page, address: str) -> None:
    """Open a page and wait until its scripts have run and it requested nothing for half a second.

    Waiting only for network silence ends before a slow machine has parsed the page, since nothing
    is requested meanwhile.
    """
    with resting(page):
        page.goto(address)


def drawn(page: Page) -> None:
    """Wait until a frame shows everything so far, including the reactions of observers to its
    sizes.

    The tools draw once per frame, so the answer to an earlier edit is shown until then.
    """
    page.evaluate(NEXT_FRAME)


def resized(page: Page, width: int, height: int) -> None:
    """Resize the window, and wait until the page has followed."""
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_function(OF_SIZE, arg=[width, height])
    drawn(page)


def addressed(page: Page, **keys: object) -> None:
    """Wait until the address has these values for these keys; None means the key is absent.

    The address is updated when the reader pauses, and all edits of an answer at once. If it has the
    last of several edits it has all of them; if it has the first, others may be missing.
    """
    # Pairs: of a dict Playwright leaves out what is None.
    wanted = [[key, None if value is None else str(value)] for key, value in keys.items()]
    page.wait_for_function(SAYS, arg=wanted)


def press(page: Page, control: Locator) -> None:
    """Press a control once it no longer moves, since what appears near it may move it."""
    control.hover()
    page.mouse.down()


HELD = re.compile(r"\?held$")
PASSED_BY = """async () => {
  while ((await fetch("?held", { method: "HEAD" })).status !== 204) {}
}"""


class Held:
    """Holds back the responses at `addresses` until the test lets them come or fail.

    For a moment after the call that intercepts requests, a page may still request past Playwright:
    one of 19 requests did so under `--throttle 10`, unnoticed by the test. The page therefore
    requests nothing until interception works.
    """

    def __init__(self, page: Page, addresses: str) -> None:
        self._kept: list[Route] | None = []
        page.route(addresses, self._meet)
        if page.url.startswith("http"):
            page.route(HELD, lambda route: route.fulfill(status=204))
            page.evaluate(PASSED_BY)
            page.unroute(HELD)

    def _meet(self, route: Route) -> None:
        if self._kept is None:
            route.continue_()
        else:
            self._kept.append(route)

    def _freed(self) -> list[Route]:
        assert self._kept, "somebody asked"
        kept, self._kept = self._kept, None
        return kept

    def come(self) -> None:
        """Let the responses come, and all later ones too."""
        for route in self._freed():
            route.continue_()

    def fail(self) -> None:
        """Let the responses fail; later ones come."""
        for route in self._freed():
            route.abort()
