"""The guide without a network: cached pages, and the whole guide as a PDF and an EPUB."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, Route

from figgen.__main__ import main
from figgen.commands.paper import chapters
from tests.browser import chromium as finder
from tests.browser import site as built
from tests.browser.waits import at_rest, resting


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A separate profile, so that files kept offline don't affect other tests."""
    with chromium.new_context() as context:
        context.set_default_timeout(30_000)
        yield context


# The worker keeps an answer after the page has it.
KEPT = """async () => {
  const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
  const own = [location.href, ...loaded].filter((name) => name.startsWith(location.origin));
  const kept = await Promise.all(own.map((name) => caches.match(name)));
  return kept.every(Boolean);
}"""
MEMORY, RINGS = "/guide/memory/", "/guide/ring-all-reduce/"


def test_a_page_that_was_read_can_be_read_again_without_a_network(
    context: BrowserContext, site: str
) -> None:
    page = context.new_page()
    page.goto(site + MEMORY)
    # Registered by hand: the site does so where it is published, not on a loopback address.
    page.evaluate(
        "async () => { await navigator.serviceWorker.register('/sw.js'); "
        "await navigator.serviceWorker.ready }"
    )
    page.reload()
    page.wait_for_function("navigator.serviceWorker.controller !== null")
    with resting(page):
        page.reload()
    page.wait_for_function(KEPT)
    context.set_offline(True)
    page.reload()
    assert page.locator("h1").inner_text().startswith("Memory budgets")
    assert page.evaluate("getComputedStyle(document.querySelector('.md-header')).position") in (
        "sticky",
        "fixed",
    )
    with pytest.raises(Exception, match=r"ERR_(INTERNET_DISCONNECTED|FAILED)"):
        page.goto(site + RINGS)
    context.set_offline(False)
    page.goto(site + RINGS)
    assert page.locator("h1").count() == 1


REGISTER = """async (script) => {
  await navigator.serviceWorker.register(script);
  const ready = await navigator.serviceWorker.ready;
  const begins = (next) => ready.active.addEventListener("statechange", next, { once: true });
  while (ready.active.state !== "activated") await new Promise(begins);
}"""
PAGE = "<!doctype html><title>{0}</title><h1>{0}</h1>"
WRITE = """async ([name, path, digest]) => {
  const kept = await caches.open(name);
  const headers = { "content-type": "text/html", ...(digest && { "x-guide-digest": digest }) };
  const page = "<!doctype html><h1>Written by another</h1>";
  const answer = new Response(page, { headers });
  await kept.put(path, answer);
}"""
NAMES = (
    "async () => Promise.all((await caches.keys()).map(async (name) => "
    "[name, (await (await caches.open(name)).keys()).map(({ url }) => new URL(url).pathname)]))"
)


@pytest.fixture
def origin(tmp_path: Path) -> Iterator[str]:
    """An origin with the site's worker, a preview, a version and a page of the owner's."""
    for place in ("", "guide/experts/", "pr-7/", "pr-7/guide/", "v0.4/"):
        folder = tmp_path / place
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.html").write_text(PAGE.format(place or "Home"), encoding="utf-8")
    for place in ("", "pr-7/", "v0.4/"):
        (tmp_path / place / "sw.js").write_bytes((built.ROOT / "docs" / "sw.js").read_bytes())
    with built.serve(tmp_path) as address:
        yield address


def heading(page: Page, address: str) -> str:
    """Return the heading of a page, or nothing if there is no response."""
    try:
        page.goto(address)
    except Error:
        return ""
    return page.locator("h1").inner_text()


def test_nothing_that_another_script_of_the_origin_wrote_is_answered_offline(
    context: BrowserContext, origin: str
) -> None:
    page = context.new_page()
    page.goto(origin)
    page.evaluate(REGISTER, "/sw.js")
    assert heading(page, f"{origin}/guide/experts/") == "guide/experts/"
    page.wait_for_function("async () => Boolean(await caches.match('/guide/experts/'))")
    for name in ("guide", "other", f"guide {origin}/"):
        page.evaluate(WRITE, [name, "/guide/other/", None])
        page.evaluate(WRITE, [name, "/guide/forged/", "0" * 64])
    # One that was read is exchanged, in the worker's own cache.
    page.evaluate(WRITE, [f"guide {origin}/", "/", "0" * 64])
    context.set_offline(True)
    assert heading(page, f"{origin}/guide/experts/") == "guide/experts/"
    for path in ("/guide/other/", "/guide/forged/", "/"):
        assert heading(page, origin + path) == "", path


