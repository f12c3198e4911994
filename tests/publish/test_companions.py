"""Files next to the pages: twins with their numbers, the feed, cards, dates of change."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import xml.etree.ElementTree as etree
from pathlib import Path

import pytest
from markdown import Markdown

from figgen.charts import Column, Table
from figgen.publish.about import about, reading_minutes
from figgen.publish.begin import begin_build
from figgen.publish.changelog import PAGE as CHANGELOG_PAGE
from figgen.publish.changelog import changelog_pages, feed, releases
from figgen.publish.companions import companions
from figgen.publish.history import last_changes
from figgen.publish.twins import MOST_ROWS, figure_twin
from figgen.registry import build


def test_a_twin_says_how_many_rows_it_leaves_out() -> None:
    rows = tuple((at,) for at in range(MOST_ROWS + 3))
    columns = (Column(label="row"),)
    cut = figure_twin("Figure 1", "Rows.", "", Table(columns=columns, rows=rows, values={}))
    assert cut.endswith(f"| {MOST_ROWS - 1} |\n\n(3 more rows are on the page.)")
    whole = figure_twin("Figure 1", "Rows.", "", Table(columns=columns, rows=rows[:-3], values={}))
    assert whole.endswith(f"| {MOST_ROWS - 1} |")
    # The table of constants, of which captions count the rows, is whole.
    assert len(build("validation-constants", {}).rows) <= MOST_ROWS


PAGE = """---
description: "How much idles."
---

# Bubbles

