"""A build of several processes knows afterward what each of them made and used."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont
from markdown import Markdown

from figgen.publish.begin import begin_build
from figgen.publish.build import SiteBuild
from figgen.serving.answers import PREFIX
from tests.pages import BUBBLES, host_page

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="builds fork on Linux only")
PAGES = {
    f"{name}.md": f"# Page\n\n{BUBBLES.replace('[4, 8]', f'[4, {n}]')}"
    for n, name in enumerate("abcdef", start=6)
}


def shared_build(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[SiteBuild, set[str]]:
    """Build `PAGES` with a fork that converts the last; return what the first process converted."""
    monkeypatch.setattr("figgen.publish.build.forks", lambda: 1)
    building = begin_build(folder, folder / "cache", "Site", "http://127.0.0.1/")
    begun, begin = os.pipe()
    ours: set[str] = set()
    first = os.getpid()

    def convert(path: str) -> None:
        page = building.page(path, path, PAGES[path])
        options = {"site": building.site, "page": page}
        html = Markdown(extensions=["figgen"], extension_configs={"figgen": options}).convert(
            PAGES[path]
        )
        building.converted(page, html, host_page(), keep=True)
        if os.getpid() == first:
            ours.add(path)
        else:
            os.write(begin, b"b")

    building.scan([(path, "1", text) for path, text in PAGES.items()])
    building.share(convert)
    os.read(begun, 1)  # from here on the fork has a page
    for path in PAGES:
        if not building.kept(path):
            convert(path)
    building.close(print)
    building.record(folder)
    os.close(begun)
    os.close(begin)
    return building, ours


def test_entries_of_the_cache_that_a_fork_used_count_as_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    building, ours = shared_build(tmp_path, monkeypatch)
    assert ours < set(PAGES)

    entries = {
        entry.name
        for entry in (tmp_path / "cache").iterdir()
        if not entry.name.startswith((PREFIX, "math"))
    }
    assert len(entries) >= 2 * len(PAGES)
    assert entries == building.site.pictures.used
    assert len(building.site.pictures.drawn) == len(PAGES)


def test_the_font_that_a_fork_makes_has_what_pages_of_both_processes_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PAGES, "a.md", f"{PAGES['a.md']}\n\n$\\alpha$\n")
    monkeypatch.setitem(PAGES, "f.md", f"{PAGES['f.md']}\n\n$\\beta$\n")
    building, _ = shared_build(tmp_path, monkeypatch)
    font = "assets/fonts/math.woff2"
    assert font not in building.files()

    known = TTFont(tmp_path / font).getBestCmap()
    assert {ord("α"), ord("β")} < set(known)
    assert ord("γ") not in known
