"""The pictures of the built site and their downloads."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import statistics
from pathlib import Path
from xml.etree import ElementTree

import pytest

PICTURE = re.compile(
    r'<svg role="img" aria-label="([^"]*)"[^>]*class="fig .*?</svg>(?=</div>)', re.S
)
MOST_BYTES, MEDIAN_BYTES = 12_000, 5_000


@pytest.fixture(scope="module")
def pages(site_folder: Path) -> dict[str, str]:
    """Every page with pictures, by path."""
    read = {path: path.read_text(encoding="utf-8") for path in site_folder.rglob("*.html")}
    return {
        str(path.relative_to(site_folder)): html
        for path, html in read.items()
        if PICTURE.search(html)
    }


def test_no_picture_is_heavy_and_half_of_them_are_light(
    pages: dict[str, str], site_folder: Path
) -> None:
    """Sizes are those in the pages and as files, compressed."""
    drawn = [match[0].encode() for html in pages.values() for match in PICTURE.finditer(html)]
    files = [path.read_bytes() for path in site_folder.glob("assets/figures/**/*.svg")]
    assert len(files) >= len(drawn) > 200
    for pictures in (drawn, files):
        weights = [len(gzip.compress(picture)) for picture in pictures]
        assert max(weights) <= MOST_BYTES
        assert statistics.median(weights) <= MEDIAN_BYTES


def test_every_picture_has_a_name_and_finds_what_it_refers_to(pages: dict[str, str]) -> None:
    for path, html in pages.items():
        ids = set(re.findall(r'\sid="([^"]+)"', html))
        for match in PICTURE.finditer(html):
            assert len(match[1]) > 20, path
            assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', match[0])) <= ids, path


def read_svg(text: str) -> None:
    """Fail unless `text` is a self-contained SVG file."""
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "<style>" in text
    assert "<script" not in text
    links = re.findall(r'(?:href="|url\()([^")]*)', text)
    assert all(link.startswith("#") for link in links), links
    identities = set(re.findall(r' id="([^"]+)"', text))
    assert {link[1:] for link in links} <= identities
    used = set(re.findall(r"var\((--[\w-]+)\)", text))
    assert used <= set(re.findall(r"(--[\w-]+):", text))


def read_csv(text: str) -> None:
    """Fail unless every row has as many fields as the header."""
    rows = list(csv.reader(io.StringIO(text)))
    assert len(rows) >= 2
    assert {len(row) for row in rows} == {len(rows[0])}


def read_plot(text: str) -> None:
    assert {"data", "layout", "config"} <= set(json.loads(text))


def read_table(text: str) -> None:
    """Fail unless a long table is a separate page, for readers without scripts."""
    assert "<table" in text


def read_film(text: str) -> None:
    film = json.loads(text)
    assert film["scenes"][0]["set"]
    assert {"width", "height"} <= set(film)


READERS = {
    ".svg": read_svg, ".csv": read_csv, ".json": json.loads, ".plotly.json": read_plot,
    ".html": read_table, ".film.json": read_film,
}  # fmt: skip


def test_every_file_of_a_figure_is_what_it_says(site_folder: Path) -> None:
    read = dict.fromkeys(READERS, 0)
    for path in (site_folder / "assets" / "figures").rglob("*.*"):
        kind = "".join(path.suffixes)
        READERS[kind](path.read_text(encoding="utf-8"))
        read[kind] += 1
    assert read[".svg"] == read[".csv"] == read[".json"] > read[".plotly.json"] > 0
