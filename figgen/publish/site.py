"""One build from pages to files: the table of contents of this package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from figgen.publish.begin import begin_build
from figgen.publish.build import Content, SiteBuild


class Host(Protocol):
    """The program that turns Markdown into a site: MkDocs or ProperDocs, by `figgen.plugin`."""

    docs: Path
    cache: Path
    folder: Path
    """The folder of the pages' sources, that of the cache, and that of the finished site."""
    name: str
    address: str
    modules: Iterable[str] | None
    """Modules that register the site's subject; None leaves the subject in use."""
    excludes: Callable[[str], bool] | None
    """Whether the site leaves out a page, or all pages of a folder."""
    search: bool
    formulas: bool
    """Whether the site has figgen's search, and a page of its formulas."""
    root_px: int
    """The size in px of the theme's `rem`."""

    def add(self, files: Mapping[str, Content]) -> None:
        """Add these files, pages among them, to the site, replacing files at the same paths."""

    def chapters(self) -> Iterable[str]:
        """The paths of the pages in the navigation, in order, without the home page."""

    def sources(self) -> Iterable[tuple[str, str]]:
        """Path and Markdown of each page."""

    def settings(self) -> Iterable[str]:
        """What any page may depend on besides its own text: settings, files, the host's code."""

    def convert(self, path: str) -> None:
        """Convert a page now, in another process."""

    def warn(self, message: str) -> None:
        """Report a problem that fails a strict build."""

    def say(self, message: str) -> None:
        """Report progress."""


def build_site(host: Host) -> Iterator[SiteBuild]:
    """Go through a build; at each `yield` the host does its part and then resumes."""
    # Load the subject, the glossary, the references, and what earlier builds computed.
    build = begin_build(host.docs, host.cache, host.name, host.address, host.modules)
    build.search, build.formulas = host.search, host.formulas
    build.root_px = host.root_px
    yield build  # the host finds its files
    # Make the pages that nobody writes: the reference, presets, coverage.
    host.add(build.pages(host.excludes))
    yield build  # the host arranges its navigation
    # Number all figures first, since any page may refer to any of them; find what can be kept.
    chapters = build.chapter_numbers(host.chapters())
    pages = ((path, chapters.get(path, ""), text) for path, text in host.sources())
    build.scan(pages, host.settings())
    # Let other processes convert the last of the pages that no earlier build has converted.
    build.share(host.convert)
    yield build  # the host converts each page: `kept` or `page`, then `converted`
    # Report every problem of every page, and what was drawn.
    host.say(build.close(host.warn))
    # Publish pictures, data, scripts and fonts beside the pages.
    host.add(build.files())
    yield build  # the host renders pages with its theme, and `fill` inserts what was held back
    # Write the manifest of all numbers and figures, and what later builds may keep.
    build.record(host.folder)
    yield build