With four stages {{ bubble_fraction(stages=4, microbatches=8):.1%}} idles, as in [](#fig-table).
In code, `{{ x }}` stays.
`{{ bubble_fraction(stages=4, microbatches=8):.1%}}` is a number, ``[](#fig-table)`` a link.

```figure
figure: bubble-table
id: table
stages: [4, 8]
microbatches: [8, 8]
chunks: [1, 1]
caption: "Of the first row {{ bubble_fraction(stages=4, microbatches=8):.1%}} is idle."
alt: A table of two rows.
```

```figure
figure: rank-grid
presets: [map-8, map-16]
caption: "{{ world_size }} GPUs."
alt: A grid.
```

```figure
figure: pipeline-timeline
id: lanes
schedule: 1f1b
stages: 2
microbatches: 2
caption: Two lanes.
alt: Lanes.
```

??? question "How much idles?"

    {{ bubble_fraction(stages=4, microbatches=8):.1%}} idles.

{= bubble_fraction :: What share idles? =}

After it.
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | bytes]:
    folder = tmp_path_factory.mktemp("docs")
    building = begin_build(folder, folder / "cache", "Site", "https://x.org/g/")
    building.scan([("guide/page.md", "3", PAGE)])
    page = building.page("guide/page.md", "guide/page/", PAGE)
    options = {"site": building.site, "page": page}
    Markdown(extensions=["figgen"], extension_configs={"figgen": options}).convert(PAGE)
    building.close(print)
    assert building.problems == []
    return companions(building.site, "One sentence.", "2026-11-01")


def test_a_twin_is_the_page_with_its_numbers(made: dict[str, str | bytes]) -> None:
    twin = str(made["guide/page/index.md"])
    # 3/(8+3) of the wall time: GPipe's and 1F1B's closed form.
    assert "With four stages 27.3% idles, as in Figure 3.1.\n" in twin
    assert "**Figure 3.1.** Of the first row 27.3% is idle.\n" in twin
    assert "Description: A table of two rows." in twin
    # Tabs of one figure share its number, which each follows with its own name.
    numbers = [line.split("**")[1] for line in twin.splitlines() if line.startswith("**Figure")]
    assert numbers == ["Figure 3.1.", "Figure 3.2.", "Figure 3.2.", "Figure 3.3."]
    tabs = re.findall(r"\*\*Figure 3\.2\.\*\* \*(.*?)\.\* (\d+) GPUs\.\n", twin)
    assert tabs == [("1 node × 8 GPUs, TP8", "8"), ("2 nodes × 8 GPUs, TP8 PP2", "16")]
    assert "In code, `{{ x }}` stays." in twin
    assert "`{{ bubble_fraction(stages=4, microbatches=8):.1%}}` is a number, " in twin
    assert "``[](#fig-table)`` a link.\n" in twin
    assert sum(line.startswith("| ---") for line in twin.splitlines()) == 1
    assert "```" not in twin
    assert twin.startswith("\n# Bubbles\n")
    # A field that takes an answer needs a script, and its fold has asked the question already.
    assert twin.endswith("    27.3% idles.\n\nAfter it.\n")


def test_the_list_names_every_twin(made: dict[str, str | bytes]) -> None:
    listed = str(made["llms.txt"])
    assert listed.startswith("# Site\n\n> One sentence.\n")
    assert "- [Bubbles](https://x.org/g/guide/page/index.md): How much idles.\n" in listed


def test_a_card_is_a_picture_of_the_size_that_links_show(made: dict[str, str | bytes]) -> None:
    card = made["assets/cards/guide/page.png"]
    assert isinstance(card, bytes)
    assert card.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", card[16:24]) == (1200, 630)


CHANGELOG = """# Changelog

What changes.

## [Unreleased]

- One <b> & two.

## [0.2.0] - 2026-06-04

- Second.

## [0.1.0] - 2026-05-04

- First.
"""


def test_the_feed_has_an_entry_for_each_release_with_the_page_that_shows_it() -> None:
    pages = changelog_pages(CHANGELOG) | {"guide/page.md": "## [9.9.9] - 2027-01-01\n"}
    root = etree.fromstring(feed(pages, "A & B", "https://x.org/", "2026-11-01"))
    atom = "{http://www.w3.org/2005/Atom}"
    page = "https://x.org/about/changelog/"
    found = [
        (
            entry.findtext(f"{atom}title"),
            entry.findtext(f"{atom}updated"),
            entry.findtext(f"{atom}id"),
            entry.find(f"{atom}link").get("href"),  # type: ignore[union-attr]
        )
        for entry in root.findall(f"{atom}entry")
    ]
    older = "https://x.org/about/releases/0.1.0/"
    assert found == [
        ("Unreleased", "2026-11-01T00:00:00Z", f"{page}#unreleased", page),
        ("0.2.0", "2026-06-04T00:00:00Z", f"{page}#0.2.0", page),
        ("0.1.0", "2026-05-04T00:00:00Z", f"{page}#0.1.0", older),
    ]
    assert root.findtext(f"{atom}entry/{atom}content") == "- One <b> & two."


def test_the_changelog_shows_the_newest_release_and_links_to_the_older_ones() -> None:
    pages = changelog_pages(CHANGELOG)
    assert list(pages) == [CHANGELOG_PAGE, "about/releases/0.1.0.md"]
    current, older = pages.values()
    assert "One <b>" in current
    assert "- Second." in current
    assert "- First." not in current
    assert "[0.1.0](releases/0.1.0.md)" in current
    assert "../../changes.xml" in current
    assert "# Release 0.1.0\n" in older
    assert "(../changelog.md)" in older
    assert "## [0.1.0] - 2026-05-04\n\n- First.\n" in older


def test_the_pages_of_a_changelog_have_each_of_its_lines_once() -> None:
    source = (Path(__file__).parents[2] / "CHANGELOG.md").read_text("utf-8")
    shown = "\n".join(changelog_pages(source).values()).splitlines()
    assert len(list(releases(source))) >= 6
    for line in source.splitlines():
        if line.startswith(("- ", "## ")):
            assert shown.count(line) == source.splitlines().count(line)


def test_a_changelog_without_releases_is_a_page_with_an_empty_feed() -> None:
    assert list(releases("# Changelog\n")) == []
    pages = changelog_pages("# Changelog\n")
    assert list(pages) == [CHANGELOG_PAGE]
    assert etree.fromstring(feed(pages, "A", "https://x.org/", "")).findall("{*}entry") == []


def test_reading_time_counts_prose_alone() -> None:
    words = "word " * 440
    assert reading_minutes(words) == 2
    assert reading_minutes(f"---\na: b\n---\n{words}\n```figure\n{words}\n```\n") == 2
    assert reading_minutes("") == 1


def test_what_a_page_says_of_itself_ends_no_script() -> None:
    found = about("S", "</script><b>", "d & <i>", "https://x.org/", "text", "2026-11-01", "")
    assert "<" not in found.json_ld
    assert json.loads(found.json_ld)["headline"] == "</script><b>"
    assert json.loads(found.json_ld)["dateModified"] == "2026-11-01"
    assert "image" not in json.loads(found.json_ld)
    assert "year = {2026}" in found.bibtex


def test_without_a_date_none_is_made_up() -> None:
    found = about("S", "T", "d", "https://x.org/", "text", "", "")
    assert "dateModified" not in found.json_ld
    assert "n.d." in found.citation
    assert "year" not in found.bibtex


def commit(where: Path, date: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    for words in (("add", "--all"), ("commit", "--quiet", "--message", "m")):
        environment = {**os.environ, "GIT_COMMITTER_DATE": f"{date}T12:00:00Z"}
        subprocess.run(["git", *who, *words], cwd=where, check=True, env=environment, timeout=30)


def test_dates_come_from_the_history(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    (docs / "a").mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True, timeout=30)
    (docs / "a/é one.md").write_text("1")
    (docs / "two.md").write_text("1")
    commit(tmp_path, "2025-01-02")
    (docs / "two.md").write_text("2")
    (tmp_path / "other.md").write_text("not a page")
    commit(tmp_path, "2026-03-04")
    assert last_changes(docs) == {"a/é one.md": "2025-01-02", "two.md": "2026-03-04"}


def test_a_folder_without_history_has_no_dates(tmp_path: Path) -> None:
    assert last_changes(tmp_path) == {}


def test_a_shallow_clone_has_no_dates(tmp_path: Path) -> None:
    whole, shallow = tmp_path / "whole", tmp_path / "shallow"
    (whole / "docs").mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", str(whole)], check=True, timeout=30)
    (whole / "docs/a.md").write_text("1")
    commit(whole, "2025-01-02")
    (whole / "docs/a.md").write_text("2")
    commit(whole, "2026-01-02")
    clone = ["git", "clone", "--quiet", "--depth=1", f"file://{whole}", str(shallow)]
    subprocess.run(clone, check=True, timeout=30)
    assert last_changes(shallow / "docs") == {}


def test_a_page_of_the_site_says_what_it_is(site_folder: Path) -> None:
    page = (site_folder / "guide/memory/index.html").read_text("utf-8")
    assert '<meta property="og:title" content="Memory budgets">' in page
    said = page.partition('<script type="application/ld+json">')[2].partition("</script>")[0]
    assert json.loads(said)["headline"] == "Memory budgets"
    assert "min read" in page
    assert "@misc{parallelism-computed-memory-budgets," in page


def test_a_missing_page_leads_to_the_search(site_folder: Path) -> None:
    page = (site_folder / "404.html").read_text("utf-8")
    assert "This page does not exist" in page
    assert 'href="/search/"' in page or 'search/">Search the guide' in page


def test_every_page_of_the_site_has_its_twin(site_folder: Path) -> None:
    pages = {path.parent for path in site_folder.rglob("index.html")}
    twins = {path.parent for path in site_folder.rglob("index.md")}
    assert pages - twins <= {site_folder / "changes"}
    for twin in site_folder.rglob("index.md"):
        assert "```figure" not in twin.read_text("utf-8"), twin
