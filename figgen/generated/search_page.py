"""The search page: its results, and an index of the site for readers without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Protocol

from figgen import catalog
from figgen.formulas import FORMULAS
from figgen.generated.data_tables import anchor
from figgen.generated.formulas import formula_link, formula_title
from figgen.markdown.lists import term_anchor

PATH = "search.md"


class TitledEntry(Protocol):
    """An entry of the catalog."""

    @property
    def title(self) -> str: ...


def search_page(titles: Mapping[str, str], terms: Iterable[str]) -> str:
    """Return the page;

    `titles` are those of all other pages by path, `terms` those of the glossary.
    """
    parts = {
        "Pages": [f"[{escape(title)}]({path})" for path, title in titles.items()],
        "Terms": [
            f"[{escape(term)}](reference/glossary.md#{term_anchor(term)})"
            for term in sorted(terms, key=str.lower)
        ],
        "Formulas": [
            f"[{formula_title(name)}](reference/{formula_link(name)})" for name in sorted(FORMULAS)
        ],
        "Accelerators": _rows("hardware", catalog.ACCELERATORS),
        "Links": _rows("hardware", catalog.LINKS),
        "Models": _rows("models", catalog.MODELS),
        "Runs": _rows("runs", catalog.RUNS),
    }
    register = "\n\n".join(f"## {title}\n\n" + " ·\n".join(links) for title, links in parts.items())
    return (
        "---\ndescription: Search the guide, its figures, formulas, terms and tables.\n"
        "hide: [navigation, toc]\n---\n\n# Search\n\n"
        '<div class="find-here"></div>\n\n'
        "Everything that you can look up is listed here by name, so your browser's search finds it "
        "too.\n\n"
        f"{register}\n"
    )


def _rows(page: str, entries: Mapping[str, TitledEntry]) -> list[str]:
    return [
        f"[{escape(entry.title)}](reference/{page}.md#{anchor(name)})"
        for name, entry in entries.items()
    ]
