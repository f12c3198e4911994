"""The page that lists where every entry of the formula catalog is computed and tested."""

from __future__ import annotations

import re
from collections import Counter
from html import escape

from figgen.formulas import FORMULAS, TOPICS
from figgen.formulas.coverage import Covered, coverage
from figgen.generated.formulas import FORMULAS_BY_TOPIC, formula_link, formula_title, topic_title

KIND_WORDS = {"model": "algorithm", "test": "test", "identity": "test of a law"}
"""Descriptions of entries that are not formulas."""


def coverage_page() -> str:
    """Return every entry by topic, as Markdown; entries that are not formulas come last."""
    entries = coverage()
    counts = Counter(entry.kind for entry in entries)
    named = {entry.name for entry in entries}
    parts = [
        "---\ndescription: Where each entry of the formula catalogue is computed, and what tests "
        "it.\n---\n\n# Formula coverage\n\n"
        f"The guide was planned from a catalogue of {len(entries)} formulas with test values.\n"
        f"{counts['formula']} of its entries are formulas of this site, "
        "each compared with those values.\n"
        f"{counts['model']} are algorithms, {counts['test']} are statements about arrays and "
        f"{counts['identity']} are laws between formulas, "
        "computed or tested at the place named here.\n"
        f"The site has {len(FORMULAS.keys() - named)} formulas more, "
        "which the catalogue counts with others or not at all; [](#fig-formula-topics) counts both "
        "by topic.\n",
        FORMULAS_BY_TOPIC,
    ]
    for topic in TOPICS:
        members = [
            entry
            for entry in entries
            if entry.kind == "formula" and FORMULAS[entry.name].module == topic.__name__
        ]
        parts.append(_table(topic_title(topic), members))
    parts.append(_table("Not formulas", [e for e in entries if e.kind != "formula"]))
    return "\n".join(parts)


def _table(title: str, entries: list[Covered]) -> str:
    rows = "\n".join(
        f"| {escape(entry.title)} | {_place(entry)} | {_note(entry)} |" for entry in entries
    )
    return (
        f"\n## {title}\n\n| entry of the catalogue | computed by | note |\n|---|---|---|\n{rows}\n"
    )


def _place(entry: Covered) -> str:
    if entry.kind == "formula":
        return f"[{formula_title(entry.name)}]({formula_link(entry.name)})"
    return f"{KIND_WORDS[entry.kind]}: `{entry.name}`"


def _note(entry: Covered) -> str:
    """Return an entry's note, with functions as code and formulas linked."""

    def marked(found: re.Match[str]) -> str:
        name = found[0]
        return f"[`{name}`]({formula_link(name)})" if name in FORMULAS else f"`{name}`"

    return re.sub(r"\b(?:figgen\.[\w.]*\w|[a-z]+(?:_[a-z0-9]+)+)\b", marked, escape(entry.note))
