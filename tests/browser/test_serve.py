"""`make serve` shows a saved edit in the open page, and redraws exactly what the edit changed."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.paths import PIPELINE, address_of
from tests.browser.site import PATIENCE_S, copy_of_the_project, few_pages, processor_s

ROOT = Path(__file__).parents[2]
SOURCES = ("index.md", "guide/communication-roofline.md", "guide/pipeline-schedules.md")
FIGURE = re.compile(r'<figure class="figgen" id="([^"]+)"[^>]*>(.*?)</figure>', re.S)
PICTURE = re.compile(r"[0-9a-f]{40}")
# MkDocs is asked for any free port and writes down which one it took.
TELL_PORT = """
from pathlib import Path

def on_serve(server, **_):
    listen = server.server_activate
    def listen_and_tell():
        listen()
        Path("port.new").write_text(str(server.server_port))
        Path("port.new").replace("port")
    server.server_activate = listen_and_tell
"""
HOOKS = (*re.findall(r"hooks/(\w+)\.py", (ROOT / "mkdocs.yml").read_text("utf-8")), "tell_port")


def until(condition: Callable[[], bool], pid: int, otherwise: Callable[[], str]) -> None:
    """Wait for a condition that has no event, as long as the server is computing."""
    give_up, used = time.monotonic() + PATIENCE_S, processor_s(pid)
    while not condition():
        if time.monotonic() > give_up:
            if used == (used := processor_s(pid)):
                pytest.fail(otherwise(), pytrace=False)
            give_up = time.monotonic() + PATIENCE_S
        time.sleep(0.05)


@dataclass(frozen=True, slots=True)
class Server:
    """A running `mkdocs serve` on a working copy of the project."""

    folder: Path
    address: str
    pid: int

    def log(self) -> str:
        return (self.folder / "serve.log").read_text(encoding="utf-8")

    def replace(self, name: str, old: str, new: str) -> None:
        """Replace `old`, which occurs once in the file."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{name} has changed: say what to edit there now"
        edited = self.folder / "edited"
        edited.write_text(text.replace(old, new), encoding="utf-8")
        edited.replace(path)

    def edit(self, name: str, old: str, new: str) -> set[str]:
        """Replace text, wait as an open page does, and return the pictures that the build drew."""
        before, known = self.epoch(0), self.pictures()
        self.replace(name, old, new)
        self.epoch(before, f"no new build after an edit of {name}")
        return self.pictures() - known

    def epoch(self, after: int, otherwise: str = "no answer") -> int:
        """Return the first build later than `after`, which is what an open page polls for."""
        used = -1.0
        while used != (used := processor_s(self.pid)):
            with contextlib.suppress(TimeoutError):
                return int(self.read(f"/livereload/{after}/0"))
        pytest.fail(f"{otherwise}:\n{self.log()}", pytrace=False)

    def pictures(self) -> set[str]:
        """Return the keys of all pictures drawn so far."""
        return {
            path.name for path in (self.folder / "cache").iterdir() if PICTURE.fullmatch(path.name)
        }

    def read(self, path: str) -> str:
        """Return the file as served.

        Raises OSError if it is incomplete because it is being written.
        """
        with urllib.request.urlopen(f"{self.address}{path}", timeout=PATIENCE_S) as answer:
            try:
                return str(answer.read().decode())
            except (http.client.HTTPException, UnicodeDecodeError) as error:
                raise OSError(path) from error

    def builds_until(self, condition: Callable[[], bool]) -> None:
        """Wait for a build or two, because an edit may be noticed in two parts."""
        shown = self.epoch(0)
        for _ in range(3):
            if condition():
                return
            shown = self.epoch(shown, "no new build")
        assert condition(), self.log()

    def has(self, source: str) -> bool:
        """Return whether this page is served; during a build, the server delays its response."""
        try:
            return "<h1" in self.read(address_of(source))
        except urllib.error.HTTPError:
            return False

    def finds(self, word: str) -> bool:
        """Return whether the search index contains this word by now."""
        with contextlib.suppress(OSError, ValueError):
            cuts = json.loads(self.read("/search/head.json"))["cuts"]
            piece = sum(cut <= word for cut in cuts) - 1
            return word in json.loads(self.read(f"/search/words-{piece}.json"))
        return False

    def figures(self) -> dict[str, str]:
        """Return every figure as shown in the pages, by `/page/#id`."""
        return {
            f"{path}#{name}": html
            for path in map(address_of, SOURCES)
            for name, html in FIGURE.findall(self.read(path))
        }

    def listed(self) -> list[dict[str, Any]]:
        """Return `figures.json`, empty until it is written after the page is shown."""
        with contextlib.suppress(OSError, ValueError):
            return list(json.loads(self.read("/figures.json")))
        return []

    def manifest(self) -> tuple[dict[str, str], dict[str, tuple[str, float]]]:
        """Return the digest of every picture's data, and what each call in a sentence
        shows and is."""
        pictures: dict[str, str] = {}
        shown: dict[str, tuple[str, float]] = {}
        until(lambda: bool(self.listed()), self.pid, lambda: f"no figures.json:\n{self.log()}")
        for entry in self.listed():
            if "id" in entry:
                page = entry["where"].partition(":")[0]
                pictures[f"{page}#{entry['id']}"] = entry["data_sha256"]
            else:
                shown.setdefault(entry["call"], (entry["shown"], entry["value"]))
        return pictures, shown


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Some pages with live reload; one server for all tests, each of which undoes its edits."""
    folder = copy_of_the_project(tmp_path_factory.mktemp("served"))
    configuration = folder / few_pages(folder, SOURCES)
    (folder / "hooks" / "tell_port.py").write_text(TELL_PORT, encoding="utf-8")
    hooks = ", ".join(f"hooks/{name}.py" for name in HOOKS)
    with configuration.open("a", encoding="utf-8") as text:
        text.write(f"hooks: [{hooks}]\n")
    serve = ("serve", "--livereload", "--config-file", configuration.name, "-a", "127.0.0.1:0")
    settings = {"FIGGEN_CACHE": str(folder / "cache"), "NO_MKDOCS_2_WARNING": "1"}
    with (folder / "serve.log").open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "mkdocs", *serve],
            cwd=folder,
            env=os.environ | settings,
            stdout=output,
            stderr=output,
        )
    log, port = folder / "serve.log", folder / "port"
    try:
        until(
            lambda: port.exists() or process.poll() is not None,
            process.pid,
            lambda: f"mkdocs serve did not come up:\n{log.read_text()}",
        )
        assert process.poll() is None, log.read_text()
        yield Server(folder, f"http://127.0.0.1:{port.read_text()}", process.pid)
    finally:
        process.kill()
        process.wait(PATIENCE_S)


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    assert before.keys() == after.keys()
    return {name for name in before if before[name] != after[name]}


def test_changed_constant_of_the_catalog_redraws_the_figures_whose_numbers_changed(
    server: Server,
) -> None:
    """A faster H100 changes measurements relative to its peak and a step on it, but no schedule."""
    file, old, new = (
        "figgen/catalog/accelerators.toml",
        '989.4 TFLOP/s"\nfp16',
        '1200 TFLOP/s"\nfp16',
    )
    text = (ROOT / file).read_text(encoding="utf-8")
    entry = text[text.index("[h100-sxm-80gb]") :].partition("\n[")[0]
    assert old in entry
    html, (data, _) = server.figures(), server.manifest()
    before = server.pictures()
    server.edit(file, entry, entry.replace(old, new, 1))
    # The manifest is the last to be written, after the pages that nobody has open.
    new_data, _ = server.manifest()
    new_html, drawn = server.figures(), server.pictures() - before

    moved = changed(data, new_data)
    places = {name.partition("#")[0] for name in moved}
    assert places == {
        "index.md",
        "guide/communication-roofline.md",
        "guide/pipeline-schedules.md",
    }
    assert len(drawn) == len(moved) >= 3
    assert {name.rpartition("#")[2] for name in changed(html, new_html)} == {
        without_preset(name, new_html) for name in moved
    }
    assert server.edit(file, entry.replace(old, new, 1), entry) == set()
    assert server.figures() == html


def without_preset(picture: str, html: dict[str, str]) -> str:
    """Return the figure of a picture; a figure with tabs has one picture per tab."""
    anchor = picture.rpartition("#")[2]
    names = {name.rpartition("#")[2] for name in html}
    return next(name for name in sorted(names, key=len, reverse=True) if anchor.startswith(name))


def test_changed_formula_changes_the_sentences_that_use_it(server: Server) -> None:
    """`bubble_fraction` is used in sentences; the pictures come from the simulator instead."""
    html, (data, shown) = server.figures(), server.manifest()
    file = "figgen/formulas/pipeline.py"
    old, new = (
        f'{end}\n\n\n@formula(symbol=r"o_\\text{{bubble}}"'
        for end in ("/ (microbatches + stages - 1)", "/ (microbatches + stages)")
    )
    drawn = server.edit(file, old, new)
    _, (new_data, new_shown) = server.figures(), server.manifest()

    assert drawn == set()
    assert changed(data, new_data) == set()
    assert shown.keys() == new_shown.keys()
    moved = {call for call in shown if shown[call] != new_shown[call]}
    assert moved == {call for call in shown if call.startswith("bubble_fraction(")} != set()
    assert new_shown["bubble_fraction(stages=4, microbatches=8)"][0] == "25%"
    assert server.edit(file, new, old) == set()
    assert server.figures() == html


def test_an_edited_sentence_can_be_searched_for(server: Server) -> None:
    """The index is rebuilt in the background after the page is shown."""
    page, old = SOURCES[0], "\n\n## "
    text = (server.folder / "docs" / page).read_text(encoding="utf-8")
    before, _, rest = text.partition(old)
    server.edit(f"docs/{page}", text, f"{before}\n\nQuagmire.{old}{rest}")
    until(lambda: server.finds("quagmir"), server.pid, lambda: f"not in the index:\n{server.log()}")
    server.edit(f"docs/{page}", f"{before}\n\nQuagmire.{old}{rest}", text)


def test_mistake_is_a_red_box_in_the_open_page_until_it_is_mended(
    server: Server, page: Page
) -> None:
    """Nobody reloads the page: a saved edit reaches it by itself."""
    from playwright.sync_api import expect

    page.goto(f"{server.address}{PIPELINE}")
    count = page.locator("figure.figgen").count()
    file = "docs/guide/pipeline-schedules.md"
    text = (ROOT / file).read_text(encoding="utf-8")
    fence = re.search(r"```figure\nfigure: (?:.*\n)*?```\n", text)
    assert fence is not None
    line = text[: fence.start()].count("\n") + 2
    sound, broken = fence[0], fence[0].replace("figure: ", "figure: misspelt-", 1)

    server.edit(file, sound, broken)
    box = page.locator("div.figgen-error")
    expect(box).to_contain_text("unknown figure 'misspelt-")
    assert f"{file}:{line}: unknown figure 'misspelt-" in server.log()
    figures = page.locator("figure.figgen")
    expect(figures).to_have_count(count - 1)

    server.edit(file, broken, sound)
    expect(box).to_have_count(0)
    expect(figures).to_have_count(count)


def test_a_changed_hook_is_told_of_by_its_name(server: Server) -> None:
    """MkDocs loads hooks only once."""
    name = "hooks/about.py"
    file = server.folder / name
    text, said = file.read_text(encoding="utf-8"), f"{file} changed; restart the server to use it"
    assert said not in server.log()
    server.edit(name, text, f"{text}# a remark\n")
    assert said in server.log()
    server.edit(name, f"{text}# a remark\n", text)


def test_a_page_that_is_removed_while_serving_is_gone_and_comes_back(server: Server) -> None:
    """Nothing else changes: the other pages stay as they are, and links to it are reported."""
    file = server.folder / "docs" / SOURCES[1]
    aside = server.folder / "aside.md"
    before = server.figures()
    file.rename(aside)
    server.builds_until(lambda: not server.has(SOURCES[1]))
    assert all(server.has(source) for source in SOURCES if source != SOURCES[1])
    aside.rename(file)
    server.builds_until(lambda: server.has(SOURCES[1]))
    assert server.figures() == before


def test_code_that_cannot_be_imported_does_not_end_the_server(server: Server) -> None:
    """Readers see the error on every page until a build succeeds again."""
    file, sound = "figgen/units.py", (ROOT / "figgen" / "units.py").read_text(encoding="utf-8")
    seen = server.folder / "seen"
    half = f"open({str(seen)!r}, 'w').close()\nraise SyntaxError('half a module')\n"
    before = server.epoch(0)
    server.replace(file, sound, half)
    until(seen.exists, server.pid, lambda: f"the broken module was not imported:\n{server.log()}")
    server.epoch(before, "no answer while the code is broken")
    with pytest.raises(urllib.error.HTTPError) as refused:
        server.read("/")
    assert refused.value.code == 500
    assert "SyntaxError: half a module" in refused.value.read().decode()
    assert server.edit(file, half, sound) == set()
    assert "<h1" in server.read("/")
