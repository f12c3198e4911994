"""The glossary and the notation, from their one source each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from figgen.formulas import FORMULAS, NOTATION
from figgen.generated.formulas import formula_link, formula_title

MOST_LINKED = 4
"""Formulas that a symbol's row links to; the others are on the topics' pages."""


def glossary_page(terms: Mapping[str, Mapping[str, Any]], pages: Iterable[str]) -> str:
    """Every term with its meaning and the page that explains it, where that is among `pages`."""
    known = set(pages)
    entries = []
    for term in sorted(terms, key=str.lower):
        entry = terms[term]
        see = entry.get("see", "")
        more = f" [More](../{see})" if see in known else ""
        entries.append(f'<span id="{term_anchor(term)}">{escape(term)}</span>\n:   '
                       f"{entry['means']}{more}\n")  # fmt: skip
    return (
        "---\ndescription: Terms of art of distributed training, in one sentence each.\n---\n\n"
        f"# Glossary\n\nThe guide uses these {len(terms)} terms in one sense and one spelling.\n"
        "Symbols are in the [notation](notation.md).\n\n" + "\n".join(entries)
    )


def term_anchor(term: str) -> str:
    """A term as the id of its entry."""
    return re.sub(r"[^\w]+", "-", term.lower()).strip("-")


def notation_page() -> str:
    """Every argument of every formula, with its symbol, unit and the formulas that use it."""
    rows = "\n".join(_symbol_row(name) for name in NOTATION if _users(name))
    return (
        "---\ndescription: Every symbol of the guide with its meaning and unit.\n---\n\n"
        "# Notation\n\nOne letter means one thing on every page.\n"
        "Quantities are in SI units inside; bandwidths are those of one direction.\n"
        "The [conventions](conventions.md) say which of several customs the guide follows, and "
        "the [glossary](glossary.md) explains the words.\n\n"
        "| symbol | in code | meaning | unit | used by |\n|---|---|---|---|---|\n"
        f"{rows}\n"
        "{: data-search-exclude }\n"
    )


def _users(name: str) -> list[str]:
    return [f.name for f in FORMULAS.values() if any(a.name == name for a in f.args)]


def _symbol_row(name: str) -> str:
    argument, users = NOTATION[name], _users(name)
    links = ", ".join(
        f"[{formula_title(user)}]({formula_link(user)})" for user in users[:MOST_LINKED]
    )
    more = f" and {len(users) - MOST_LINKED} more" if len(users) > MOST_LINKED else ""
    unit = "pure number" if argument.unit == "1" else escape(argument.unit)
    return (
        f"| ${argument.symbol}$ | `{name}` | {escape(argument.meaning)} | {unit} | {links}{more} |"
    )
