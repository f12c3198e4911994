"""What the extension knows about the site and about the page being converted.

Python-Markdown passes fences and inline text without line numbers. A `Page` finds their lines by
content: the same text on the same page means the same figure or number.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from secrets import token_hex
from typing import Any

from figgen.errors import InputError
from figgen.pictures import Pictures

_OPEN = re.compile(r"^\s*(`{3,}|~{3,})\s*([^`]*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A mistake on a page, shown as `path:line: message`.

    `about` is the page that lacks the target of a broken link, if that is a different page.
    """

    path: str
    line: int
    message: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"

    def annotation(self, folder: str) -> str:
        """Return the line that makes GitHub show the problem next to the source in a review."""
        return f"::error file={folder}/{self.path},line={self.line}::{self.message}"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file published with a page: how to make it, and the line of the page that offers it."""

    make: Callable[[], str]
    path: str
    line: int

    def problem(self, file: str, error: Exception) -> Problem:
        """Return the problem that the file could not be made."""
        message = f"{type(error).__name__} while making {file}: {error}"
        return Problem(path=self.path, line=self.line, message=message)


@dataclass(frozen=True, slots=True)
class Fence:
    """A figure fence of the source; `line` is the line of its opening, from 1."""

    line: int
    body: str
    header: str


@lru_cache(maxsize=1024)  # a build asks for a page's several times, a server after each edit
def fences(source: str) -> tuple[Fence, ...]:
    """Return each ```figure fence of a page, at any indentation, but not those inside other
    code."""
    found = []
    lines = source.splitlines()
    index = 0
    while index < len(lines):
        opening = _OPEN.match(lines[index])
        if not opening:
            index += 1
            continue
        mark, header = opening.group(1), opening.group(2).strip()
        closing = re.compile(rf"^\s*{mark[0]}{{{len(mark)},}}\s*$")
        end = next((k for k in range(index + 1, len(lines)) if closing.match(lines[k])), len(lines))
        if re.match(r"figure\b", header):
            found.append(Fence(index + 1, "\n".join(lines[index + 1 : end]), header))
        index = end + 1
    return tuple(found)


def figure_numbers(source: str, chapter: str = "") -> dict[str, str]:
    """Map the id of each figure of a page to its number, in the order of the page."""
    ids = []
    for fence in fences(source):
        named = re.search(r"^\s*id:\s*(\S+)", fence.body, re.M)
        called = re.search(r"^\s*figure:\s*(\S+)", fence.body, re.M)
        if found := named or called:
            ids.append(found.group(1).strip("'\""))
    unique = dict.fromkeys(ids)
    return {name: _numbered(chapter, place) for place, name in enumerate(unique, 1)}


def _numbered(chapter: str, place: int) -> str:
    return f"Figure {chapter}.{place}" if chapter else f"Figure {place}"


@lru_cache(maxsize=1)
def _stripped(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines())


@dataclass(kw_only=True)
class Page:
    """One page under conversion: its path, its source, and the problems found in it.

    `url` is its folder from the site's root (`""` is the home page), None outside of a site.
    """

    path: str = "page.md"
    url: str | None = None
    source: str = ""
    chapter: str = ""
    problems: list[Problem] = field(default_factory=list)
    numbers: dict[str, str] = field(default_factory=dict)
    figures: list[str] = field(default_factory=list)
    cited: list[str] = field(default_factory=list)
    held_ids: set[str] = field(default_factory=set)
    worked: dict[str, str] = field(default_factory=dict)
    # What readers see: inline values by their source, figures by the line of their fence.
    shown: dict[str, str] = field(default_factory=dict)
    placed: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    # Replacements for figures: descriptions by line, and the first picture as SVG.
    figure_twins: dict[int, str] = field(default_factory=dict)
    picture: str = ""
    # By-products of the page: entries of the manifest, files, characters of the math font.
    entries: list[dict[str, object]] = field(default_factory=list)
    assets: dict[str, Asset] = field(default_factory=dict)
    characters: set[str] = field(default_factory=set)
    parts: list[Callable[[], str]] = field(default_factory=list)
    # Part of each placeholder comment, so that no text of a page can be mistaken for one.
    secret: str = field(default_factory=lambda: token_hex(8))
    settled: bool = False
    _seen: dict[str, int] = field(default_factory=dict)

    def begin(self, source: str) -> None:
        """Set the page's source, number its figures, and clear all earlier results."""
        self.source = source
        self.numbers = figure_numbers(source, self.chapter)
        for found in (
            self.problems, self.figures, self.cited, self.held_ids, self.worked, self.shown,
            self.placed, self.entries, self.assets, self.characters, self.parts, self._seen,
        ):  # fmt: skip
            found.clear()

    def number_of(self, figure_id: str) -> str:
        """Return the number of a figure, such as "Figure 3.2"; unknown figures are counted last."""
        if figure_id not in self.numbers:
            self.numbers[figure_id] = _numbered(self.chapter, len(self.numbers) + 1)
        return self.numbers[figure_id]

    def report(self, error: InputError, needle: str, about: str = "") -> str:
        """Record a problem with the source text `needle`; return its message."""
        return self.note(self.line_of(needle), str(error), about)

    def anchors(self) -> set[str]:
        """Return the ids that other pages may link to, except those of headings."""
        made = {f"fig-{name}" for name in self.figures} | {f"ref-{key}" for key in self.cited}
        return made | self.held_ids

    def note(self, line: int, message: str, about: str = "") -> str:
        """Record a problem on a known line; return its message."""
        self.problems.append(Problem(path=self.path, line=line, message=message, about=about))
        return message

    def line_of(self, needle: str) -> int:
        """Return the line, from 1, on which `needle` begins.

        A text that was found before is searched for after its last line, so that equal texts get
        different lines. Returns 0 if the text is not in the source (another extension made it).
        """
        wanted = tuple(line.strip() for line in needle.strip().splitlines()) or ("",)
        lines = _stripped(self.source)
        start = self._seen.get(needle, 0)
        places = ((whole, begin) for whole in (True, False) for begin in (start, 0))
        searches = (self._search(lines, wanted, begin, whole) for whole, begin in places)
        found = next(filter(None, searches), 0)
        self._seen[needle] = found
        return found

    @staticmethod
    def _search(lines: tuple[str, ...], wanted: tuple[str, ...], start: int, whole: bool) -> int:
        """Search from line `start`; several lines match as `whole` lines, or as parts of lines."""
        for index in range(start, len(lines) - len(wanted) + 1):
            if len(wanted) == 1:
                if wanted[0] in lines[index]:
                    return index + 1
            elif whole:
                if lines[index : index + len(wanted)] == wanted:
                    return index + 1
            elif (
                lines[index].endswith(wanted[0])  # it may begin, and end, within a line
                and lines[index + 1 : index + len(wanted) - 1] == wanted[1:-1]
                and lines[index + len(wanted) - 1].startswith(wanted[-1])
            ):
                return index + 1
        return 0

    def hold(self, make: Callable[[], str], late: bool) -> str:
        """Return the HTML from `make` or, if `late`, a comment that `fill` replaces by it."""
        if not late:
            return make()
        self.parts.append(cache(make))
        return f"<!--figgen:{self.secret}:{len(self.parts) - 1}-->"

    def finish(self) -> None:
        """Make all parts that are held, so that their problems are known before they are needed."""
        for make in self.parts:
            make()

    def settle(self) -> None:
        """Replace everything that is held by its text, so that nothing refers to this build."""
        texts = [make() for make in self.parts]
        self.parts = [partial(str, text) for text in texts]
        self.assets = dict.fromkeys(self.assets, Asset(str, self.path, 0))
        self.placed.clear()
        self.settled = True

    def fill(self, html: str) -> str:
        """Insert the parts that `hold` left out."""
        mark = rf"<!--figgen:{self.secret}:(\d+)-->"
        return re.sub(mark, lambda m: self.parts[int(m.group(1))](), html)

    def beside(self, link: str) -> str:
        """Return the path, from the site's root, of the page that a relative `link` points to."""
        return posixpath.normpath(posixpath.join(posixpath.dirname(self.path), link))

    def to(self, target: str) -> str:
        """Return a link from this page to `target`, a path from the site's root."""
        return posixpath.relpath(target, posixpath.dirname(self.url or "") or ".")


@dataclass(frozen=True, slots=True)
class Short:
    """A term that has a short name: its meaning, and the link to its glossary entry."""

    term: str
    means: str
    target: str

    @property
    def word(self) -> str:
        """The term's first word, such as "tensor" in "tensor parallelism"."""
        return self.term.partition(" ")[0]


@dataclass(kw_only=True)
class Site:
    """The state that all pages of a build share."""

    pictures: Pictures = field(default_factory=Pictures)
    name: str = "Parallelism, Computed"
    address: str = ""
    references: dict[str, dict[str, str]] = field(default_factory=dict)
    glossary: dict[str, str] = field(default_factory=dict)
    shorts: dict[str, Short] = field(default_factory=dict)
    numbers: dict[str, dict[str, str]] = field(default_factory=dict)
    pages: list[Page] = field(default_factory=list)
    styles: tuple[str, ...] = ()
    """Paths of the stylesheets for pages that are published without the host's theme."""
    # Pictures, tables and worked lines are large, and no other extension needs them:
    # with `late`, comments stand in for them until the host fills them in at the end.
    late: bool = False
