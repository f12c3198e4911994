"""Every installed contender of `make bench` builds two pages with all their pictures.

The others are not in the project's own environment; their drawing code is run.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.benchmarks import contenders, content, example, measure
from tests.benchmarks.contenders import Contender
from tests.benchmarks.content import Content
from tests.benchmarks.weight import pictures

ONLY = ("index.md", "guide/efficiency.md")
INSTALLED = contenders.ROOT / ".cache" / "benchmarks" / "bin" / "python"


class Two(NamedTuple):
    """Two pages of this site: the copy of the site, their contents, and the peers' data."""

    root: Path
    pages: list[Content]
    data: Path
    work: Path


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Two:
    work = tmp_path_factory.mktemp("bench")
    root = contenders.snapshot(work / "site", ONLY)
    pages = content.contents(root, work / "content-cache", lambda path: path not in ONLY)
    assert {page.path for page in pages} == {*ONLY}
    contenders.write_data(pages, work / "data")
    return Two(root, pages, work / "data", work)


def peer(two: Two, make: Callable[..., Contender]) -> Contender:
    return make(two.work / make.__name__, two.root, two.pages, two.data)


def drawn(two: Two) -> int:
    return sum(len(page.drawings) for page in two.pages)


def built(contender: Contender) -> int:
    """Return how many pictures a build shows; fail if the build fails."""
    measure.build(contender)
    return len(pictures(contender.site))


def test_a_cold_build_finds_nothing_of_the_one_before(tmp_path: Path) -> None:
    made = tmp_path / "site", tmp_path / "tool" / "pages", tmp_path / "tool" / "times.rst"
    tool = Contender(
        name="a tool", folder=tmp_path / "tool", command=(), site=made[0], caches=made[1:]
    )
    for _ in range(2):
        for folder in made[:2]:
            folder.mkdir(parents=True)
            (folder / "page").touch()
        made[2].touch()
        tool.forget()
        assert not any(path.exists() for path in made)
    tool.forget()


def test_this_site_is_built_with_the_shared_pictures(two: Two) -> None:
    """The literal floor and the browser tests cover it with its own pictures."""
    assert built(contenders.own("this site", two.root, two.work, "drawing.yml")) == drawn(two) > 1


def test_the_floor_is_the_stock_theme_without_pictures(two: Two) -> None:
    floor = contenders.floor(two.work / "floor", two.root, two.pages)
    assert built(floor) == 0
    assert "Figure 1" in (floor.site / "index.html").read_text("utf-8")


def test_the_literal_floor_has_the_pictures_in_its_pages(two: Two) -> None:
    assert built(contenders.literal_floor(two.work / "literal", two.root, two.pages)) == drawn(two)


def installed(contender: Contender, module: str) -> Contender | None:
    """Return the contender with an interpreter that has its tool, if there is one."""
    if find_spec(module) is not None:
        return contender
    if INSTALLED.exists():
        return replace(contender, command=(str(INSTALLED), *contender.command[1:]))
    return None


@pytest.mark.parametrize("make", [contenders.markdown_exec, contenders.markdown_exec_computed])
def test_markdown_exec_draws_from_blocks_of_code(two: Two, make: Callable[..., Contender]) -> None:
    made = peer(two, make)
    if ready := installed(made, "markdown_exec"):
        assert built(ready) == drawn(two)
        return
    out = io.StringIO()
    for page in sorted((made.folder / "docs").rglob("*.md")):
        for block in re.findall(
            r'(?s)^```python exec="1" html="1"\n(.*?)^```', page.read_text(), re.M
        ):
            with contextlib.redirect_stdout(out):
                exec(block, {})
    assert out.getvalue().count("<svg") == drawn(two)


@pytest.mark.parametrize(
    ("make", "module"),
    [
        (contenders.mkdocs_gallery, "mkdocs_gallery"),
        (contenders.sphinx_gallery, "sphinx_gallery"),
    ],
    ids=["mkdocs-gallery", "sphinx-gallery"],
)
def test_a_gallery_draws_from_scripts(
    two: Two, make: Callable[..., Contender], module: str
) -> None:
    import matplotlib.pyplot as plt

    made = peer(two, make)
    if ready := installed(made, module):
        assert built(ready) == drawn(two)
        return
    for script in sorted((made.folder / "scripts").glob("plot_*.py")):
        runpy.run_path(str(script))
    assert len(plt.get_fignums()) == drawn(two)
    plt.close("all")


@pytest.mark.parametrize(
    ("page", "shows"),
    [
        ("<b>9.37\N{NO-BREAK SPACE}kW</b>", "new"),
        ("<pre>cottage: 8532 W</pre>", "stale"),
        ("<td>8,532</td> W, once 9,372 W", "new"),
        ("<p>heat</p>", "neither"),
    ],
)
def test_a_site_is_stale_that_shows_the_total_before_the_edit(
    tmp_path: Path, page: str, shows: str
) -> None:
    """30 K · (110 · 1.4 + 18 · 2.8 + 80 · 1.0) W/K, and the same with 10 m² more of windows."""
    assert float(example.OLD[0]) == pytest.approx(30 * 284.4)
    assert float(example.NEW[0]) == pytest.approx(30 * (284.4 + 28))
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    assert example.shown(tmp_path) == shows
