"""All 135 figures of the plan have a place that exists, or a reason for having none."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from markdown.extensions.toc import slugify

from figgen.errors import InputError
from figgen.generated.figure_coverage import Planned, figure_coverage_page, planned_figures
from figgen.generated.site_pages import site_pages
from figgen.markdown.conversion import figure_numbers
from figgen.prose.lines import prose_lines

DOCS = Path(__file__).parents[1] / "docs"
ENTRIES = planned_figures(DOCS / "appendix" / "figures.toml")

EMPTY_ALLOWED = False
"""Whether entries may still be open; False once the guide is complete."""


@cache
def pages() -> dict[str, str]:
    """Every page of the site as Markdown, including generated ones."""
    written = {p.relative_to(DOCS).as_posix(): p.read_text("utf-8") for p in DOCS.rglob("*.md")}
    return site_pages(DOCS, {}) | written


@cache
def anchors(path: str) -> frozenset[str]:
    """Return the anchors of a page to which links may point."""
    return anchors_in(pages()[path])


def anchors_in(source: str) -> frozenset[str]:
    """Return the targets of links: figures, headings and elements with ids."""
    headings = (line.text for line in prose_lines(source) if line.kind == "heading")
    slugs = {slugify(re.sub(r"[⟦⟧⟪⟫\[\]]", "", text), "-") for text in headings}
    given = set(re.findall(r"\{[^}\n]*#([\w-]+)[^}\n]*\}|id=\"([\w-]+)\"", source))
    return frozenset(
        {f"fig-{name}" for name in figure_numbers(source)}
        | slugs
        | {name for pair in given for name in pair}
    )


def test_the_plan_has_135_entries_each_with_words() -> None:
    assert len(ENTRIES) == 135
    assert all(entry.shows and entry.form for entry in ENTRIES)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.key)
def test_an_entry_has_a_place_or_a_reason(entry: Planned) -> None:
    assert entry.settled or EMPTY_ALLOWED
    for place in entry.at:
        path, _, anchor = place.partition("#")
        if EMPTY_ALLOWED and path not in pages():
            continue  # a page that is still being written
        assert path in pages()
        assert not anchor or anchor in anchors(path)


def test_the_page_links_every_place_and_counts() -> None:
    entries = (
        Planned(
            key="a", shows="A | b", form="svg", at=("guide/x.md#fig-a", "guide/x.md#why"), note=""
        ),
        Planned(key="b", shows="Nothing", form="svg", at=(), note="Dropped because."),
    )
    page = figure_coverage_page(entries, {"guide/x.md": "The page"})
    assert "planned with 2 figures" in page
    assert "1 of them are shown" in page
    assert "A &#124; b | [](../guide/x.md#fig-a) of The page; [The page](../guide/x.md#why)" in page
    assert "| Nothing | – | Dropped because. |" in page


def test_an_entry_without_a_key_is_refused(tmp_path: Path) -> None:
    assert planned_figures(tmp_path / "none.toml") == ()
    (tmp_path / "figures.toml").write_text('[a]\nshows = "x"\n', encoding="utf-8")
    with pytest.raises(InputError, match="shows, form, at and note"):
        planned_figures(tmp_path / "figures.toml")
