"""Tables of data that come as HTML: taken off a page before two parsers of HTML go through them.

A page of the validation has thirty thousand tags, and each parser took a fifth of a second for
them.
"""

from __future__ import annotations

import re

from markdown import Markdown
from markdown.preprocessors import Preprocessor

from figgen.markdown.conversion import Page

OPENING = '<div class="fig-scroll data-table"'
"""How the line begins at which such a table does."""

CLOSING = "</tbody></table></div>"
"""The line at which it ends."""


class DataTables(Preprocessor):
    """Hold the tables back as superfences holds code, and tell the page which ids are in them."""

    def __init__(self, md: Markdown, page: Page) -> None:
        super().__init__(md)
        self.page = page
        md.preprocessors.register(self, "figgen-tables", 22)  # of the parsers the first has 21

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