def test_the_worker_of_the_site_leaves_previews_versions_and_others_alone(
    context: BrowserContext, origin: str
) -> None:
    page = context.new_page()
    page.goto(origin)
    page.evaluate(REGISTER, "/sw.js")
    page.evaluate(WRITE, ["guide", "/", None])
    page.evaluate(WRITE, ["of the owner", "/notes/", None])
    for path in ("/", "/pr-7/", "/pr-7/guide/", "/v0.4/"):
        page.goto(origin + path)
    page.evaluate(REGISTER, "/v0.4/sw.js")
    page.goto(f"{origin}/v0.4/")
    page.wait_for_function(f"async () => (await ({NAMES})()).length > 3")
    kept = dict(page.evaluate(NAMES))
    assert kept[f"guide {origin}/"] == ["/"]
    assert kept[f"guide {origin}/v0.4/"] == ["/v0.4/"]
    assert kept["of the owner"] == ["/notes/"]
    context.set_offline(True)
    assert heading(page, f"{origin}/v0.4/") == "v0.4/"
    assert heading(page, f"{origin}/pr-7/") == ""


NOTED = """window.registered = [];
ServiceWorkerContainer.prototype.register = async (script) => {
  window.registered.push(new URL(script, location.href).pathname);
};"""


@pytest.mark.parametrize(
    ("folder", "worker"), [("", ["/sw.js"]), ("v0.4/", ["/v0.4/sw.js"]), ("pr-7/", [])]
)
def test_the_site_and_its_versions_have_a_worker_and_previews_have_none(
    context: BrowserContext, site_folder: Path, folder: str, worker: list[str]
) -> None:
    def answer(route: Route) -> None:
        path = urlsplit(route.request.url).path.removeprefix(f"/{folder}").lstrip("/")
        file = site_folder / path
        found = file / "index.html" if file.is_dir() else file
        route.fulfill(path=found) if found.is_file() else route.fulfill(status=404)

    context.route("https://guide.test/**", answer)
    context.add_init_script(NOTED)
    page = context.new_page()
    at_rest(page, f"https://guide.test/{folder}about/wrong-number/")
    assert page.evaluate("window.registered") == worker


def test_the_published_pages_register_the_worker_and_the_served_ones_do_not(
    context: BrowserContext, site: str
) -> None:
    page = context.new_page()
    page.goto(site + MEMORY)
    assert (
        page.evaluate("navigator.serviceWorker.getRegistrations().then((all) => all.length)") == 0
    )


def test_chapters_are_printed_in_reading_order(site_folder: Path) -> None:
    found = chapters((site_folder / "index.html").read_text("utf-8"))
    assert found.index("guide/collectives/") < found.index("guide/zero-fsdp/")
    # The tabs of the home page lead to the guide's first chapter before the journey's second.
    assert found == sorted(found, key=lambda page: page.startswith("guide/"))
    assert len(found) == len(set(found)) >= 20
    assert all((site_folder / page / "index.html").is_file() for page in found)


def test_chapters_become_a_pdf(chromium: Browser, site_folder: Path, tmp_path: Path) -> None:
    from pypdf import PdfReader

    words = [
        "paper",
        str(site_folder),
        str(tmp_path / "g.pdf"),
        "--only",
        "about/wrong-number/",
        "--only",
        "reference/conventions/",
    ]
    code, said = built.listened_to(
        [sys.executable, "-m", "figgen", *words],
        env={**os.environ, "CHROME_PATH": str(finder.given())},
    )
    assert code == 0, said
    reader = PdfReader(tmp_path / "g.pdf")
    assert "Report a wrong number" in reader.pages[0].extract_text()
    assert [item.title for item in reader.outline] == ["Report a wrong number", "Conventions"]
    assert said.endswith(f"2 chapters, {len(reader.pages)} pages\n")
    assert reader.metadata
    assert reader.metadata.title == "Parallelism, Computed"
    # A link to the other chapter leads to its first sheet, and none to the server that is gone.
    begin = reader.outline[1].page.idnum
    links = [link.get_object() for sheet in reader.pages for link in sheet.annotations or ()]
    actions = [link.get("/A", {}) for link in links]
    goals = [
        action["/D"][0].idnum
        for action in actions
        if action.get("/S") == "/GoTo" and not isinstance(action["/D"], str)
    ]
    assert begin in goals
    assert not [action for action in actions if "127.0.0.1" in str(action.get("/URI"))]


