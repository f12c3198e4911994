"""Count the words, figures and numbers in the pages' sources."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from figgen.markdown.claims import stated
from figgen.markdown.conversion import fences
from figgen.markdown.inline import PATTERN
from figgen.prose.density import in_captions, in_text
from figgen.subject import subject

Counts = tuple[int, int, int, int]


def page_densities(docs: Path) -> dict[str, tuple[float, float]]:
    """Return each written page's numbers per 100 words, in running text and in captions."""
    sources = {
        path.relative_to(docs).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(docs.rglob("*.md"))
    }
    return {name: (in_text(source), in_captions(source)) for name, source in sources.items()}


def page_counts(docs: Path) -> list[tuple[str, Counts]]:
    """Return (words, figures, computed numbers, worked problems) of every page, then sums.

    Generated pages form one row, because their words have no author.
    """
    rows = [
        (path.relative_to(docs).as_posix(), _counts(path.read_text(encoding="utf-8")))
        for path in sorted(docs.rglob("*.md"))
    ]
    generated = list(map(_counts, subject().pages(docs, {}).values()))
    return [
        *rows,
        ("all written pages", _sum(counts for _, counts in rows)),
        (f"{len(generated)} generated pages", _sum(generated)),
    ]


def _sum(rows: Iterable[Counts]) -> Counts:
    words = figures = numbers = problems = 0
    for row in rows:
        words, figures = words + row[0], figures + row[1]
        numbers, problems = numbers + row[2], problems + row[3]
    return words, figures, numbers, problems


def _counts(source: str) -> Counts:
    source = stated(source)
    figures = list(fences(source))
    prose = re.sub(r"^\s*```.*?^\s*```\s*$", "", source, flags=re.S | re.M)
    numbers = len(re.findall(PATTERN, source))
    problems = len(re.findall(r"^\?\?\?\+? question", source, flags=re.M))
    words = len(re.findall(r"[A-Za-zÀ-ÿ]{2,}", re.sub(PATTERN, "", prose)))
    return words, len(figures), numbers, problems
