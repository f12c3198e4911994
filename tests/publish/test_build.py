"""A build of one page, without MkDocs: what it counts and what it publishes."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from markdown import Markdown

from figgen.cache import digest
from figgen.formulas import FORMULAS, module
from figgen.generated.site_pages import kept_validation
from figgen.guide import SUBJECT
from figgen.guide.tool_scripts import TOOLS
from figgen.publish.begin import begin_build
from figgen.publish.build import SiteBuild
from figgen.serving.memory import Memory
from tests.pages import host_page

PAGE = """# Page

```figure
figure: bubble-curves
as: plotly
caption: The bubble shrinks as microbatches are added.
alt: Falling curves.
```

```figure
figure: bubble-table
stages: [4, 8]
microbatches: [8, 8]
chunks: [1, 1]
caption: "The same as numbers, with $b$ for the bubble."
alt: A table.
```
"""


def built(folder: Path, source: str = PAGE) -> tuple[SiteBuild, str]:
    """Build and close a site with this page only, and return the build and its summary."""
    building = begin_build(folder, folder / "cache", "Site", "http://127.0.0.1/")
    building.scan([("page.md", "1", source)])
    options = {"site": building.site, "page": building.page("page.md", "page/", source)}
    Markdown(extensions=["figgen"], extension_configs={"figgen": options}).convert(source)
    return building, building.close(print)


def about(
    monkeypatch: pytest.MonkeyPatch,
    data: Mapping[str, Callable[[], str]],
    pages: Callable[..., dict[str, str]],
) -> None:
    """Give the site tools with this data, and these generated pages."""
    tools = replace(TOOLS, data=data)
    monkeypatch.setattr("figgen.guide.SUBJECT", replace(SUBJECT, tools=lambda: tools, pages=pages))


def counts(told: str) -> list[int]:
    return [int(number) for number in re.findall(r"(\d+) (?:figures|drawn|from)", told)]


def test_the_picture_of_a_table_is_counted_with_the_others(tmp_path: Path) -> None:
    _, first = built(tmp_path)
    _, second = built(tmp_path)

    assert counts(first) == [2, 2, 0]
    assert counts(second) == [2, 0, 2]


def test_a_picture_on_two_pages_is_one_also_where_pages_are_taken_over(tmp_path: Path) -> None:
    entries = [
        {"figure": "bubble-table", "id": name, "data_sha256": "0"} for name in ("a", "a", "b")
    ]
    building, _ = built(tmp_path)
    for _ in range(2):
        building.site.pictures.taken(entries)

    assert counts(building.site.pictures.finish()) == [4, 2, 2]


def test_every_figure_can_be_downloaded_and_the_math_font_is_there(tmp_path: Path) -> None:
    building, _ = built(tmp_path)
    folder = "assets/figures/page/fig-bubble"

    assert building.problems == []
    assert set(building.files()) == {
        *(f"{folder}-{figure}.{kind}" for figure in ("curves", "table")
          for kind in ("svg", "csv", "json")),
        f"{folder}-curves.plotly.json",
        "assets/javascripts/plotly.min.js",
        *(f"assets/javascripts/{name}.js"
          for name in ("figures", "player", "preview", "tables", "take")),
        "assets/stylesheets/figures.css",
        "assets/fonts/math.woff2",
        "assets/stylesheets/roles.css",
    }  # fmt: skip
    assert set(building.records()) == {"figures.json", "sources.json"}


def test_the_manifest_has_what_a_report_of_changes_needs(tmp_path: Path) -> None:
    idle = "\n{{ bubble_fraction(stages=2, microbatches=3):.0%}}\n"
    building, _ = built(tmp_path, PAGE + idle)
    entries = json.loads(building.records()["figures.json"])
    number, curves, table = sorted(entries, key=lambda entry: "call" not in entry)
    assert number["formula"] == "(stages − 1) / (microbatches + stages − 1)"
    assert number["source"] == "Huang et al. 2019 (GPipe), §2.3"
    assert number["inputs"] == {"stages": 2, "microbatches": 3}
    assert (number["value"], number["shown"], number["unit"]) == (0.25, "25%", "1")
    for figure in (curves, table):
        drawn = str(building.files()[f"assets/figures/page/{figure['id']}.svg"])
        assert figure["picture_sha256"] == digest(drawn)
    assert curves["data_sha256"] != table["data_sha256"]


@pytest.mark.parametrize(
    ("broken", "line", "told"),
    [
        ("figgen.markdown.downloads._plotly", 4, "fig-bubble-curves.plotly.json: no axis"),
        ("figgen.markdown.downloads._standalone", 4, "fig-bubble-curves.svg: no axis"),
        ("figgen.markdown.downloads._csv", 4, "fig-bubble-curves.csv: no axis"),
    ],
)
def test_a_file_that_cannot_be_made_is_a_problem_of_the_line_that_offers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, line: int, told: str
) -> None:
    def fails(*given: object) -> str:
        raise KeyError("no axis")

    monkeypatch.setattr(broken, fails)
    building, _ = built(tmp_path)
    problems = [str(problem) for problem in building.problems]
    assert any(
        problem.startswith(f"page.md:{line}: KeyError while making assets/figures/page/fig-")
        and told.replace("no axis", "'no axis'") in problem
        for problem in problems
    ), problems
    warned: list[str] = []
    building.report(warned.append)
    assert len(warned) == len(problems), "each a warning, which a strict build does not pass"


def test_formulas_are_published_as_a_module_where_there_are_tools(tmp_path: Path) -> None:
    building = begin_build(tmp_path, tmp_path / "cache", "Site", "http://127.0.0.1/")
    building.scan([("page.md", "1", "# Page\n"), ("tools/map.md", "2", "# Map\n")])
    building.close(print)
    assert "assets/javascripts/formula-notes.js" in building.files()
    published = building.files()["assets/javascripts/formulas.js"]

    assert published == module(reversed(FORMULAS.values()))
    assert re.findall(r"^export function (\w+)", str(published), re.M) == sorted(FORMULAS)


@pytest.mark.skipif(sys.platform != "linux", reason="builds fork on Linux only")
@pytest.mark.parametrize(
    ("memory", "page", "elsewhere"),
    [
        (None, "tools/map.md", True),
        (None, "guide/map.md", False),
        # A server remembers what its own process makes; another one ends with what it remembers.
        (Memory, "tools/map.md", False),
    ],
)
def test_what_the_tools_need_is_made_by_another_process_and_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    memory: type[Memory] | None,
    page: str,
    elsewhere: bool,
) -> None:
    begun, begin = os.pipe()

    def who() -> str:
        os.write(begin, b"b")
        return str(os.getpid())

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    about(monkeypatch, {"who": who}, lambda *_, **__: {})
    (tmp_path / page).parent.mkdir()
    (tmp_path / page).write_text("# Map\n")
    building = begin_build(tmp_path, tmp_path / "cache", "Site", "http://127.0.0.1/")
    made = set()
    for keeper in [memory() if memory else building.keeper] * 2:
        building = SiteBuild(site=building.site, docs=tmp_path, keeper=keeper)
        building.pages()
        building.scan([(path, "", "# Map\n") for path in (page, "index.md")])
        if memory:
            building.share(lambda _: None)
        if elsewhere and not made:
            os.read(begun, 1)
        building.close(print)
        made.add(building.tools.data["who"]())
    assert len(made) == 1
    assert (made != {str(os.getpid())}) is elsewhere


@pytest.mark.skipif(sys.platform != "linux", reason="builds fork on Linux only")
def test_the_last_generated_pages_are_taken_from_the_process_that_made_them_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, begin = os.pipe()

    def validation_pages() -> dict[str, str]:
        return {"validation/index.md": str(os.getpid())}

    def who() -> str:
        os.write(begin, b"b")
        return ""

    def pages(*_: object, keep: Callable[..., Any], **__: object) -> dict[str, str]:
        os.read(begun, 1)
        return kept_validation(keep)

    validation_pages.__module__ = "figgen.generated.validation"
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr("figgen.generated.site_pages.validation_pages", validation_pages)
    about(monkeypatch, {"who": who}, pages)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "map.md").write_text("# Map\n")
    building = begin_build(tmp_path, tmp_path / "cache", "Site", "http://127.0.0.1/")
    assert building.pages()["validation/index.md"] != str(os.getpid())
    building.close(print)


@pytest.mark.skipif(sys.platform != "linux", reason="builds fork on Linux only")
def test_a_build_that_fails_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    about(monkeypatch, {"waits": signal.pause}, lambda *_, **__: {})
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "map.md").write_text("# Map\n")
    building = begin_build(tmp_path, tmp_path / "cache", "Site", "http://127.0.0.1/")
    before = multiprocessing.active_children()
    building.pages()
    assert len(multiprocessing.active_children()) > len(before)
    building.abandon()
    assert multiprocessing.active_children() == before


def test_the_journey_has_a_numbering_of_its_own() -> None:
    paths = ["journey/a.md", "guide/a.md", "journey/b.md", "guide/b.md"]
    assert list(SiteBuild.chapter_numbers(paths).values()) == ["J1", "1", "J2", "2"]


def test_a_server_forgets_a_page_that_is_not_kept(tmp_path: Path) -> None:
    building = begin_build(tmp_path, tmp_path / "cache", "Site", "http://127.0.0.1/")
    memory = Memory()
    building = SiteBuild(site=building.site, keeper=memory)
    for keep in (True, False):
        building.scan([("page.md", "1", "# Page\n")])
        page = building.page("page.md", "page/", "# Page\n")
        building.converted(page, "", host_page(), keep=keep)
        assert ("page.md" in memory.pages) is keep
