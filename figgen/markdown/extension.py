"""The extension, which registers every processor and formats the figure fence."""

from __future__ import annotations

import xml.etree.ElementTree as etree
from collections.abc import Callable
from typing import Any

from markdown import Markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString

from figgen.errors import InputError
from figgen.markdown import directive as directives
from figgen.markdown import figure as figures
from figgen.markdown.captions import Captions, plain
from figgen.markdown.claims import ClaimInline
from figgen.markdown.conversion import Page, Site, fences
from figgen.markdown.errors import error_box, place_of
from figgen.markdown.first_uses import FirstUses
from figgen.markdown.inline import ButtonTree, ValueInline
from figgen.markdown.kept_together import KeptTogether
from figgen.markdown.math import ARITHMATEX, MathTree
from figgen.markdown.questions import QuestionBlocks
from figgen.markdown.references import CitationInline, FigureLinkTree, cited_html
from figgen.markdown.slips import slips
from figgen.markdown.tables import DataTables
from figgen.markdown.work import TooMuch, Work
from figgen.registry import follows
from figgen.subject import use


class FiggenExtension(Extension):
    """All of figgen's syntax for pages."""

    def __init__(self, **options: Any) -> None:
        self.config = {
            "site": ["", "figgen.markdown.Site that all pages share; a new one by default"],
            "page": ["", "figgen.markdown.Page to convert; created from the text by default"],
            "modules": [[], "modules that register the figures and formulas of a site"],
        }
        super().__init__(**options)

    def extendMarkdown(self, md: Markdown) -> None:
        if modules := self.getConfig("modules"):
            use(*modules)
        self.site: Site = self.getConfig("site") or Site()
        given: Page | None = self.getConfig("page") or None
        self.page = given or Page()
        self.captions = Captions(self.site, self.page)
        shared = (md, self.site, self.page)
        convert = md.convert
        md.convert = lambda source: self._within_limits(convert, source)
        md.registerExtensions(
            ["pymdownx.superfences", "pymdownx.arithmatex", "abbr"],
            {
                "pymdownx.superfences": {"custom_fences": [self._fence()]},
                "pymdownx.arithmatex": ARITHMATEX,
                "abbr": {"glossary": self.site.glossary},
            },
        )
        # Priorities: before escapes are resolved and after code spans are (180, 190).
        md.preprocessors.register(_Begin(md, self.page, given is None), "figgen-begin", 100)
        md.preprocessors.register(QuestionBlocks(md, self.page), "figgen-questions", 24)
        DataTables(md, self.page)
        md.inlinePatterns.register(ClaimInline(*shared), "figgen-claim", 176)
        md.inlinePatterns.register(ValueInline(*shared), "figgen-value", 175)
        md.inlinePatterns.register(CitationInline(*shared), "figgen-citation", 174)
        md.treeprocessors.register(MathTree(*shared), "figgen-math", 15)
        md.treeprocessors.register(KeptTogether(md), "figgen-kept-together", 13)
        md.treeprocessors.register(ButtonTree(md), "figgen-buttons", 12)
        md.treeprocessors.register(FigureLinkTree(*shared), "figgen-links", 8)
        md.treeprocessors.register(FirstUses(*shared), "figgen-first-uses", 6)
        md.treeprocessors.register(_End(*shared), "figgen-end", 1)

    def _within_limits(self, convert: Callable[[str], str], source: str) -> str:
        """Convert a page; return a box with the reason if its conversion takes too long."""
        try:
            return convert(source)
        except TooMuch as error:
            return error_box(self.page.report(error, error.text))
        except RecursionError:
            return error_box(self.page.note(1, str(InputError("this page nests too deeply"))))

    def _fence(self) -> dict[str, object]:
        return {
            "name": "figure",
            "class": "figgen",
            "format": self._figure,
            "validator": lambda language, inputs, options, attrs, md: not inputs,
        }

    def _figure(
        self, source: str, language: str, css_class: str, options: object, md: Markdown, **_: Any
    ) -> str:
        """Format one fence; it must not raise, because superfences swallows exceptions."""
        line = self.page.line_of(source)
        try:
            return self._converted(source, line)
        except InputError as error:
            told = [
                self.page.note(line + directives.line_of_key(source, fault.key), str(fault))
                for fault in error.all
            ]
            return error_box(*told)
        except Exception as error:
            what = f"{type(error).__name__} while computing this figure: {error}{place_of(error)}"
            return error_box(self.page.note(line, what))

    def _converted(self, source: str, line: int) -> str:
        page, site = self.page, self.site
        directive = directives.parse(source)
        if directive.id in page.figures:
            raise InputError(f"two figures of this page have the id {directive.id!r}")
        page.figures.append(directive.id)
        self.captions.follows = follows(directive.figure)
        variants = figures.evaluate(directive, site, self.captions.html, plain)
        placed = figures.Placed(directive, page.number_of(directive.id), line)
        page.placed[line] = variants
        page.entries += [figures.entry(placed, variant, page) for variant in variants]
        return figures.html(placed, variants, page, site)


class _Begin(Preprocessor):
    """Starts a page: takes its text if the host has not set it, and reports bad fence headers.

    To superfences, a header with options is not a fence: it would be published as plain text.
    """

    def __init__(self, md: Markdown, page: Page, take_source: bool) -> None:
        super().__init__(md)
        self.page = page
        self.take_source = take_source

    def run(self, lines: list[str]) -> list[str]:
        if self.take_source:
            self.page.begin("\n".join(lines))
        for fence in fences("\n".join(lines)):
            if fence.header != "figure":
                error = InputError("a figure fence", expected="```figure alone", got=fence.header)
                self.page.report(error, fence.header)
        Work().begin(self.md, lines)
        # The source has the lines of the file, front matter included.
        for line, slip in slips(self.page.source):
            self.page.note(line, str(slip))
        return lines


class _End(Treeprocessor):
    """Ends a page with its references and the worked lines that its numbers open.

    Not a postprocessor, since `toc` runs those on every heading too.
    """

    def __init__(self, md: Markdown, site: Site, page: Page) -> None:
        super().__init__(md)
        self.site = site
        self.page = page

    def run(self, root: etree.Element) -> None:
        worked = "".join(self.page.worked.values())
        held = worked and self.page.hold(lambda: worked, self.site.late)
        parts = [cited_html(self.page, self.site), held]
        for part in filter(None, parts):
            end = etree.SubElement(root, "div")
            end.text = AtomicString(self.md.htmlStash.store(part))
