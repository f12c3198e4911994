"""The state of one build of the site; `figgen.publish.site` goes through its steps in order."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from figgen import theme
from figgen.agreement.manifest import listed
from figgen.changes.builds import MANIFEST, SOURCES
from figgen.changes.sources import sources
from figgen.markdown import math
from figgen.markdown.conversion import Page, Problem, Site, figure_numbers
from figgen.progress import Progress
from figgen.publish.companions import figures_in_words, first_picture
from figgen.publish.fonts import math_font
from figgen.publish.kept_pages import KeptPage, KeptPages, made_of, settings, take
from figgen.publish.reference import reference_pages
from figgen.publish.scripts import SEARCH, WRITTEN_FOR_PX, own_styles, plotly_bundle
from figgen.publish.shared import Shared
from figgen.publish.tools import Tools, write_file
from figgen.serving.answers import Answers
from figgen.serving.memory import Memory
from figgen.serving.others import beside, end_all, forks
from figgen.subject import nowhere, subject

Content: TypeAlias = str | bytes

TOOLS = "tools/"
"""The folder of pages whose scripts compute with the formulas."""
JOURNEY = "journey/"
"""The folder of the journey's pages, which have a numbering of their own."""


@dataclass(kw_only=True)
class SiteBuild:
    """The state of one build; `keeper` holds results that later builds can reuse."""

    RECORDS: ClassVar = (MANIFEST, SOURCES)
    settings, take, abandon = staticmethod(settings), staticmethod(take), staticmethod(end_all)
    site: Site
    docs: Path | None = None
    terms: dict[str, dict[str, Any]] = field(default_factory=dict)
    chapters: dict[str, str] = field(default_factory=dict)
    keeper: Memory | Answers | None = None
    search: bool = False
    formulas: bool = False
    root_px: int = WRITTEN_FOR_PX
    _texts: dict[str, str] = field(default_factory=dict)
    kept_pages: KeptPages = field(init=False)
    _made: dict[str, Content] = field(default_factory=dict)
    _shared: Shared | None = None
    tools: Tools = field(init=False)
    _records: Callable[[], dict[str, Content]] = dict
    _progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        self.kept_pages = KeptPages(site=self.site, keeper=self.keeper)
        self.tools = Tools(self.docs, self.keeper)

    @property
    def problems(self) -> list[Problem]:
        """The problems of all pages, except links to what a mistake on another page has removed.

        That mistake is reported; the next build reports what is still missing.
        """
        found = [problem for page in self.site.pages for problem in page.problems]
        faulty = _faulty(found)
        return [problem for problem in found if problem.about not in faulty]

    def pages(self, excluded: Callable[[str], bool] | None = None) -> dict[str, str]:
        """Return the generated pages as Markdown by path; those `excluded` may be left out.

        Another process may build the last of them meanwhile, together with what the tools need.
        """
        if self.docs and any(self.docs.glob(f"{TOOLS}*.md")) and not (excluded or nowhere)(TOOLS):
            self.tools.begin()
        with self.site.pictures.spent.on("evaluating"):
            if isinstance(self.keeper, Memory):
                return self.keeper.generated(self.terms, lambda: self._generated(excluded))
            return self._generated(excluded)

    def _generated(self, excluded: Callable[[str], bool] | None) -> dict[str, str]:
        keep = {"keep": self.keeper.figure} if self.keeper else {}
        made = subject().pages(self.docs, self.terms, **keep, excluded=excluded or nowhere)
        return {**reference_pages(self.docs, self.terms, self.formulas), **made}

    @staticmethod
    def chapter_numbers(paths: Iterable[str]) -> dict[str, str]:
        """Map each page of the navigation to its chapter: 1, 2, …, or J1, J2, … in the journey."""
        counts = {True: itertools.count(1), False: itertools.count(1)}
        return {
            path: f"{'J' * journey}{next(counts[journey])}"
            for path in paths
            for journey in [path.startswith(JOURNEY)]
        }

    def scan(self, pages: Iterable[tuple[str, str, str]], others: Iterable[str] = ()) -> None:
        """Read every (path, chapter, source) to number figures and find kept pages.

        `others` is whatever else from the host any page may depend on.
        """
        for path, chapter, source in pages:
            self.chapters[path] = chapter
            self._texts[path] = source
            self.site.numbers[path] = figure_numbers(source, chapter)
        self._progress = Progress(what="pages", total=len(self._texts))
        self.kept_pages.look(
            {p: (self.chapters[p], text) for p, text in self._texts.items()}, others
        )

    def share(self, convert: Callable[[str], None]) -> None:
        """Let other processes convert some of the pages; `convert` is the host's function."""
        pages, count = self.kept_pages.open(), forks()
        if self.keeper and count and len(pages) > 1:
            shared = self.site, self.kept_pages, self.keep_files
            self._shared = Shared(*shared, self.keeper, convert, pages, count)

    def page(self, path: str, url: str, source: str) -> Page:
        """Begin a page; `url` is its folder from the site's root, `source` its whole file."""
        page = Page(path=path, url=url, chapter=self.chapters.get(path, ""))
        page.begin(source)
        self.site.pages.append(page)
        self.site.pictures.spent.begin("converting")
        return page

    def kept(self, path: str) -> KeptPage | None:
        """Return the page that an earlier build converted, if converting it now gives the same."""
        if self._shared:
            self._shared.take_over(path)
        self._progress.advance()
        if known := self.kept_pages.of(path):
            self.site.pages.append(known.page)
            self._made |= known.files
            if isinstance(self.keeper, Memory):
                known.files = {}  # the files are already in the site's folder
            self.site.pictures.taken(known.page.entries)
        return known

    def converted(self, page: Page, html: str, host: Any, keep: bool) -> None:
        """Note that a page is converted, and `keep` it with the host's data for later builds.

        A page with problems isn't kept, so that every build reports them.
        """
        if page.settled:
            return
        # The host looks for anchors before fences are put back.
        host.present_anchor_ids |= page.anchors()
        self.site.pictures.spent.end()
        self.kept_pages.converted(page, made_of(host, html), keep)
        self.finish(page)

    def files(self) -> dict[str, Content]:
        """Return the files that pages need next to them, by path; call it after `close`."""
        made = {
            **self._made,
            **own_styles(self.root_px),
            "assets/stylesheets/roles.css": theme.stylesheet(),
        }
        made |= self.tools.shown_first(printed=self._has_tools)
        if any(path.endswith(".plotly.json") for page in self.site.pages for path in page.assets):
            made["assets/javascripts/plotly.min.js"] = plotly_bundle()
        return made if self.search else {p: c for p, c in made.items() if not p.startswith(SEARCH)}

    @property
    def _has_tools(self) -> bool:
        return any(path.startswith(TOOLS) for path in self.chapters)

    def records(self) -> dict[str, Content]:
        """Return what a build records about itself and about its pages; call it after `close`."""
        # A generated page follows from code and data, which are recorded themselves.
        written = {
            p: text for p, text in self._texts.items() if not self.docs or (self.docs / p).is_file()
        }
        found: dict[str, Content] = {MANIFEST: self.manifest(), SOURCES: sources(written)}
        self.kept_pages.write()
        return found

    def record(self, folder: Path) -> None:
        """Write the records into the finished site; a server does so once the page is shown."""
        for name in self.RECORDS:
            (folder / name).unlink(missing_ok=True)  # rather none than one of other pages

        def write() -> None:
            for name, content in self._records().items():
                write_file(folder / name, content)

        if isinstance(self.keeper, Memory):
            self.keeper.writing = self.keeper.later(
                lambda: self.tools.write(folder, printed=self._has_tools)
            )
            if not self.keeper.is_partial:
                self.keeper.later(write)
        else:
            write()

    def manifest(self) -> str:
        """Return every figure and inline number of this build, for reviews and other programs."""
        pages = sorted(self.site.pages, key=lambda page: f"{page.path}:")
        return f"[{','.join(filter(None, map(self._listed, pages)))}\n]\n"

    def keep_files(self, kept: KeptPage) -> None:
        """Keep the files of a page that another process converted, and write both to disk in a
        build."""
        kept.files = self.files_of(kept.page)
        if isinstance(self.keeper, Answers):
            self._listed(kept.page)
            self.kept_pages.write()

    def _listed(self, page: Page) -> str:
        """Return a page's part of the manifest, ordered by line."""
        kept = self.kept_pages.pages.get(page.path) or KeptPage(page=page, key="")
        if kept.listed is None:
            kept.listed = listed(page.entries, self.files_of(page))
        return kept.listed

    def close(self, warn: Callable[[str], None]) -> str:
        """Finish the conversion of pages and report their problems; return a summary in words."""
        for page in self.site.pages:
            if not page.settled:
                self.finish(page)
        if folder := self.site.pictures.folder:
            math.remember(folder)
        self.tools.learn()
        if self._shared:
            self._shared.end()
        self.report(warn)
        if self._shared and isinstance(self.keeper, Answers):
            # Making the font takes longer than a page should wait.
            self._records = beside(lambda: self.records() | self._font())
        else:
            self._made |= self._font()
            self._records = self.records
        return self.site.pictures.finish()

    def _font(self) -> dict[str, Content]:
        """Return the math font reduced to the characters of all pages, if they have any."""
        characters = set[str]().union(*(page.characters for page in self.site.pages))
        if not characters:
            return {}
        return {"assets/fonts/math.woff2": math_font(characters, self.site.pictures.folder)}

    def finish(self, page: Page) -> None:
        """Complete a converted page and its downloads, and release everything that made it.

        Afterward nothing in the page refers to this build, so that it can be freed.
        """
        self._make(page, lambda path: not path.endswith(".svg"))
        page.finish()
        self._make(page, lambda path: path.endswith((".svg", ".html")))
        page.figure_twins = figures_in_words(page)
        files = self.files_of(page)
        first = f"/{first_picture(page)}.svg"
        page.picture = next((files[path] for path in files if path.endswith(first)), "")
        if isinstance(self.keeper, Answers) and page.path in self.kept_pages.pages:
            self.kept_pages.pages[page.path].files = files
        page.settle()

    def files_of(self, page: Page) -> dict[str, str]:
        """Return the files to publish next to a page."""
        return {path: str(self._made[path]) for path in page.assets if path in self._made}

    def fill(self, path: str, html: str) -> str:
        """Insert into a finished page what was held back from its conversion."""
        return next(page for page in self.site.pages if page.path == path).fill(html)

    def excuse(self, pages: Iterable[Any]) -> None:
        """Keep the host from blaming `pages` for places that pages with mistakes lack."""
        faulty = _faulty(self.problems)
        for page in pages:
            links = page.links_to_anchors or {}
            page.links_to_anchors = {f: at for f, at in links.items() if f.src_uri not in faulty}

    def report(self, warn: Callable[[str], None]) -> None:
        """Report every problem; on GitHub, also as an annotation of its line."""
        here, workspace = Path.cwd(), os.environ.get("GITHUB_WORKSPACE")
        for problem in self.problems:
            warn(f"{self._folder_in(here)}/{problem}")
            if os.environ.get("GITHUB_ACTIONS"):
                print(problem.annotation(self._folder_in(Path(workspace or here))))

    def _folder_in(self, above: Path) -> str:
        """Return the folder of the pages as seen from a folder above it."""
        docs = self.docs or Path("docs")
        return (
            docs.relative_to(above) if docs.is_relative_to(above) else Path(docs.name)
        ).as_posix()

    def _make(self, page: Page, wanted: Callable[[str], bool]) -> None:
        """Make the files offered for download; one that can't be made is a problem."""
        for path, asset in page.assets.items():
            if not wanted(path):
                continue
            try:
                self._made[path] = asset.make()
            except Exception as error:
                # A picture that cannot be drawn was reported with its page.
                if asset.line not in {problem.line for problem in page.problems}:
                    page.problems.append(asset.problem(path, error))


def _faulty(problems: Iterable[Problem]) -> set[str]:
    """Return the pages with a mistake that is not due to another page."""
    return {problem.path for problem in problems if not problem.about}
