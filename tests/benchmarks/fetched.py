"""Prints as JSON how much a browser fetches for a page before its reader does anything.

It is a separate program because the environment of the compared tools has no browser driver.
"""

from __future__ import annotations

import gzip
import json
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from tests.browser import chromium
from tests.browser.site import serve
from tests.browser.waits import at_rest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def sizes(browser: Browser, site: Path, pages: list[str]) -> list[int]:
    """Return the bytes sent (gzip where it helps) for each page, a path in `site`, on a first
    visit."""
    with serve(site) as address:
        return [sum(map(sent, fetched(browser, address, site, page))) for page in pages]


def fetched(browser: Browser, address: str, site: Path, page: str) -> set[Path]:
    asked: set[str] = set()
    with browser.new_context(viewport={"width": 1366, "height": 900}) as profile:
        opened = profile.new_page()
        opened.on("request", lambda request: asked.add(request.url))
        at_rest(opened, f"{address}/{page}")
    local = {unquote(urlsplit(url).path).lstrip("/") for url in asked if url.startswith(address)}
    files = {
        site / name / "index.html" if (site / name).is_dir() else site / name for name in local
    }
    return {file for file in files if file.is_file()}


@cache
def sent(file: Path) -> int:
    content = file.read_bytes()
    return min(len(content), len(gzip.compress(content, 9, mtime=0)))


def main() -> None:
    from playwright.sync_api import sync_playwright

    path = chromium.find()
    if path is None:
        sys.exit("no Chromium to weigh pages with")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path,
            args=chromium.flags(),
            chromium_sandbox=not chromium.is_root(),
        )
        print(json.dumps(sizes(browser, Path(sys.argv[1]), sys.argv[2:])))
        browser.close()


if __name__ == "__main__":
    main()
