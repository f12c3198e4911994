"""What the extension knows of the site and of the page being converted.

Python-Markdown hands fences and inline text over without line numbers.  A `Page` finds them
again by content: the same text on the same page means the same figure or number.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from secrets import token_hex
from typing import Any

from figgen.errors import InputError
from figgen.pictures import Pictures

_OPEN = re.compile(r"^\s*(`{3,}|~{3,})\s*([^`]*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something wrong on a page: `path:line: message`.

    `about` is the page that lacks what this one refers to, where that is another page.
    """

    path: str
    line: int
    message: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"

    def annotation(self, folder: str) -> str:
        """The line that makes GitHub show the problem beside the source in a review."""
        return f"::error file={folder}/{self.path},line={self.line}::{self.message}"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file beside the pages: how it is made, and the line of the page that offers it."""

    make: Callable[[], str]
    path: str
    line: int

    def problem(self, file: str, error: Exception) -> Problem:
        """That it could not be made."""
        message = f"{type(error).__name__} while making {file}: {error}"
        return Problem(path=self.path, line=self.line, message=message)


@dataclass(frozen=True, slots=True)
class Fence:
    """A figure fence as it stands in the source: `line` is that of its opening, from 1."""

    line: int
    body: str
    header: str


def fences(source: str) -> Iterator[Fence]:
    """Every ```figure fence of a page, at any indentation, but none that is shown as code."""
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
            yield Fence(index + 1, "\n".join(lines[index + 1 : end]), header)
        index = end + 1


def figure_numbers(source: str, chapter: str = "") -> dict[str, str]:
    """The number of every figure of a page by its id, in the order in which they stand."""
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
    """One page under conversion: where it is, what it says, and what was found wrong.

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
    # What readers see: of inline values by their source, of figures by the line of their fence.
    shown: dict[str, str] = field(default_factory=dict)
    placed: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    # What stands for figures where there are none: words by line, the first picture as a file.
    figure_twins: dict[int, str] = field(default_factory=dict)
    picture: str = ""
    # What the page brings along: entries of the manifest, files, characters of the math font.
    entries: list[dict[str, object]] = field(default_factory=list)
    assets: dict[str, Asset] = field(default_factory=dict)
    characters: set[str] = field(default_factory=set)
    parts: list[Callable[[], str]] = field(default_factory=list)
    # In the comments that stand for parts, so that no text of a page can be taken for one.
    secret: str = field(default_factory=lambda: token_hex(8))
    settled: bool = False
    _seen: dict[str, int] = field(default_factory=dict)

    def begin(self, source: str) -> None:
        """Take `source` as the page's text, number its figures, and forget what was found."""
        self.source = source
        self.numbers = figure_numbers(source, self.chapter)
        for found in (
            self.problems, self.figures, self.cited, self.held_ids, self.worked, self.shown,
            self.placed, self.entries, self.assets, self.characters, self.parts, self._seen,
        ):  # fmt: skip
            found.clear()

    def number_of(self, figure_id: str) -> str:
        """`Figure 3.2`; figures that were not seen as fences are counted after the others."""
        if figure_id not in self.numbers:
            self.numbers[figure_id] = _numbered(self.chapter, len(self.numbers) + 1)
        return self.numbers[figure_id]

    def report(self, error: InputError, needle: str, about: str = "") -> str:
        """Note a problem with the source text `needle`; returns its message."""
        return self.note(self.line_of(needle), str(error), about)

    def anchors(self) -> set[str]:
        """The ids that links of other pages may point at, beside the headings'."""
        made = {f"fig-{name}" for name in self.figures} | {f"ref-{key}" for key in self.cited}
        return made | self.held_ids

    def note(self, line: int, message: str, about: str = "") -> str:
        """Note a problem on a known line; returns its message."""
        self.problems.append(Problem(path=self.path, line=line, message=message, about=about))
        return message

    def line_of(self, needle: str) -> int:
        """The line, from 1, on which `needle` begins.

        Text found before is looked for after its last place, so that equal texts get their own
        lines.  0 when the text is not in the source (another extension made it).
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
        """The line from `start` on; a text of several lines is of `whole` ones, or of parts."""
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
        """The HTML that `make` gives or, when `late`, a comment that `fill` replaces by it."""
        if not late:
            return make()
        self.parts.append(cache(make))
        return f"<!--figgen:{self.secret}:{len(self.parts) - 1}-->"

    def finish(self) -> None:
        """Make everything that is held, so that what goes wrong is known before it is needed."""
        for make in self.parts:
            make()

    def settle(self) -> None:
        """Keep of what is held its text alone, which refers to nothing of this build."""
        texts = [make() for make in self.parts]
        self.parts = [partial(str, text) for text in texts]
        self.assets = dict.fromkeys(self.assets, Asset(str, self.path, 0))
        self.placed.clear()
        self.settled = True

    def fill(self, html: str) -> str:
        """Put back what `hold` took out."""
        mark = rf"<!--figgen:{self.secret}:(\d+)-->"
        return re.sub(mark, lambda m: self.parts[int(m.group(1))](), html)

    def beside(self, link: str) -> str:
        """The path from the site's root of a page that `link` names from here."""
        return posixpath.normpath(posixpath.join(posixpath.dirname(self.path), link))

    def to(self, target: str) -> str:
        """A link from this page to `target`, a path from the site's root."""
        return posixpath.relpath(target, posixpath.dirname(self.url or "") or ".")


@dataclass(frozen=True, slots=True)
class Short:
    """A term that has a short name: what it means, and where its entry stands."""

    term: str
    means: str
    target: str

    @property
    def word(self) -> str:
        """`tensor` of `tensor parallelism`."""
        return self.term.partition(" ")[0]


@dataclass(kw_only=True)
class Site:
    """What is shared by all pages of a build."""

    pictures: Pictures = field(default_factory=Pictures)
    name: str = "Parallelism, Computed"
    address: str = ""
    references: dict[str, dict[str, str]] = field(default_factory=dict)
    glossary: dict[str, str] = field(default_factory=dict)
    shorts: dict[str, Short] = field(default_factory=dict)
    numbers: dict[str, dict[str, str]] = field(default_factory=dict)
    pages: list[Page] = field(default_factory=list)
    styles: tuple[str, ...] = ()
    """The stylesheets of pages that stand beside the host's, by their paths."""
    # Pictures, tables and worked lines are large and no other extension needs to see them:
    # with `late` they are left out as comments that the host fills in at the end.
    late: bool = False
