"""The guide as one EPUB: the chapters of a built site as XHTML that needs no script.

Pictures are the SVG files that the site offers for download, in their print colors. The worked line
of a number becomes a note of its chapter. What needs the site (tools, data tables) is left out.
"""

from __future__ import annotations

import re
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import urljoin, urlsplit
from uuid import NAMESPACE_URL, uuid5
from xml.etree import ElementTree

Element = ElementTree.Element

VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta", "mspace", "wbr"})
DROPPED_TAGS = frozenset({"script", "style", "template", "noscript", "nav", "fieldset", "input"})
DROPPED_CLASSES = frozenset({
    "fig-tools", "headerlink", "page-cite", "page-about", "page-report", "journey-at",
    "tool-static",
})  # fmt: skip
KEPT_ATTRIBUTES = frozenset({
    "id", "class", "href", "title", "alt", "src", "colspan", "rowspan", "scope", "lang", "dir",
    "start", "datetime", "value", "popovertarget",
})  # fmt: skip
XHTML = "http://www.w3.org/1999/xhtml"
MATHML = "http://www.w3.org/1998/Math/MathML"
EPUB = "http://www.idpf.org/2007/ops"
HERE = "https://here.invalid/"  # stands for the site while links are resolved

STYLE = """body{line-height:1.45}
table{border-collapse:collapse;font-size:.85em}
th,td{border-bottom:1px solid;padding:.15em .4em;text-align:left;vertical-align:top}
.num{text-align:right}
figure{margin:1em 0}
figure img{max-width:100%;height:auto}
figcaption{font-size:.9em}
pre{white-space:pre-wrap;font-size:.8em}
.admonition,details,aside{border-left:2px solid;margin:1em 0;padding-left:.8em}
.admonition-title,summary{font-weight:bold}
.fig-how{font-size:.85em}
"""

CONTAINER = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="book/book.opf" media-type="application/oebps-package+xml"/>
</rootfiles></container>
"""


class _Article(HTMLParser):
    """Finds the article of a page as a tree, and the page's title and canonical address."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Element("section")
        self.canonical = ""
        self.open: list[Element] = []
        self.dropped = 0  # how many elements deep inside one that is left out
        self.drawing = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "link" and given.get("rel") == "canonical":
            self.canonical = given.get("href", "")
        if not self.open and (tag == "article" or given.get("role") == "main"):
            self.open.append(self.root)
            return
        if not self.open:
            return
        if tag == "svg" and not self.dropped:
            if not self.drawing:
                ElementTree.SubElement(self.open[-1], "svg", alt=given.get("aria-label", ""))
            self.drawing += 1
        elif not self.drawing and (self.dropped or _is_dropped(tag, given)):
            self.dropped += tag not in VOID
        elif not self.drawing:
            made = ElementTree.SubElement(self.open[-1], tag, _attributes(self.open, tag, given))
            if tag not in VOID:
                self.open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or tag in VOID:
            return
        if self.drawing:
            self.drawing -= tag == "svg"
        elif self.dropped:
            self.dropped -= 1
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open or self.dropped or self.drawing:
            return
        parent = self.open[-1]
        if len(parent):
            parent[-1].tail = (parent[-1].tail or "") + data
        else:
            parent.text = (parent.text or "") + data


def _is_dropped(tag: str, given: Mapping[str, str]) -> bool:
    # What can be loaded of a figure names the file of its picture.
    if "fig-tools" in given.get("class", "").split():
        return False
    return tag in DROPPED_TAGS or bool(DROPPED_CLASSES & {*given.get("class", "").split()})


def _attributes(within: Iterable[Element], tag: str, given: Mapping[str, str]) -> dict[str, str]:
    if tag == "math":
        return {"xmlns": MATHML, **given}
    if any(element.tag == "math" for element in within):
        return dict(given)
    return {name: value for name, value in given.items() if name in KEPT_ATTRIBUTES}


