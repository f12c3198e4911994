"""The index: the impact of each word on each record, in pieces that are loaded by word.

`head.json` lists pages, records and the first word of each piece, `words-N.json` the postings of a
range of words, `text-N.json` the texts of one page for excerpts. A posting is a record's number (as
the difference from the previous one) and its impact: BM25F over title and text, times a prior of
the page. The browser adds the impacts of a query's words.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from figgen.search.records import Record, records
from figgen.search.words import Synonyms, words

FOLDER = "search/"
PIECE_BYTES = 24_000
TITLE, SYMBOLS = 6.0, 0.5  # weights relative to a word of the text
ALSO = 0.5  # weight of a synonym relative to the word itself
SATURATION, LENGTH = 1.6, 0.6  # k1 and b of BM25
IMPACTS = 255

LIKELY = {
    "": 1.0, "guide/": 1.3, "tools/": 1.2, "reference/glossary/": 0.9, "reference/formulas/": 0.9,
    "reference/presets/": 0.5, "reference/coverage/": 0.3, "reference/notation/": 0.8,
    "reference/hardware/": 1.25, "reference/runs/": 0.9,
    "appendix/": 0.6, "appendix/coverage/": 0.3, "about/": 0.8,
}  # fmt: skip
"""The relative probability that readers want a page, by the beginning of its address."""

RECORD_KINDS = ("page", "section", "figure", "formula", "term", "row")
ASIDE = {"read-next": 0.4, "references": 0.4, "check-yourself": 0.8, "pitfalls": 0.9}
"""Weights of sections that many pages have and that lead readers elsewhere, by anchor."""
WEIGHTS = {"page": 1.15, "figure": 0.75, "formula": 1.0, "row": 0.9, "term": 0.85}


@dataclass(frozen=True, slots=True)
class Sheet:
    """A page of the index: its address relative to the site's root, its title, its records."""

    url: str
    title: str
    records: tuple[Record, ...]


def sheet(url: str, title: str, html: str, also: str = "") -> Sheet:
    """Return a page's HTML as searchable records; `also` are other names of the page."""
    found = records(html, formulas=url.startswith("reference/formulas/"))
    found[0].also = also
    return Sheet(url, title, tuple(found))


def index(
    sheets: Iterable[Sheet], synonyms: Synonyms, filled: Sequence[object] = ()
) -> dict[str, str]:
    """Return the files of the index by their path from the site's root.

    `filled` are pages that a search opens with filled-in fields: URL, title, and the words of each
    field.
    """
    pages = [s for s in sheets if s.records]
    numbered = [(at, record) for at, page in enumerate(pages) for record in page.records]
    likely = [_likely(page.url) for page in pages]
    counts = [_weighted(record, synonyms) for _, record in numbered]
    lengths = [len(record.text) for _, record in numbered]
    mean = max(1.0, sum(lengths) / max(1, len(lengths)))
    spread = Counter(chain.from_iterable(counts))
    rare = {
        word: math.log(1 + (len(numbered) - count + 0.5) / (count + 0.5))
        for word, count in spread.items()
    }
    postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for number, (at, record) in enumerate(numbered):
        longer = 1 - LENGTH + LENGTH * lengths[number] / mean
        prior = likely[at] * WEIGHTS.get(record.kind, 1.0) * ASIDE.get(record.anchor, 1.0)
        for word, (title, text) in counts[number].items():
            often = title + text / longer
            postings[word].append((number, prior * rare[word] * often / (SATURATION + often)))
    pieces, cuts = _pieces(postings)
    head: dict[str, object] = {
        "cuts": cuts,
        "kinds": RECORD_KINDS,
        "pages": [[page.url, page.title] for page in pages],
        "records": [
            [at, RECORD_KINDS.index(r.kind), r.anchor, "" if r.kind == "page" else r.title]
            for at, r in numbered
        ],
    }
    if filled:
        head["filled"] = filled
    files: dict[str, object] = {"head.json": head}
    files |= {f"words-{number}.json": piece for number, piece in enumerate(pieces)}
    files |= {
        f"text-{number}.json": [record.text for record in page.records]
        for number, page in enumerate(pages)
    }
    return {FOLDER + name: _compact(content) for name, content in files.items()}


def _likely(url: str) -> float:
    return LIKELY[max((start for start in LIKELY if url.startswith(start)), key=len)]


def _weighted(record: Record, synonyms: Synonyms) -> dict[str, tuple[float, float]]:
    """Return each word's weighted frequencies in a record's title and text."""
    named = record.title
    if record.kind in ("formula", "row"):
        named += " " + record.anchor
    own = list(words(named))
    title: dict[str, float] = defaultdict(float)
    text: dict[str, float] = defaultdict(float, Counter(words(record.text)))
    brief = TITLE / (0.4 + 0.2 * max(1, len(set(own))))
    for word in set(own):
        title[word] += brief
    for word in {*synonyms.of(record.title), *words(record.also)} - set(own):
        title[word] += brief * ALSO
    for word in synonyms.of(record.text):
        text[word] += ALSO
    for word in set(words(record.symbols)):
        text[word] += SYMBOLS
    return {word: (title.get(word, 0.0), text.get(word, 0.0)) for word in {*title, *text}}


def _pieces(
    postings: Mapping[str, list[tuple[int, float]]],
) -> tuple[list[dict[str, list[int]]], list[str]]:
    """Cut the sorted words into pieces of about equal size; return them and their first words.

    Words with the same three first letters share a piece, so that a typed beginning needs only one.
    """
    most = max((impact for found in postings.values() for _, impact in found), default=1.0)
    pieces: list[dict[str, list[int]]] = []
    cuts: list[str] = []
    room = 0
    start = ""
    for word in sorted(postings):
        packed: list[int] = []
        before = 0
        for number, impact in postings[word]:
            packed += (number - before, max(1, round(IMPACTS * impact / most)))
            before = number
        if room <= 0 and word[:3] != start:
            pieces.append({})
            cuts.append(word)
            room = PIECE_BYTES
        start = word[:3]
        pieces[-1][word] = packed
        room -= len(word) + 4 * len(packed)
    return pieces, cuts


def _compact(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
