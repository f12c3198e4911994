"""One tab shared by all tests of a worker: a new tab is a new process, which takes 0.7 s of
processor time, more than most tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, CDPSession, Error, Page

DEFAULT = {"width": 1280, "height": 720}
NOTHING = "null"  # what Playwright calls an emulation that is taken back
OUTSIDE = -1


class Tab:
    """A page that is lent to one test after another and remembers nothing of the previous one.

    Tests that change what cannot be undone (scripts that run before a page's, functions put into
    it, a clock), or that listen to its events, need a page of their own.
    """

    def __init__(self, profile: BrowserContext) -> None:
        self.profile = profile
        self._page: Page | None = None
        self._session: CDPSession | None = None

    @contextmanager
    def lent(self) -> Iterator[Page]:
        """Yield the page for one test; if it cannot be cleaned, the next test gets a new one."""
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
        """Open a page in a window without tabs and address bar.

        The browser redraws those some forty times while a page loads, even headless, which is a
        sixth of the processor time of loading it.
        """
        opener = self.profile.new_page()
        with self.profile.expect_page() as opened:
            opener.evaluate("() => { open('about:blank', '', 'popup,noopener'); }")
        opener.close()
        return opened.value

    def _clean(self, page: Page) -> None:
        """Clear what the site stores for the next visit, and what a test sets in a page."""
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
