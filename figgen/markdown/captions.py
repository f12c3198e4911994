"""Captions and alternative texts, which refer to their figure's values by bare names."""

from __future__ import annotations

import re
import xml.etree.ElementTree as etree
from collections.abc import Mapping

from markdown import Markdown
from markdown.util import AtomicString

from figgen.charts import Named
from figgen.errors import InputError
from figgen.markdown.claims import ClaimInline, stated
from figgen.markdown.conversion import Page, Site
from figgen.markdown.inline import PATTERN, ValueInline
from figgen.markdown.math import ARITHMATEX, MathTree
from figgen.markdown.references import CitationInline, FigureLinkTree
from figgen.markdown.work import Work
from figgen.units import check_named
from figgen.values import compute, split_spec


class Captions:
    """Converts captions with one Markdown instance, created for the first caption."""

    def __init__(self, site: Site, page: Page) -> None:
        self.site = site
        self.page = page
        self.follows = False
        self._markdown: Markdown | None = None

    def html(self, text: str, values: Mapping[str, Named]) -> str:
        """Convert inline Markdown with values, citations, math and references to figures."""
        if self._markdown is None:
            self._markdown = self._made()
        self._value.named, self._value.follows = values, self.follows
        _check_units(text, values)
        Work().begin(self._markdown, [text])
        converted = self._markdown.reset().convert(text)
        return converted.removeprefix("<p>").removesuffix("</p>")

    def _made(self) -> Markdown:
        markdown = Markdown(
            extensions=["pymdownx.arithmatex"],
            extension_configs={"pymdownx.arithmatex": ARITHMATEX},
        )
        markdown.preprocessors.deregister("html_block")
        markdown.inlinePatterns.deregister("html")
        claim = ClaimInline(markdown, self.site, self.page)
        markdown.inlinePatterns.register(claim, "figgen-claim", 176)
        self._value = ValueInline(markdown, self.site, self.page)
        markdown.inlinePatterns.register(self._value, "figgen-value", 175)
        citation = CitationInline(markdown, self.site, self.page)
        markdown.inlinePatterns.register(citation, "figgen-citation", 174)
        math = MathTree(markdown, self.site, self.page)
        markdown.treeprocessors.register(math, "figgen-math", 15)
        links = CaptionLinkTree(markdown, self.site, self.page)
        markdown.treeprocessors.register(links, "figgen-links", 8)
        return markdown


class CaptionLinkTree(FigureLinkTree):
    """Refuses links to `.md` files in captions: MkDocs does not see them, so they would break."""

    def run(self, root: etree.Element) -> None:
        for link in root.iter("a"):
            target = link.get("href", "")
            if re.match(r"[^#:]+\.md(#|$)", target):
                place = "an anchor on the same page, such as #fig-name, or an absolute URL"
                error = InputError("link in a caption", expected=place, got=target)
                link.text = AtomicString(f"[{self.page.report(error, target)}]")
                link.set("class", "figgen-error")
        super().run(root)


def _check_units(text: str, values: Mapping[str, Named]) -> None:
    """Raise InputError for the first value whose format leaves out a unit that `text` lacks too."""
    around = re.sub(PATTERN, "", text)
    for match in re.finditer(PATTERN, text):
        name, spec = split_spec(match[1])
        if name in values:
            try:
                check_named(around, values[name].unit, spec)
            except InputError as error:
                raise InputError(f"{name}: {error}") from None


def plain(text: str, values: Mapping[str, Named]) -> str:
    """Return `text` with `{{ name:spec }}` filled in and each claim in its first wording."""

    _check_units(text, values)

    def fill(match: re.Match[str]) -> str:
        computed, spec = compute(match.group(1), values)
        return computed.text(spec)

    return re.sub(PATTERN, fill, stated(text))
