"""A build of one page, without MkDocs: what it counts and what it publishes."""

from __future__ import annotations

import re
from pathlib import Path

from markdown import Markdown

from figgen.edition import Edition, open_edition
from figgen.formulas import FORMULAS, module

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


def built(folder: Path) -> tuple[Edition, str]:
    """The edition of a site that is this page, closed, and what it says of itself."""
    edition = open_edition(folder, folder / "cache", "Site", "http://127.0.0.1/", lambda _: None)
    edition.scan([("page.md", "1", PAGE)])
    options = {"site": edition.site, "page": edition.page("page.md", "page/", PAGE)}
    Markdown(extensions=["figgen"], extension_configs={"figgen": options}).convert(PAGE)
    return edition, edition.close()


def counts(told: str) -> list[int]:
    return [int(number) for number in re.findall(r"(\d+) (?:figures|drawn|from)", told)]


def test_the_picture_of_a_table_is_counted_with_the_others(tmp_path: Path) -> None:
    _, first = built(tmp_path)
    _, second = built(tmp_path)

    assert counts(first) == [2, 2, 0]
    assert counts(second) == [2, 0, 2]


def test_every_figure_can_be_downloaded_and_the_math_font_is_there(tmp_path: Path) -> None:
    edition, _ = built(tmp_path)
    folder = "assets/figures/page/fig-bubble"

    assert edition.problems == []
    assert set(edition.files()) == {
        *(f"{folder}-{figure}.{kind}" for figure in ("curves", "table")
          for kind in ("svg", "csv", "json")),
        f"{folder}-curves.plotly.json",
        "assets/javascripts/plotly.min.js",
        "assets/fonts/math.woff2",
        "assets/stylesheets/roles.css",
        "figures.json",
        "sources.json",
    }  # fmt: skip


def test_formulas_are_published_as_a_module_where_there_are_tools(tmp_path: Path) -> None:
    edition = open_edition(tmp_path, tmp_path / "cache", "Site", "http://127.0.0.1/", print)
    edition.scan([("page.md", "1", "# Page\n"), ("tools/map.md", "2", "# Map\n")])
    edition.close()
    assert "assets/javascripts/formula-notes.js" in edition.files()
    published = edition.files()["assets/javascripts/formulas.js"]

    assert published == module(reversed(FORMULAS.values()))
    assert re.findall(r"^export function (\w+)", str(published), re.M) == sorted(FORMULAS)
