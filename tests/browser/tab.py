"""One tab for all tests of a worker: a new one is a process of its own, and takes the processor
0.7 s, more than most of what is looked at in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from playwright.sync_api import Error

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, CDPSession, Page

DEFAULT = {"width": 1280, "height": 720}
NOTHING = "null"  # what Playwright calls an emulation that is taken back
OUTSIDE = -1


class Tab:
    """A page that is lent to one test after another and remembers nothing of the last one.

    What cannot be taken back (scripts that run before a page's, functions put into it, a clock)
    needs a page of the test's own, and so does who listens to its events.
    """

    def __init__(self, profile: BrowserContext) -> None:
        self.profile = profile
        self._page: Page | None = None
        self._session: CDPSession | None = None

    @contextmanager
    def lent(self) -> Iterator[Page]:
        """The page for one test; where it cannot be cleaned, the next test gets a new one."""
        page = self._page
        if page is None or page.is_closed():
            page = self._opened()
            self._session = self.profile.new_cdp_session(page)
        self._page = None
        yield page
        try:
            self._clean(page)
        except Error:  # it is still on the way to a page that cannot be reached, or has crashed
            page.close()
        else:
            self._page = page

    def _opened(self) -> Page:
        """A page in a window without tabs and an address to type in.

        The browser redraws them some forty times while a page loads, headless or not: a sixth
        of what loading it takes the processor.
        """
        opener = self.profile.new_page()
        with self.profile.expect_page() as opened:
            opener.evaluate("() => { open('about:blank', '', 'popup,noopener'); }")
        opener.close()
        return opened.value

    def _clean(self, page: Page) -> None:
        """Clear what the site keeps for the next visit, and what a test sets in a page."""
        assert self._session is not None
        for other in self.profile.pages:
            if other != page:
                other.close()
        page.unroute_all(behavior="ignoreErrors")
        address = urlsplit(page.url)
        if address.scheme == "http":
            what = {"origin": f"http://{address.netloc}", "storageTypes": "local_storage"}
            self._session.send("Storage.clearDataForOrigin", what)
            page.evaluate("() => { try { sessionStorage.clear() } catch {} }")
        page.goto("about:blank")
        page.mouse.move(OUTSIDE, OUTSIDE)  # what lies under it would be hovered over
        self._session.send("Page.resetNavigationHistory")
        page.emulate_media(
            media=NOTHING, color_scheme=NOTHING, reduced_motion=NOTHING, forced_colors=NOTHING
        )
        if page.viewport_size != DEFAULT:
            page.set_viewport_size({**DEFAULT})
