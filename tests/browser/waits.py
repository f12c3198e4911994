"""What the tests wait for after what they do: the frame, the size, the address of exactly that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    """At the end of the block, wait until the page has asked for nothing for half a second.

    Playwright's `networkidle` never comes where a busy page asks for nothing for half a second
    before it has loaded, and for something then: the timer, which has run out, isn't started again.
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
    """Open a page and wait until it has run and asked for nothing for half a second.

    To wait for that rest alone ends before a slow machine has read the page: nothing is asked for
    meanwhile.
    """
    with resting(page):
        page.goto(address)


def drawn(page: Page) -> None:
    """Wait until a frame has what was done so far, and what observers of its sizes made of it.

    The tools draw once a frame, so that until then the answer to an earlier edit stands.
    """
    page.evaluate(NEXT_FRAME)


def resized(page: Page, width: int, height: int) -> None:
    """Give the window a size, and wait until the page has followed."""
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_function(OF_SIZE, arg=[width, height])
    drawn(page)


def addressed(page: Page, **keys: object) -> None:
    """Wait until the address says this of these keys, None for one that it must not have.

    It follows when the reader rests, a whole answer after the edit: one that has the last of
    several edits has all of them, one that has the first may lack the others.
    """
    # Pairs: of a dict Playwright leaves out what is None.
    wanted = [[key, None if value is None else str(value)] for key, value in keys.items()]
    page.wait_for_function(SAYS, arg=wanted)


def press(page: Page, control: Locator) -> None:
    """Press a control and hold it, once it stands still: what comes near it may move it."""
    control.hover()
    page.mouse.down()


HELD = re.compile(r"\?held$")
PASSED_BY = """async () => {
  while ((await fetch("?held", { method: "HEAD" })).status !== 204) {}
}"""


class Held:
    """The answers at `addresses`, kept back until the test lets them come, or fail.

    A page that stands asks past Playwright for a moment after the call that would hold it: one
    question of 19 did under `--throttle 10`, which no test then heard of. So it asks for nothing
    until it is held.
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
        """Let them come, and what is asked for from now on."""
        for route in self._freed():
            route.continue_()

    def fail(self) -> None:
        """Let them fail; what is asked for from now on comes."""
        for route in self._freed():
            route.abort()