class Chapter:
    """A page of the site as a document of the book."""

    def __init__(self, site: Path, page: str) -> None:
        parser = _Article()
        parser.feed((site / page / "index.html").read_text(encoding="utf-8"))
        self.page = page
        self.name = (page.strip("/").replace("/", "-") or "index") + ".xhtml"
        self.root = parser.root
        self.address = parser.canonical.removesuffix(page)
        self.pictures: dict[str, str] = {}
        for parent in self.root.iter():
            self._take_pictures(parent)
        for parent in self.root.iter():
            for child in [one for one in parent if "fig-tools" in one.get("class", "").split()]:
                _remove(parent, child)
        heading = self.root.find(".//h1")
        self.title = " ".join("".join(heading.itertext()).split()) if heading is not None else page
        for element in self.root.iter():
            _noted(element)
        self.ids = {found for element in self.root.iter() if (found := element.get("id"))}

    def _take_pictures(self, parent: Element) -> None:
        """Replace each drawing by the file of its picture, which the buttons next to it name."""
        for picture, tools in pairwise(list(parent)):
            if "fig-tools" not in tools.get("class", "").split():
                continue
            files = [a.get("href", "") for a in tools.iter("a")]
            for drawing in list(picture.iter("svg")):
                file = next(href for href in files if href.endswith(".svg"))
                path = urlsplit(urljoin(HERE + self.page, file)).path.lstrip("/")
                name = path.removeprefix("assets/figures/").replace("/", "-")
                self.pictures[f"figures/{name}"] = path
                drawing.tag = "img"
                drawing.set("src", f"figures/{name}")

    def link(self, book: Mapping[str, Chapter]) -> None:
        """Lead links to the book's chapters, or else to the published site, if there is one."""
        for element in self.root.iter("a"):
            asked = element.attrib.pop("href", "")
            where = urlsplit(urljoin(HERE + self.page, asked))
            if f"{where.scheme}://{where.netloc}/" != HERE:
                element.set("href", asked)
                continue
            chapter = book.get(where.path.lstrip("/"))
            fragment = f"#{where.fragment}" if where.fragment else ""
            if chapter is None and self.address.startswith("https:"):
                element.set("href", f"{self.address}{where.path.lstrip('/')}{fragment}")
            elif chapter and (not fragment or where.fragment in chapter.ids):
                element.set("href", chapter.name + fragment)
            else:
                element.attrib.pop("epub:type", None)

    def document(self) -> str:
        """Return the chapter as XHTML."""
        return _document(self.title, self.root)


def _remove(parent: Element, child: Element) -> None:
    """Remove an element but keep the text that follows it."""
    at = list(parent).index(child)
    if child.tail and at:
        parent[at - 1].tail = (parent[at - 1].tail or "") + child.tail
    elif child.tail:
        parent.text = (parent.text or "") + child.tail
    parent.remove(child)


def _noted(element: Element) -> None:
    """Turn a number that opens its worked line into a reference to a note."""
    target = element.attrib.pop("popovertarget", "")
    if element.tag == "button":
        element.tag = "a" if target else "span"
    if target:
        element.set("href", f"#{target}")
        element.set("epub:type", "noteref")
    if element.get("class") == "fig-how":
        element.tag = "aside"
        element.set("epub:type", "footnote")


def _document(title: str, body: Element) -> str:
    root = Element("html", {"xmlns": XHTML, "xmlns:epub": EPUB, "lang": "en", "xml:lang": "en"})
    head = ElementTree.SubElement(root, "head")
    ElementTree.SubElement(head, "title").text = title
    ElementTree.SubElement(head, "link", rel="stylesheet", type="text/css", href="style.css")
    ElementTree.SubElement(root, "body").append(body)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n{text}\n'


def on_paper(svg: str) -> str:
    """Return a picture in its light colors, without variables, which some readers don't know."""
    colours = dict(re.findall(r"(--[\w-]+):([^;}]+)", svg.partition("@media")[0]))
    svg = re.sub(r"@media screen and \(prefers-color-scheme:dark\)\{.*?\}\}", "", svg)
    return re.sub(r"var\((--[\w-]+)\)", lambda match: colours.get(match[1], "inherit"), svg)


