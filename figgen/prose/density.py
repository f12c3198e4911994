"""Count the numbers per 100 words of a page's running text and of its captions.

Running text excludes titles, table rows, code, captions and folded blocks. Numbers are inline
values and typed numbers, but not numbers in names: page 3, TP 8, H100, 16 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from figgen.prose.lines import COMPUTED, SIGNS, figure_lines, prose_lines

MOST_IN_JOURNEY = 2.5
"""The most numbers per 100 words of running text on a page of the journey."""

_NAMES = re.compile(
    r"(?:pages?|ranks?|stages?|chunks?|rows?|steps?|stage|tokens?|microbatch(?:es)?|experts?|layers?"
    r"|figures?|chapters?|GPUs?|Llama|Mixtral|PyTorch|NVLink|ZeRO|TP|PP|DP|CP|EP|ETP|FSDP|NCCL"
    r"|version|Table|§)[- ]\d[\d.]*(?:(?:,| and| or| to) \d[\d.]*)*"
    r"|\b\d+[- ]bits?\b|\b[A-Z][A-Za-z]*\d+\w*|\b\d+(?:\.\d+)?[BMKT]\b|1F1B",
    re.IGNORECASE,
)
_NUMBER = re.compile(rf"{COMPUTED}|(?<![\w.,-])\d[\d.,]*(?![\w-])")
_WORD = re.compile(r"[A-Za-zÀ-ÿ][A-Za-zÀ-ÿ'’-]*")


def in_text(source: str) -> float:
    """Return the numbers per 100 words of a page's running text."""
    folded = _folded(source)
    return _per_100(
        line.text
        for line in prose_lines(source)
        if line.kind == "text" and line.number not in folded
    )


def in_captions(source: str) -> float:
    """Return the numbers per 100 words of a page's captions, without alternative texts."""
    lines = source.split("\n")
    return _per_100(
        line.text
        for line in figure_lines(source)
        if lines[line.number - 1].lstrip().startswith("caption:")
    )


def _per_100(texts: Iterable[str]) -> float:
    numbers = words = 0
    for text in texts:
        numbers += len(_NUMBER.findall(_NAMES.sub("name", text)))
        words += len(_WORD.findall(re.sub(f"[{SIGNS}]", " ", text)))
    return 100 * numbers / words if words else 0.0


def _folded(source: str) -> set[int]:
    """Return the lines in folds and boxes, which are not part of the running text."""
    found, inside = set(), False
    for number, line in enumerate(source.split("\n"), 1):
        if re.match(r"(?:\?\?\?\+?|!!!) ", line):
            inside = True
        elif line.strip() and not line.startswith("    "):
            inside = False
        if inside:
            found.add(number)
    return found
