"""Data tables written as HTML, held back from a page's two HTML parsers.

A validation page has thirty thousand tags, and each parser took a fifth of a second for them.
"""

from __future__ import annotations

import re

from markdown import Markdown
from markdown.preprocessors import Preprocessor

from figgen.markdown.conversion import Page

OPENING = '<div class="fig-scroll data-table"'
"""The beginning of a table's first line."""

CLOSING = "</tbody></table></div>"
"""A table's last line."""


class DataTables(Preprocessor):
    """Stashes the tables as superfences stashes code, and registers their ids with the page."""

    def __init__(self, md: Markdown, page: Page) -> None:
        super().__init__(md)
        self.page = page
        md.preprocessors.register(self, "figgen-tables", 22)  # the first parser has 21

    def run(self, lines: list[str]) -> list[str]:
        kept: list[str] = []
        table: list[str] = []
        for line in lines:
            if not table and not line.startswith(OPENING):
                kept.append(line)
                continue
            table.append(line)
            if line == CLOSING:
                kept.append(self._held("\n".join(table)))
                table = []
        return kept + table

    def _held(self, table: str) -> str:
        self.page.held_ids.update(re.findall(r'\sid="([^"]+)"', table))
        return self.md.htmlStash.store(table)
