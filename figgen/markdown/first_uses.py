"""Link the first use of a short name such as TP on each page to its glossary entry."""

from __future__ import annotations

import posixpath
import re
import xml.etree.ElementTree as etree

from markdown.treeprocessors import Treeprocessor

from figgen.markdown.conversion import Page, Site
from figgen.subject import subject

BLOCKS = ("p", "li", "td", "dd")
NO_TEXT = ("a", "code", "pre", "abbr", "button", "figure", "summary", "th", "h1", "h2", "h3", "h4")
"""Elements without running text, or in which a link is not allowed."""


class FirstUses(Treeprocessor):
    """Links the first use of each short name, unless the same block spells the term out."""

    def __init__(self, md: object, site: Site, page: Page) -> None:
        super().__init__(md)
        self.site = site
        self.page = page

    def run(self, root: etree.Element) -> None:
        about, path = subject(), self.page.path
        linked = path.startswith(about.first_uses) and path != about.glossary
        self.left = dict(self.site.shorts) if linked else {}
        self._visit(root, None)

    def _visit(self, element: etree.Element, block: etree.Element | None) -> None:
        if element.tag in BLOCKS:
            block = element
        at = self._linked(element, 0, element.text, block)
        for child in list(element)[at:]:
            if not self.left:
                return
            if child.tag not in NO_TEXT and "arithmatex" not in child.get("class", ""):
                self._visit(child, block)
            at += 1
            at += self._linked(element, at, child.tail, block)

    def _linked(
        self, parent: etree.Element, at: int, text: str | None, block: etree.Element | None
    ) -> int:
        """Link first uses in `text`, which precedes the child `at`; return the number of links."""
        if block is None or not text or type(text) is not str or not self.left:
            return 0
        names = "|".join(self.left)
        found = re.search(rf"(?<![\w-])({names})(?![\w-])", text)
        if not found:
            return 0
        name, rest = found[1], text[found.end() :]
        short = self.left.pop(name)
        if re.search(rf"\b{short.word}(?:[- ]parallel| \()", "".join(block.itertext()), re.I):
            return self._linked(parent, at, text, block)
        link = etree.Element(
            "a",
            {
                "href": posixpath.relpath(short.target, posixpath.dirname(self.page.path)),
                "class": "first-use",
                "title": f"{short.term}: {short.means}",
                "data-term": short.term,
            },
        )
        link.text, link.tail = name, rest
        if at:
            parent[at - 1].tail = text[: found.start()]
        else:
            parent.text = text[: found.start()]
        parent.insert(at, link)
        return 1 + self._linked(parent, at + 1, rest, block)
