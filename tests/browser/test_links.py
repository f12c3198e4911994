"""What can be checked in the files of built pages: links, ids, labels, images."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from figgen.publish.styles import lighter

ADDRESSES = ("href", "src", "data-plotly")


# The standard library's parser takes four times as long; what is no tag is passed over.
TAGS = re.compile(
    r"<!--.*?-->|<(?P<raw>script|style|textarea|title)\b(?P<own>[^>]*)>.*?</(?P=raw)>"
    r"|<(?P<tag>[a-zA-Z][^\s/>]*)(?P<given>(?:[^>\"']|\"[^\"]*\"|'[^']*')*)>",
    re.DOTALL,
)
GIVEN = re.compile(
    r"(?P<name>[^\s\"'>/=]+)(?:\s*=\s*(?:\"(?P<two>[^\"]*)\"|'(?P<one>[^']*)'|(?P<bare>[^\s>]+)))?"
)


def start_tags(text: str) -> Iterator[tuple[str, list[tuple[str, str]], str]]:
    """Yield the name of each start tag of a page, its attributes, and its source text."""
    for found in TAGS.finditer(text):
        if tag := found["raw"] or found["tag"]:
            given = GIVEN.finditer(found["own"] or found["given"] or "")
            yield (
                tag,
                [(g["name"], unescape(g["two"] or g["one"] or g["bare"] or "")) for g in given],
                found[0],
            )


class Reader:
    """The ids of a page, its references, and attributes that are written twice."""

    def __init__(self, text: str) -> None:
        self.ids: list[str] = []
        self.links: list[str] = []
        self.twice: list[str] = []
        self.images: list[dict[str, str]] = []
        self.opened: list[str] = []
        self.popovers: dict[str, str] = {}
        self.controls: list[str] = []
        self.labelled: list[str] = []
        self.invalid: list[str] = []
        for tag, attributes, written in start_tags(text):
            self._note(tag, attributes, written)

    def _note(self, tag: str, attributes: list[tuple[str, str]], written: str) -> None:
        given = dict(attributes)
        if len(given) < len(attributes):
            names = Counter(name for name, _ in attributes)
            self.twice += [f"{tag} {name}" for name, n in names.items() if n > 1]
        if given.get("id"):
            self.ids.append(given["id"])
        self.links += [given[name] for name in ADDRESSES if given.get(name)]
        if "popovertarget" in given:
            self.opened.append(given["popovertarget"])
        if "popover" in given and given.get("role") == "dialog":
            self.popovers[given["id"]] = given.get("aria-label", "")
        if tag == "img":
            self.images.append(given)
        if tag == "label" and "for" in given:
            self.labelled.append(given["for"])
        if tag in ("input", "select", "textarea", "button") and given.get("type") != "hidden":
            self.controls.append(given.get("id", ""))
        checked = given.get("type") in ("checkbox", "radio") and "autocomplete" in given
        if checked or ("tabindex" in given and not given["tabindex"]):
            self.invalid.append(written)


@pytest.fixture(scope="module")
def pages(site_folder: Path) -> dict[str, Reader]:
    """Return every HTML file of the site by path."""
    return {
        path.relative_to(site_folder).as_posix(): Reader(path.read_text(encoding="utf-8"))
        for path in sorted(site_folder.rglob("*.html"))
    }


def target(page: str, link: str) -> tuple[str, str] | None:
    """Return the file and the fragment that a page's link leads to; None if it leaves the site."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    base = Path("/") / Path(page).parent
    path = Path(*_resolved((base / unquote(parts.path)).parts[1:])).as_posix()
    if not parts.path:
        path = page
    elif link.partition("#")[0].endswith("/") or path == "." or "." not in path.rpartition("/")[2]:
        path = f"{path}/index.html".removeprefix("./")
    return path, unquote(parts.fragment)


def _resolved(parts: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for part in parts:
        if part == "..":
            assert found, f"a link leads out of the site: {parts}"
            found.pop()
        elif part != ".":
            found.append(part)
    return found


def test_every_link_leads_to_a_file_and_a_place_in_it(
    pages: dict[str, Reader], site_folder: Path
) -> None:
    broken, checked = [], 0
    places = {name: set(page.ids) for name, page in pages.items()}
    for name, page in pages.items():
        for link in page.links:
            found = target(name, link)
            if found is None or name == "404.html":
                continue
            checked += 1
            path, fragment = found
            if not (site_folder / path).is_file():
                broken.append(f"{name}: {link}")
            elif fragment and path in pages and fragment not in places[path]:
                broken.append(f"{name}: no #{fragment} in {path}")
    assert broken == []
    assert checked > 500


def test_no_page_has_what_the_stylesheet_leaves_out(site_folder: Path) -> None:
    texts = (path.read_text(encoding="utf-8") for path in site_folder.rglob("*.html"))
    used = {
        name
        for text in texts
        for names in re.findall(r'class="([^"]*)"', text)
        for name in names.split()
    }
    assert "md-header" in used
    light = lighter("".join(f".{name}{{a:b}}" for name in sorted(used)), set())
    assert {name for name in used if f".{name}{{" not in light} == set()


def test_no_id_and_no_attribute_is_written_twice(pages: dict[str, Reader]) -> None:
    repeated = {name: [i for i, n in Counter(p.ids).items() if n > 1] for name, p in pages.items()}
    assert {name: ids for name, ids in repeated.items() if ids} == {}
    assert {name: page.twice for name, page in pages.items() if page.twice} == {}


def test_labels_name_a_control_and_attributes_stand_where_html_has_them(
    pages: dict[str, Reader],
) -> None:
    """The Nu HTML checker reported such errors in the theme's pages and in ours."""
    lost = {name: {*page.labelled} - {*page.controls} for name, page in pages.items()}
    assert {name: ids for name, ids in lost.items() if ids} == {}
    assert {name: page.invalid for name, page in pages.items() if page.invalid} == {}


def test_every_number_that_is_a_button_has_its_derivation_on_the_page(
    pages: dict[str, Reader],
) -> None:
    numbers = {name: page.opened for name, page in pages.items()}
    assert sum(map(len, numbers.values())) > 50
    missing = {name: set(numbers[name]) - page.popovers.keys() for name, page in pages.items()}
    assert {name: keys for name, keys in missing.items() if keys} == {}
    labels = [label for page in pages.values() for label in page.popovers.values()]
    assert all(re.fullmatch(r"How .+ is computed", label) for label in labels)


def test_every_image_says_what_it_is_and_how_large(pages: dict[str, Reader]) -> None:
    unfit = [
        image.get("src")
        for page in pages.values()
        for image in page.images
        if "alt" not in image or not (image.get("width") and image.get("height"))
    ]
    assert unfit == []


def test_tags_are_read_as_they_are_written_and_nothing_else_is() -> None:
    page = Reader(
        "<p id=one title='two > one' hidden>"
        '<!-- <a href="a-comment"> --><script src=own.js>"<a href=a-text>"</script>'
        "<img src='a&amp;b.png' alt=\"\"><a href = '#x'>1 < 2</a>"
        "<input type=radio autocomplete=off>"
        "<i class=a id=three class=b></i>"
    )
    assert page.ids == ["one", "three"]
    assert page.links == ["own.js", "a&b.png", "#x"]
    assert page.images == [{"src": "a&b.png", "alt": ""}]
    assert page.twice == ["i class"]
    assert page.invalid == ["<input type=radio autocomplete=off>"]
