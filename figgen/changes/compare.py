"""Find the differences between two builds: numbers, figures, pictures and texts."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from figgen.changes.builds import Build, ManifestFigure, ManifestNumber, is_file

MOST_TEXT_LINES = 200


@dataclass(frozen=True, slots=True)
class Moved:
    """A number that has changed."""

    key: str
    before: ManifestNumber
    after: ManifestNumber

    @property
    def relative(self) -> float:
        """The relative change of a number; infinite from zero, NaN for strings."""
        before, after = self.before.value, self.after.value
        if isinstance(before, str) or isinstance(after, str):
            return math.nan
        return (after - before) / abs(before) if before else math.copysign(math.inf, after)

    @property
    def size(self) -> float:
        """The size of a change, for ranking; a changed string ranks above all numbers."""
        return math.inf if math.isnan(self.relative) else abs(self.relative)

    @property
    def is_seen(self) -> bool:
        """Whether the change affects digits that the page displays."""
        return (self.before.shown, self.before.unit) != (self.after.shown, self.after.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All differences; `redrawn` are figures with equal data that look different.

    Numbers that readers see come first, and within each kind the largest changes.
    """

    numbers: tuple[Moved, ...]
    figures: tuple[tuple[ManifestFigure, ManifestFigure], ...]
    redrawn: tuple[tuple[ManifestFigure, ManifestFigure], ...]
    added: tuple[ManifestNumber | ManifestFigure, ...]
    removed: tuple[ManifestNumber | ManifestFigure, ...]
    texts: Mapping[str, tuple[str, ...]]
    inputs: Mapping[str, tuple[str, str]]

    @property
    def counts(self) -> dict[str, int]:
        """The number of differences by kind."""
        return {
            "numbers": sum(number.is_seen for number in self.numbers),
            "figures": len(self.figures),
            "pictures": len(self.redrawn),
            "pages": len(self.texts),
            "added": len(self.added),
            "removed": len(self.removed),
            "digits": sum(not number.is_seen for number in self.numbers),
        }


def compare(base: Build, head: Build) -> Changes:
    """Return the differences between `base` and `head`."""
    both = [
        (figure, head.figures[key]) for key, figure in base.figures.items() if key in head.figures
    ]
    return Changes(
        numbers=tuple(sorted(moved(base, head), key=lambda m: (not m.is_seen, -m.size))),
        figures=tuple(pair for pair in both if pair[0].data != pair[1].data),
        redrawn=tuple(
            (old, new) for old, new in both if old.data == new.data and old.picture != new.picture
        ),
        added=_only(head, base),
        removed=_only(base, head),
        texts=_texts(base, head),
        inputs=changed_inputs(base, head),
    )


def moved(base: Build, head: Build) -> Iterator[Moved]:
    """Yield numbers of both builds that differ in value, unit or displayed text."""
    for key, before in base.numbers.items():
        after = head.numbers.get(key)
        if after and (before.value, before.unit, before.shown) != (
            after.value, after.unit, after.shown,
        ):  # fmt: skip
            yield Moved(key, before, after)


def _only(here: Build, there: Build) -> tuple[ManifestNumber | ManifestFigure, ...]:
    """Return figures and numbers that only `here` has, without the values of those figures."""
    figures = [figure for key, figure in here.figures.items() if key not in there.figures]
    of_new_figures = {f"{figure.page}#{figure.id}" for figure in figures}
    numbers = [
        number
        for key, number in here.numbers.items()
        if key not in there.numbers and key.partition(":")[0] not in of_new_figures
    ]
    return (*figures, *numbers)


def changed_inputs(base: Build, head: Build) -> dict[str, tuple[str, str]]:
    """Return inputs that differ, as `kind: name` with both values; "" if a build lacks it.

    Kinds that either build does not record are skipped.
    """
    found = {}
    for kind in sorted({*base.sources} & {*head.sources}):
        old, new = base.sources[kind], head.sources[kind]
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                found[f"{kind}: {name}"] = (old.get(name, ""), new.get(name, ""))
    return found


def _texts(base: Build, head: Build) -> dict[str, tuple[str, ...]]:
    """Return added (+) and removed (-) lines of prose by page; numbers are ignored, shown as #."""
    old, new = (build.sources.get("pages", {}) for build in (base, head))
    changed = {}
    for page in sorted({*old, *new}):
        if old.get(page) == new.get(page):
            continue
        lines = list(_prose_changes(base.folder, head.folder, page))
        if lines or page not in old or page not in new:
            changed[page] = tuple(lines[:MOST_TEXT_LINES])
    return changed


def _prose_changes(base: Path | None, head: Path | None, page: str) -> Iterator[str]:
    old, new = (prose(_html_of(folder, page)) for folder in (base, head))
    for line in difflib.unified_diff(old, new, lineterm="", n=0):
        if line[:1] in "+-" and line[:3] not in ("+++", "---"):
            yield line


def _html_of(folder: Path | None, page: str) -> str:
    path = page.removesuffix(".md")
    path = f"{path.removesuffix('index').rstrip('/')}/index.html".lstrip("/")
    if folder is None or ".." in Path(path).parts:
        return ""
    file = folder / path
    return file.read_text(encoding="utf-8", errors="replace") if is_file(file) else ""


class _Prose(HTMLParser):
    """Collects the running text of a page's article, block by block."""

    BLOCKS = frozenset({"p", "li", "h1", "h2", "h3", "h4", "td", "th", "dt", "dd", "summary"})
    LEFT_OUT = frozenset({"figure", "script", "style", "nav", "data", "svg"})

    def __init__(self, whole: bool) -> None:
        super().__init__()
        self.blocks = [""]
        self.article = whole
        self.depth_left_out = 0
        self.popover: tuple[str, int] = ("", 0)  # its tag, and how many of them are open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        within, depth = self.popover
        if depth:
            self.popover = within, depth + (tag == within)
            return
        if "popover" in dict(attrs):
            self.popover = tag, 1
            return
        self.article = self.article or tag == "article"
        if tag in self.LEFT_OUT:
            self.blocks[-1] += "#" * (tag == "data")
            self.depth_left_out += 1
        elif tag in self.BLOCKS:
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        within, depth = self.popover
        if depth:
            self.popover = within, depth - (tag == within)
            return
        self.article = self.article and tag != "article"
        if tag in self.LEFT_OUT:
            self.depth_left_out -= 1
        elif tag in self.BLOCKS:
            self.blocks.append("")

    def handle_data(self, data: str) -> None:
        if self.article and not self.depth_left_out and not self.popover[1]:
            self.blocks[-1] += data


def prose(html: str) -> list[str]:
    """Return the sentences of a page's article, or of the page: no figures, numbers as #.

    Popovers of numbers and cells with numbers only are left out.
    """
    parser = _Prose(whole="<article" not in html)
    parser.feed(html)
    blocks = (" ".join(block.split()) for block in parser.blocks)
    texts = (block for block in blocks if block.strip("# "))
    return [part for block in texts for part in re.split(r"(?<=[.?!]) ", block)]