def book(site: Path, pages: Iterable[str], name: str) -> Iterator[tuple[str, str]]:
    """Return path and content of every file of the EPUB `name`, except its first, `mimetype`."""
    chapters = {page: Chapter(site, page) for page in pages}
    for chapter in chapters.values():
        chapter.link(chapters)
    pictures = {k: v for chapter in chapters.values() for k, v in chapter.pictures.items()}
    yield "META-INF/container.xml", CONTAINER
    yield "book/style.css", STYLE
    for chapter in chapters.values():
        yield f"book/{chapter.name}", chapter.document()
    for picture, path in pictures.items():
        yield f"book/{picture}", on_paper((site / path).read_text(encoding="utf-8"))
    yield "book/nav.xhtml", _document(name, _contents(chapters.values()))
    day = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime((site / "index.html").stat().st_mtime))
    yield "book/book.opf", _package(name, day, _rights(site), list(chapters.values()), pictures)


def _rights(site: Path) -> str:
    """Return the license that the home page names, if it is the one known here, or ""."""
    return "CC BY 4.0" if "CC BY 4.0" in (site / "index.html").read_text("utf-8") else ""


def _contents(chapters: Iterable[Chapter]) -> Element:
    nav = Element("nav", {"epub:type": "toc"})
    ElementTree.SubElement(nav, "h1").text = "Contents"
    parts = ElementTree.SubElement(nav, "ol")
    lists: dict[str, Element] = {}
    for chapter in chapters:
        folder, _, inside = chapter.page.strip("/").partition("/")
        part = folder.capitalize()
        if not inside:  # a page of its own, not one of a part
            item = ElementTree.SubElement(parts, "li")
            ElementTree.SubElement(item, "a", href=chapter.name).text = chapter.title
            continue
        if part not in lists:
            item = ElementTree.SubElement(parts, "li")
            ElementTree.SubElement(item, "span").text = part
            lists[part] = ElementTree.SubElement(item, "ol")
        item = ElementTree.SubElement(lists[part], "li")
        ElementTree.SubElement(item, "a", href=chapter.name).text = chapter.title
    return nav


def _package(
    name: str, day: str, rights: str, chapters: list[Chapter], pictures: Iterable[str]
) -> str:
    package = Element("package", {
        "xmlns": "http://www.idpf.org/2007/opf", "version": "3.0", "unique-identifier": "id",
    })  # fmt: skip
    metadata = ElementTree.SubElement(
        package, "metadata", {"xmlns:dc": "http://purl.org/dc/elements/1.1/"}
    )
    number = uuid5(NAMESPACE_URL, (chapters[0].address if chapters else "") + name)
    ElementTree.SubElement(metadata, "dc:identifier", id="id").text = f"urn:uuid:{number}"
    ElementTree.SubElement(metadata, "dc:title").text = name
    ElementTree.SubElement(metadata, "dc:language").text = "en"
    if rights:
        ElementTree.SubElement(metadata, "dc:rights").text = rights
    ElementTree.SubElement(metadata, "meta", property="dcterms:modified").text = day
    manifest = ElementTree.SubElement(package, "manifest")
    spine = ElementTree.SubElement(package, "spine")
    items = [("nav.xhtml", "application/xhtml+xml", "nav"), ("style.css", "text/css", "")]
    for chapter in chapters:
        math = "mathml" if chapter.root.find(".//math") is not None else ""
        items.append((chapter.name, "application/xhtml+xml", math))
    items += [(picture, "image/svg+xml", "") for picture in pictures]
    for count, (href, kind, properties) in enumerate(items):
        more = {"properties": properties} if properties else {}
        ElementTree.SubElement(
            manifest, "item", {"id": f"f{count}", "href": href, "media-type": kind, **more}
        )
        if kind == "application/xhtml+xml":
            ElementTree.SubElement(spine, "itemref", idref=f"f{count}")
    text = ElementTree.tostring(package, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def write_book(site: Path, pages: Iterable[str], name: str, to: Path) -> None:
    """Write the EPUB `name` from these pages of a built site."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        for path, text in book(site, pages, name):
            archive.writestr(path, text)
