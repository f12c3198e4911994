"""Read the searchable records of a page from its HTML: sections, figures, formulas, terms, rows.

The HTML is read before pictures and data tables are inserted, so that tick labels and cells do not
crowd the results. Elements with `data-search-exclude` are skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape

_TOKEN = re.compile(
    r"<!--.*?-->|<math([^>]*)>(.*?)</math>"
    r"|<(/?)([a-zA-Z][\w-]*)((?:[^>\"]|\"[^\"]*\")*)>|([^<]+)",
    re.S,
)
_TAG = re.compile(r"<[^>]*>")
_IDENTIFIER = re.compile(r"<mi>([^<]+)</mi>|<mtext>([^<]+)</mtext>")
_ID = re.compile(r'(?<![\w-])id="([^"]*)"')
_SKIPPED = re.compile(
    r'data-search-exclude|class="(?:headerlink|fig-tools|row-link|fig-print|fig-tabs|footnote)'
)
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_SILENT = {"script", "style", "svg", "template", "legend", "button"}
_INLINE = {
    "a", "abbr", "b", "button", "code", "data", "em", "i", "kbd", "s", "small", "span", "strong",
    "sub", "sup",
}  # fmt: skip
_VOID = {"br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}


@dataclass(slots=True, kw_only=True)
class Record:
    """A search result: its anchor on the page (`""` is the top), title, kind and text.

    `symbols` are the symbols of its displayed formulas, which excerpts leave out; `also` are other
    names that readers may search for.
    """

    anchor: str
    title: str = ""
    kind: str = "section"
    text: str = ""
    symbols: str = ""
    also: str = ""
    parts: list[str] = field(default_factory=list)

    def close(self) -> None:
        """Set the record's text from the pieces read so far."""
        self.text = _settled(self.parts)
        self.title = _settled([self.title])


def _settled(parts: list[str]) -> str:
    return re.sub(r"\s+", " ", unescape("".join(parts))).replace("¶", "").strip()


def records(html: str, formulas: bool = False) -> list[Record]:
    """Return the records of one page; the first is the page itself, with its `h1` as title.

    With `formulas`, second-level sections are formulas.
    """
    reader = _Reader(formulas)
    for match in _TOKEN.finditer(html):
        display, math, closing, tag, attributes, text = match.groups()
        if text is not None:
            reader.text(text)
        elif math is not None:
            reader.math(math, "block" in display)
        elif tag:
            reader.tag(tag.lower(), attributes or "", bool(closing))
    for record in reader.found:
        record.close()
    return [r for r in reader.found if r.text or r.title]


class _Reader:
    """The state of the parser: the open record, the section to return to, skipped elements."""

    def __init__(self, formulas: bool) -> None:
        self.formulas = formulas
        self.found = [Record(anchor="", kind="page")]
        self.section = self.open = self.found[0]
        self.skipped = ""
        self.depth = 0
        self.left_out = 0  # the level of a heading whose section is left out
        self.heading = ""  # the tag whose text is the title of the open record

    def text(self, text: str) -> None:
        if self.skipped or self.left_out:
            return
        if self.heading:
            self.open.title += text
        else:
            self.open.parts.append(text)

    def math(self, inner: str, displayed: bool) -> None:
        if not displayed:
            self.text(_TAG.sub("", inner))
        elif not (self.skipped or self.left_out):
            found = (a or b for a, b in _IDENTIFIER.findall(inner))
            self.open.symbols += " " + unescape(" ".join(found))

    def tag(self, tag: str, attributes: str, closing: bool) -> None:
        if self.skipped:
            if tag == self.skipped:
                self.depth += -1 if closing else tag not in _VOID
                self.skipped = self.skipped if self.depth else ""
            return
        if closing:
            self._close(tag)
        elif self._silent(tag, attributes):
            if tag not in _VOID:
                self.skipped, self.depth = tag, 1
        else:
            self._open(tag, attributes)
        if tag not in _INLINE and not self.heading:
            self.open.parts.append(" ")

    def _silent(self, tag: str, attributes: str) -> bool:
        if tag in _SILENT or (tag == "thead" and self.formulas):
            opens = 'class="fig-value"' in attributes  # a number, part of its sentence
            return not opens
        return bool(_SKIPPED.search(attributes)) and tag not in _HEADINGS

    def _open(self, tag: str, attributes: str) -> None:
        named = _ID.search(attributes)
        if tag in _HEADINGS:
            self._heading(tag, named[1] if named else "", "data-search-exclude" in attributes)
        elif self.left_out:
            return
        elif tag == "figure" and named and named[1].startswith("fig-"):
            self.open = Record(anchor=unescape(named[1]), kind="figure")
            self.found.append(self.open)
        elif tag == "a" and 'class="fig-number"' in attributes and self.open.kind == "figure":
            self.heading = "a"
        elif tag == "tr" and named:
            self.open = Record(anchor=unescape(named[1]), kind="row")
            self.found.append(self.open)
        elif tag == "th" and self.open.kind == "row":
            self.heading = "th"
        elif tag == "dt":
            self.open = Record(anchor="", kind="term")
            self.heading = "dt"
            self.found.append(self.open)
        elif tag == "span" and self.heading == "dt" and named:
            self.open.anchor = unescape(named[1])

    def _heading(self, tag: str, anchor: str, excluded: bool) -> None:
        level = int(tag[1])
        if self.left_out and level > self.left_out:
            return
        self.left_out = level if excluded else 0
        if tag == "h1":
            self.section = self.found[0]
        elif not excluded:
            kind = "formula" if self.formulas and level == 2 else "section"
            self.section = Record(anchor=unescape(anchor), kind=kind)
            self.found.append(self.section)
        self.open = self.section
        self.heading = "" if excluded else tag

    def _close(self, tag: str) -> None:
        if tag == self.heading:
            self.heading = ""
        elif tag in ("figure", "tr", "dl") and self.open is not self.section:
            self.open = self.section
