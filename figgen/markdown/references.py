"""Turn `[](#fig-id)` into "Figure 3.2", and `[@key]` into a citation with an entry below."""

from __future__ import annotations

import posixpath
import re
import xml.etree.ElementTree as etree
from collections.abc import Mapping
from html import escape

from markdown.inlinepatterns import InlineProcessor
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString

from figgen.errors import InputError, unknown
from figgen.markdown.conversion import Page, Site
from figgen.markdown.errors import inline_error
from figgen.markdown.lists import unknown_reference

CITATION = r"\[@([\w:.-]+)(?:,\s*([^\]]+))?\]"


class CitationInline(InlineProcessor):
    """Converts `[@key]` and `[@key, §3.2]`; the key is an entry of `docs/references.toml`."""

    def __init__(self, md: object, site: Site, page: Page) -> None:
        super().__init__(CITATION, md)
        self.site = site
        self.page = page

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[etree.Element, int, int]:
        key, place = m.group(1), m.group(2)
        if key not in self.site.references:
            error = unknown_reference(key, self.site.references)
            return inline_error(self.page.report(error, m.group(0))), m.start(0), m.end(0)
        if key not in self.page.cited:
            self.page.cited.append(key)
        link = etree.Element("a", {"class": "fig-cite", "href": f"#ref-{key}"})
        label = self.site.references[key].get("label", key)
        link.text = AtomicString(f"[{label}, {place}]" if place else f"[{label}]")
        return link, m.start(0), m.end(0)


def cited_html(page: Page, site: Site) -> str:
    """Return the entries that a page cites, in order of first use; "" if it cites none."""
    if not page.cited:
        return ""
    items = "".join(
        f'<li id="ref-{escape(key)}">{_entry(site.references[key])}</li>' for key in page.cited
    )
    return (
        '<aside class="fig-references" aria-label="Sources cited">'
        f"<p><strong>Sources cited</strong></p><ol>{items}</ol></aside>"
    )


def _entry(reference: dict[str, str]) -> str:
    title = escape(reference["title"])
    if "url" in reference:
        title = f'<a href="{escape(reference["url"], quote=True)}">{title}</a>'
    parts = [escape(reference["authors"]), title]
    parts += [escape(str(reference[key])) for key in ("where", "year", "note") if key in reference]
    return ". ".join(part.rstrip(".") for part in parts) + "."


class FigureLinkTree(Treeprocessor):
    """Fills in links without text that point to a figure, on this page or another."""

    def __init__(self, md: object, site: Site, page: Page) -> None:
        super().__init__(md)
        self.site = site
        self.page = page

    def run(self, root: etree.Element) -> None:
        for link in list(root.iter("a")):
            target, _, anchor = link.get("href", "").partition("#")
            if not anchor.startswith("fig-") or link.text or len(link):
                continue
            path = posixpath.normpath(posixpath.join(posixpath.dirname(self.page.path), target))
            here = not target or path == self.page.path
            numbers = self.page.numbers if here else self.site.numbers.get(path, {})
            number = numbers.get(anchor.removeprefix("fig-"))
            if number is None:
                error, about = self._unknown(anchor, numbers), "" if here else path
                link.text = AtomicString(f"[{self.page.report(error, f'#{anchor}', about)}]")
                link.set("class", "figgen-error")
                if here or path in self.site.numbers:
                    link.tag = "span"  # the host would report a link a second time
                    del link.attrib["href"]
            else:
                link.text = AtomicString(number)

    def _unknown(self, anchor: str, numbers: Mapping[str, str]) -> InputError:
        """Return the error for a link to an unknown figure; it names pages that have the figure."""
        name, folder = anchor.removeprefix("fig-"), posixpath.dirname(self.page.path) or "."
        pages = [page for page, known in sorted(self.site.numbers.items()) if name in known]
        if pages:
            there = [f"{posixpath.relpath(page, folder)}#{anchor}" for page in pages[:3]]
            return InputError(f"unknown figure {anchor!r}", nearest=there)
        return unknown("figure", anchor, [f"fig-{name}" for name in numbers])
