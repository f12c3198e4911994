"""A red box shown in place of every page while a server's last build has failed."""

from __future__ import annotations

import time
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from figgen.errors import InputError
from figgen.serving.code import last_place
from figgen.serving.memory import Memory
from figgen.serving.open_pages import address_of

PAUSE_S = 0.05
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Not built</title></head>
<body style="font: 16px/1.5 sans-serif; margin: 3rem auto; max-width: 48rem; padding: 0 1rem">
<div style="border: 2px solid #c62828; padding: 0 1rem"><h1>This site could not be built</h1>
<p>{said}</p><p>The page returns by itself once the mistake is fixed.</p></div></body></html>"""


def in_words(error: BaseException) -> str:
    """Describe in one line the error that ended a build, with its place if known."""
    if type(error).__name__ == "Abort" and error.__context__:
        error = error.__context__  # MkDocs says no more than that it aborts
    if isinstance(error.__cause__, InputError):
        error = error.__cause__
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, SyntaxError):
        place = f"{Path(error.filename).name}:{error.lineno}: " if error.filename else ""
        return f"{place}SyntaxError: {error.msg}"
    found = last_place(error)
    place = f" ({Path(found[0]).name}:{found[1]})" if found else ""
    return " ".join(f"{type(error).__name__}: {error}".split()) + place


def show_failures(server: Any, tell: Callable[[str], object], memory: Memory) -> None:
    """Make a MkDocs server answer with the error after a failed build.

    Browsers are told to reload, and the next build that succeeds shows the pages again. A request
    for a script waits until `memory` has written it, which it may do after the pages; a request for
    a postponed page waits until that page is built.
    """
    build, serve = server.builder, server._serve_request
    failed: list[str] = []

    def builder(*given: Any) -> None:
        try:
            build(*given)
            failed.clear()
        except (Exception, SystemExit) as error:
            failed[:] = [in_words(error)]
            tell(failed[0])

    def answer(environ: dict[str, Any], start_response: Callable[..., object]) -> Any:
        path = environ["PATH_INFO"]
        page = path.endswith(("/", ".html")) and not path.startswith("/livereload/")
        address = address_of(path, server.mount_path)
        if page or path.endswith(".js"):
            with server._epoch_cond:
                server._epoch_cond.wait_for(lambda: server._visible_epoch == server._wanted_epoch)
        if address in (memory.scripts or ()) and memory.writing:
            memory.writing.join()
        while address in memory.postponed and not memory.failure:
            time.sleep(PAUSE_S)
        said = failed or [in_words(error) for error in [memory.failure] if error]
        if not (page and said):
            return serve(environ, start_response)
        content = PAGE.format(said=escape(said[0])).encode()
        content = server._inject_js_into_html(content, server._visible_epoch)
        start_response("500 Not built", [("Content-Type", "text/html; charset=utf-8")])
        return [content]

    server.builder, server._serve_request = builder, answer