def test_the_guide_is_one_book_that_needs_neither_script_nor_network(
    site_folder: Path, tmp_path: Path
) -> None:
    """Checks the rules of EPUB 3.3 that readers would notice; epubcheck 5.3 also finds no error."""
    file = tmp_path / "guide.epub"
    assert main(["paper", str(site_folder), str(file)]) == 0
    with zipfile.ZipFile(file) as archive:
        first = archive.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        assert archive.read("mimetype") == b"application/epub+zip"
        trees = {
            name: ElementTree.fromstring(archive.read(name))
            for name in archive.namelist()
            if name.endswith((".xhtml", ".svg", ".opf", ".xml"))
        }
        held = {name for name in archive.namelist() if name.startswith("book/")}
        svg = " ".join(archive.read(n).decode() for n in held if n.endswith(".svg"))
    package = trees["book/book.opf"]
    items = {item.get("id"): item for item in package.findall(".//{*}item")}
    listed = [f"book/{item.get('href')}" for item in items.values()]
    assert sorted([*listed, "book/book.opf"]) == sorted(held)
    spine = [items[ref.get("idref")].get("href") for ref in package.findall(".//{*}itemref")]
    pages = {name: trees[f"book/{name}"] for name in spine if name}
    wanted = chapters((site_folder / "index.html").read_text("utf-8"))
    assert spine[1:] == [page.strip("/").replace("/", "-") + ".xhtml" for page in wanted]
    toc = [a.get("href") for a in pages["nav.xhtml"].findall(".//{*}a")]
    assert toc == spine[1:]
    ids = {n: [e.get("id") for e in tree.iter() if e.get("id")] for n, tree in pages.items()}
    shown = 0
    for name, tree in pages.items():
        assert len(ids[name]) == len(set(ids[name])), name
        assert {"script", "button", "input", "svg"}.isdisjoint(
            str(element.tag).rpartition("}")[2] for element in tree.iter()
        )
        assert not [a for element in tree.iter() for a in element.attrib if a.startswith("on")]
        for image in tree.findall(".//{*}img"):
            shown += 1
            assert f"book/{image.get('src')}" in held
            assert image.get("alt"), (name, image.get("src"))
        for link in tree.findall(".//{*}a"):
            where = urlsplit(link.get("href", "https:"))
            if not where.scheme:
                target = where.path or name
                assert not where.fragment or where.fragment in ids[target], (name, link.attrib)
        has_math = tree.find(".//{http://www.w3.org/1998/Math/MathML}math") is not None
        (item,) = [item for item in items.values() if item.get("href") == name]
        assert (item.get("properties") == "mathml") == has_math
    built = sum(
        (site_folder / p / "index.html").read_text("utf-8").count('<figure class="figgen"')
        for p in wanted
    )
    assert sum(len(tree.findall(".//{*}figure")) for tree in pages.values()) == built
    assert shown >= built / 2
    assert "var(" not in svg
    assert "prefers-color-scheme" not in svg


def test_what_is_no_site_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", str(tmp_path), str(tmp_path / "g.pdf")]) == 2
    assert "expected the folder of a built site" in capsys.readouterr().err
    assert not (tmp_path / "g.pdf").exists()
    (tmp_path / "index.html").write_text("<p>home")
    assert main(["paper", str(tmp_path), str(tmp_path / "g.mobi")]) == 2
    assert "expected a name that ends in .pdf or .epub" in capsys.readouterr().err
