"""Glossary and notation: every term and every symbol, once each and linked."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from figgen.formulas import FORMULAS, NOTATION
from figgen.generated.formulas import formula_link
from figgen.generated.glossary import MOST_LINKED, glossary_page, notation_page
from figgen.markdown.lists import term_anchor

TERMS = tomllib.loads(
    (Path(__file__).parents[2] / "docs" / "glossary.toml").read_text(encoding="utf-8")
)


def test_every_term_has_an_entry_of_its_own() -> None:
    page = glossary_page(TERMS, ["guide/experts.md"])
    ids = re.findall(r'^<span id="([\w-]+)">', page, re.M)
    assert len(ids) == len(set(ids)) == len(TERMS) >= 80
    assert set(ids) == set(map(term_anchor, TERMS))
    assert ids == [term_anchor(term) for term in sorted(TERMS, key=str.lower)]


def test_a_term_links_to_its_page_only_where_that_exists() -> None:
    some = glossary_page(TERMS, ["guide/experts.md"])
    assert set(re.findall(r"\[More\]\(\.\./([^)]+)\)", some)) == {"guide/experts.md"}
    assert "[More]" not in glossary_page(TERMS, [])


def test_every_meaning_is_sentences_and_no_spelling_to_avoid_is_another_term() -> None:
    for term, entry in TERMS.items():
        assert entry.keys() <= {"means", "see", "hover", "never", "also", "short"}, term
        assert entry["means"].endswith("."), term
        assert not re.search(r"\bbubble\b(?!_)", entry["means"]), term
        assert not set(entry.get("never", [])) & set(TERMS), term


def test_notation_lists_every_argument_of_every_formula_once() -> None:
    rows = re.findall(r"^\| \$.*?\$ \| `(\w+)` \|", notation_page(), re.M)
    used = {argument.name for formula in FORMULAS.values() for argument in formula.args}
    assert len(rows) == len(set(rows))
    assert set(rows) == used <= set(NOTATION)


def test_a_symbol_links_to_formulas_that_have_it() -> None:
    row = next(line for line in notation_page().splitlines() if "| `etp` |" in line)
    links = re.findall(r"\]\(([^)]+)\)", row)
    having = [f.name for f in FORMULAS.values() if any(a.name == "etp" for a in f.args)]
    assert links == [formula_link(name) for name in having[:MOST_LINKED]]
