"""Data tables reach the page unchanged, and their contents can be linked to."""

from __future__ import annotations

from markdown import Markdown

from figgen.generated.data_tables import Cell, Row, Sources, table
from figgen.markdown.conversion import Page, Site


def converted(source: str) -> tuple[str, Page]:
    page = Page()
    options = {"figgen": {"site": Site(), "page": page}}
    md = Markdown(extensions=["figgen"], extension_configs=options)
    page.begin(source)
    return md.convert(source), page


def test_a_table_is_not_read_as_markdown_and_its_rows_can_be_linked_to() -> None:
    rows = [Row("a-row", (Cell(text="*a* $x$ {{ y }}"), Cell(text="2", key=2.0)), "a source")]
    made = table("What is <counted>", ("name", "count"), rows, Sources())
    html, page = converted(f"# Title\n\nWords before.\n\n{made}\n*Words* after.\n")
    box = made.partition("\n")[2].strip()
    assert box in html
    assert "<em>Words</em> after." in html
    assert page.held_ids == {"a-row"}
    assert "a-row" in page.anchors()
    assert page.problems == []


def test_a_table_that_is_shown_as_code_or_never_ends_is_none() -> None:
    opening = '<div class="fig-scroll data-table"><table><tbody>\n<tr id="no"></tr>\n'
    html, page = converted(f"```html\n{opening}</tbody></table></div>\n```\n")
    assert "<code>" in html
    assert page.held_ids == set()
    assert converted(f"{opening}\nWords.\n")[1].held_ids == set()
