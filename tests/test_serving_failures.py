"""What a server shows when a build fails: a red box that disappears when the mistake is fixed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from mkdocs.exceptions import Abort, BuildError, PluginError

from figgen.errors import InputError
from figgen.serving.memory import Memory
from figgen.serving.open_pages import LONGEST_POLL_S, OpenPages
from figgen.serving.refused import in_words, show_failures
from figgen.units import parse_quantity


class Server:
    """The part of MkDocs' server that is notified of builds and asked for pages."""

    def __init__(self, build: Callable[[], None]) -> None:
        self.builder: Callable[..., None] = build
        self._epoch_cond = threading.Condition()
        self._visible_epoch = self._wanted_epoch = 1
        self.mount_path = "/"

    def _serve_request(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [b"the page"]

    def _inject_js_into_html(self, content: bytes, epoch: int) -> bytes:
        return content.replace(b"</body>", b"<script>livereload</script></body>")

    def get(self, path: str) -> tuple[str, str]:
        said: list[str] = []
        answer = self._serve_request({"PATH_INFO": path}, lambda status, _: said.append(status))
        return said[0], b"".join(answer).decode()


def broken(what: str) -> BaseException:
    """Return an error as it ends a build."""
    try:
        if what == "glossary":
            raise InputError("docs/glossary.toml: tp.means", expected="a text", got=3)
        if what == "python":
            compile("def f(:\n", "figgen/figures/x.py", "exec")
        if what == "list":
            try:
                raise PluginError("glossary.toml:2: no") from InputError("glossary.toml:2: no")
            except BuildError:
                raise Abort("Aborted with a BuildError!")  # noqa: B904
        if what == "settings":
            try:
                raise BuildError("Config value 'nav': <b> is no list")
            except BuildError:
                raise Abort("Aborted with a BuildError!")  # noqa: B904
        return KeyError("theme")
    except (Exception, SystemExit) as error:
        return error


SAID = {
    "glossary": "docs/glossary.toml: tp.means: expected a text, got 3",
    "python": "x.py:1: ",
    "list": "glossary.toml:2: no",
    "settings": "BuildError: Config value 'nav': <b> is no list",
    "other": "KeyError: 'theme'",
}


@pytest.mark.parametrize("what", SAID)
def test_a_failed_build_is_a_red_box_until_the_next_one_works(what: str) -> None:
    """The server used to give no answer, or the terminal a traceback of which only the last line
    helped."""
    ends: list[BaseException | None] = [broken(what), None]

    def build() -> None:
        if error := ends.pop(0):
            raise error

    server, told = Server(build), list[str]()
    show_failures(server, told.append, Memory())
    server.builder()
    status, page = server.get("/guide/memory/")
    assert status.startswith("500")
    assert "This site could not be built" in page
    assert "livereload" in page
    assert "<b>" not in page
    assert SAID[what] in told[0]
    assert "\n" not in told[0]
    assert server.get("/assets/site.css")[1] == "the page"
    assert server.get("/livereload/1/2")[1] == "the page"
    server.builder()
    assert server.get("/guide/memory/") == ("200 OK", "the page")


def test_a_script_is_served_once_it_is_written() -> None:
    """Scripts are written after the pages are shown; a page must not run those of an old one."""
    memory, begun, written = Memory(), threading.Event(), list[str]()
    server = Server(lambda: None)
    show_failures(server, written.append, memory)
    memory.scripts = {"assets/javascripts/tools/planner.js": "plan()"}
    memory.writing = memory.later(lambda: begun.wait() and written.append("written"))
    assert server.get("/guide/memory/") == ("200 OK", "the page")
    assert server.get("/assets/javascripts/page.js") == ("200 OK", "the page")
    assert written == []
    threading.Timer(0.05, begun.set).start()
    assert server.get("/assets/javascripts/tools/planner.js") == ("200 OK", "the page")
    assert written == ["written"]


def test_a_postponed_page_is_served_once_it_is_built() -> None:
    memory, told = Memory(), list[str]()
    server = Server(lambda: None)
    show_failures(server, told.append, memory)
    memory.postponed = {"guide/memory/", "guide/memory/picture.svg", ""}
    assert server.get("/guide/zero-fsdp/") == ("200 OK", "the page")
    for path in ("/guide/memory/", "/guide/memory/index.html", "/guide/memory/picture.svg", "/"):
        memory.postponed = {"guide/memory/", "guide/memory/picture.svg", ""}
        threading.Timer(0.1, memory.postponed.clear).start()
        assert server.get(path) == ("200 OK", "the page")
        assert not memory.postponed


def test_pages_are_open_that_were_asked_for_or_that_ask_for_news() -> None:
    server = Server(lambda: None)
    server.mount_path = "/site/"
    opened = OpenPages(server)
    server.get("/site/")
    server.get("/site/guide/memory/index.html")
    server.get("/site/assets/page.css")
    referer = "http://127.0.0.1:8000/site/guide/zero-fsdp/#how"
    server._serve_request({"PATH_INFO": "/livereload/1/2", "HTTP_REFERER": referer}, print)
    assert opened.addresses() == {"", "guide/memory/", "guide/zero-fsdp/"}
    opened.seen[""] -= LONGEST_POLL_S
    assert opened.addresses() == {"guide/memory/", "guide/zero-fsdp/"}


def test_a_page_whose_postponed_build_fails_is_a_red_box() -> None:
    told = list[str]()
    memory = Memory(tell=lambda error: told.append(in_words(error)))
    server = Server(lambda: None)
    show_failures(server, told.append, memory)
    memory.postponed = {"guide/memory/"}

    def again() -> None:
        try:
            raise BuildError("no such page")
        except BuildError:
            raise Abort("Aborted with a BuildError!")  # noqa: B904

    memory.later(again)
    status, page = server.get("/guide/memory/")
    assert status.startswith("500")
    assert "no such page" in page
    assert told == ["BuildError: no such page"]


def test_a_failure_after_the_pages_are_shown_is_a_red_box_until_the_next_build() -> None:
    told = list[str]()
    memory = Memory(tell=lambda error: told.append(in_words(error)))
    server = Server(lambda: None)
    show_failures(server, told.append, memory)

    def work() -> None:
        raise InputError("models/step.py:3", expected="annotations")

    memory.later(work).join()
    assert told == ["models/step.py:3: expected annotations"]
    status, page = server.get("/guide/memory/")
    assert status.startswith("500")
    assert told[0] in page
    memory.refresh()
    assert server.get("/guide/memory/") == ("200 OK", "the page")


def test_an_error_of_our_code_is_told_with_its_place() -> None:
    with pytest.raises(TypeError) as raised:
        parse_quantity(None)  # type: ignore[arg-type]
    assert "(quantity_text.py:" in in_words(raised.value)
