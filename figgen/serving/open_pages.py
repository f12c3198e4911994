"""The pages that a server's readers have open, which an edit shows before all others."""

from __future__ import annotations

import posixpath
import time
from typing import Any
from urllib.parse import unquote, urlsplit

LONGEST_POLL_S = 90.0
"""An open page asks for news at least once in this time, a hidden one when it is seen again."""


class OpenPages:
    """Notes which pages a MkDocs server is asked for, and which ask it for news."""

    def __init__(self, server: Any) -> None:
        self.mount = server.mount_path
        self.seen: dict[str, float] = {}
        serve = server._serve_request

        def answer(environ: dict[str, Any], start_response: Any) -> Any:
            path = environ["PATH_INFO"]
            if path.startswith("/livereload/"):
                path = unquote(urlsplit(environ.get("HTTP_REFERER", "")).path)
            if path.endswith(("/", ".html")):
                self.seen[address_of(path, self.mount)] = time.monotonic()
            return serve(environ, start_response)

        server._serve_request = answer

    def addresses(self) -> set[str]:
        """Return the addresses of the pages that are open now."""
        now = time.monotonic()
        return {at for at, seen_s in self.seen.items() if now - seen_s < LONGEST_POLL_S}


def address_of(path: str, mount: str) -> str:
    """Return a requested path as MkDocs writes the address of a page; the first page's is empty."""
    inner = path.removeprefix(mount).removesuffix("index.html")
    folder = "/" if inner.endswith("/") else ""
    return posixpath.normpath(inner) + folder if inner else ""
