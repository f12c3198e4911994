"""paper, paper-figures: write the guide of a built site as PDF or EPUB, and pictures as PDFs."""

from __future__ import annotations

import argparse
import http.server
import io
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

from figgen.commands import Answer, add_verb
from figgen.commands.epub import write_book
from figgen.errors import InputError

if TYPE_CHECKING:
    from pypdf import PdfWriter

    from figgen.commands import Verbs

PARTS = ("journey/", "guide/")
"""The folders of this guide's chapters; of another site, all pages are chapters."""


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "paper",
        _paper,
        "write the chapters of a built site as one PDF or EPUB",
        "site guide.pdf",
        "site guide.epub",
        "site one.pdf --only guide/memory/",
    )
    parser.add_argument("site", type=Path, help="the folder of a built site")
    parser.add_argument("file", type=Path, help="what to write, a .pdf or an .epub")
    parser.add_argument("--only", action="append", help="a page by its folder; may be repeated")
    figures = add_verb(
        verbs,
        "paper-figures",
        _paper_figures,
        "add a PDF of every picture to a built site, with links",
        "site",
    )
    figures.add_argument("site", type=Path, help="the folder of a built site")


class _Home(HTMLParser):
    """Finds the chapters' folders in the navigation of the home page, and the site's name."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, None] = {"": None}
        self.name = self.title = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("property") == "og:site_name":
            self.name = given.get("content") or ""
        link = given.get("href") or ""
        if tag == "a" and re.fullmatch(r"(?:[^./:#?][^:#?]*/)+", link):
            self.found.setdefault(link)

    def handle_data(self, data: str) -> None:
        if self.get_starttag_text() == "<title>" and not self.title:
            self.title = data.strip()


def chapters(home: str) -> list[str]:
    """Return the folders of all chapters, such as `guide/memory/`, in reading order.

    Those of another site are all pages to which its home page leads, after that page itself.
    """
    found = _read(home).found
    # The tabs lead to the first page of each part before the rest of it is listed.
    parts = [page for part in PARTS for page in found if page.startswith(part)]
    return parts or [page for page in found if page != "search/"]


def _read(home: str) -> _Home:
    parser = _Home()
    parser.feed(home)
    return parser


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def _served(site: Path) -> Iterator[str]:
    handler = partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def _paper_figures(options: argparse.Namespace) -> Answer:
    from figgen.paper.site import PICTURES, add_pdfs

    if not (options.site / PICTURES).is_dir():
        raise InputError("site", expected=f"a built site with {PICTURES}", got=str(options.site))
    count = add_pdfs(options.site, Path(".cache/paper"))
    return Answer({"figures": count}, f"{options.site}: {count} pictures as PDF")


def _paper(options: argparse.Namespace) -> Answer:
    home = options.site / "index.html"
    if not home.is_file():
        raise InputError("site", expected="the folder of a built site", got=str(options.site))
    text = home.read_text(encoding="utf-8")
    pages = options.only or [
        page for page in chapters(text) if (options.site / page / "index.html").is_file()
    ]
    for page in pages:
        if not (options.site / page / "index.html").is_file():
            raise InputError("--only", expected="a page's folder, guide/memory/", got=page)
    told = f"{options.file}: {len(pages)} chapters"
    read = _read(text)
    name = read.name or read.title
    if options.file.suffix == ".epub":
        write_book(options.site, pages, name, options.file)
        return Answer({"chapters": len(pages)}, told)
    if options.file.suffix != ".pdf":
        raise InputError(
            "file", expected="a name that ends in .pdf or .epub", got=str(options.file)
        )
    with _served(options.site) as address:
        count = _print(address, pages, name, options.file)
    return Answer({"pages": count}, f"{told}, {count} pages")


def _print(address: str, pages: list[str], name: str, to: Path) -> int:
    """Print every page, join the prints with an outline, and return the number of sheets."""
    try:
        from playwright.sync_api import sync_playwright
        from pypdf import PdfReader, PdfWriter
    except ImportError as error:
        raise InputError(f"{error.name} is not installed", expected="make setup") from None
    whole = PdfWriter()
    whole.add_metadata({"/Title": name})
    begins: dict[str, int] = {}
    published = ""
    with sync_playwright() as driver:
        root = getattr(os, "geteuid", lambda: 1)() == 0
        browser = driver.chromium.launch(
            executable_path=os.environ.get("CHROME_PATH") or None,
            args=["--no-sandbox"] if root else [],
        )
        tab = browser.new_page()
        for page in pages:
            tab.goto(address + page)
            address_of = tab.locator("link[rel=canonical]")  # a site may have no address
            own = address_of.get_attribute("href") or "" if address_of.count() else ""
            published = own.removesuffix(page) if own.startswith("https:") else ""
            sheets = PdfReader(io.BytesIO(tab.pdf(format="A4", scale=0.8, print_background=True)))
            begins[page] = len(whole.pages)
            whole.append(sheets, outline_item=tab.title().partition(" - ")[0])
        browser.close()
    _lead_on(whole, address, begins, published)
    with to.open("wb") as file:
        whole.write(file)
    return len(whole.pages)


def _lead_on(whole: PdfWriter, address: str, begins: Mapping[str, int], published: str) -> None:
    """Make links lead to the sheet where a chapter begins, or else to the published site.

    The pages were printed from the address of a server that no longer runs. Without a published
    site the links lead nowhere.
    """
    from pypdf.generic import ArrayObject, DictionaryObject, NameObject, TextStringObject

    for sheet in whole.pages:
        for link in sheet.annotations or ():
            action = link.get_object().get("/A", {})
            uri = str(action.get("/URI", ""))
            if not uri.startswith(address):
                continue
            path = uri.removeprefix(address)
            chapter = begins.get(path.partition("#")[0])
            if chapter is not None:
                goal = ArrayObject([whole.pages[chapter].indirect_reference, NameObject("/Fit")])
                go = {NameObject("/S"): NameObject("/GoTo"), NameObject("/D"): goal}
                link.get_object()[NameObject("/A")] = DictionaryObject(go)
            elif published:
                action[NameObject("/URI")] = TextStringObject(published + path)
            else:
                del link.get_object()["/A"]
