"""Measures a built site: its pictures, and its pages as a browser loads them, compressed."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
TAG = re.compile(r"<(/?)svg\b[^>]*>")
# Icons of the theme are shorter than any figure.
ICON_CHARACTERS = 2500


@dataclass(frozen=True, slots=True)
class Weight:
    """Sizes in bytes as sent (gzip for texts): the largest and the median one.

    For pages these are the one with the longest text and the one of median length, each with
    everything that a browser fetches for it; empty without a browser.
    """

    picture: tuple[float, float]
    page: tuple[float, float] | None


def pictures(site: Path) -> set[bytes]:
    """Return every picture of a site: SVG in a page, or a PNG file that is not a thumbnail."""
    pages = [page.read_text("utf-8") for page in site.rglob("*.html")]
    inline = [svg for page in pages for svg in inline_pictures(page)]
    files = [file.read_bytes() for file in site.rglob("*_[0-9][0-9][0-9].png")]
    return {svg.encode() for svg in inline} | set(files)


def inline_pictures(html: str) -> Iterator[str]:
    """Return every SVG of a page that is not an icon, with the SVGs inside it."""
    depth = begun = 0
    for tag in TAG.finditer(html):
        if tag[0].endswith("/>"):
            continue
        if depth == 0:
            begun = tag.start()
        depth += -1 if tag[1] else 1
        if depth == 0 and tag.end() - begun > ICON_CHARACTERS:
            yield html[begun : tag.end()]


def weigh(site: Path) -> Weight:
    """Measure the pictures, and the heaviest and the median page among those with pictures."""
    sizes = [len(p) if p.startswith(b"\x89PNG") else _packed(p) for p in pictures(site)]
    if not sizes:
        return Weight((0, 0), None)
    shown = [page for page in sorted(site.rglob("*.html")) if _shows(page)]
    shown.sort(key=lambda page: _packed(page.read_bytes()))
    asked = [page.relative_to(site).as_posix() for page in (shown[-1], shown[len(shown) // 2])]
    return Weight((max(sizes), median(sizes)), _fetched(site, asked))


def _fetched(site: Path, pages: list[str]) -> tuple[float, float] | None:
    """Run the program `fetched` in an environment with a browser driver."""
    python = os.environ.get("BROWSER_PYTHON", sys.executable)
    command = [python, "-m", "tests.benchmarks.fetched", str(site), *pages]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        print(f"pages are not weighed: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    heaviest, middle = json.loads(done.stdout)
    return heaviest, middle


def _shows(page: Path) -> bool:
    html = page.read_text("utf-8")
    # A gallery's own index has thumbnails only.
    return any(inline_pictures(html)) or bool(re.search(r"_\d\d\d\.png", html))


def _packed(content: bytes) -> int:
    return len(gzip.compress(content, 9, mtime=0))
