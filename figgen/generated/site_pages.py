"""All generated pages of a site."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from figgen.cache import digest
from figgen.generated.api_page import api_page
from figgen.generated.borrowed import borrowed_figures
from figgen.generated.catalog_pages import catalog_pages
from figgen.generated.figure_coverage import figure_coverage_page, planned_figures
from figgen.generated.formula_coverage import coverage_page
from figgen.generated.formulas import Known, formula_pages, frozen_points
from figgen.generated.glossary import glossary_page, notation_page
from figgen.generated.presets import preset_pages
from figgen.generated.search_page import PATH, search_page
from figgen.generated.uses import pages_of_formulas
from figgen.generated.validation import validation_pages
from figgen.publish.changelog import changelog_pages
from figgen.subject import Keep, Terms, made, nowhere

_H1 = re.compile(r"^# (.+?)\s*$", re.M)


Pages: TypeAlias = dict[str, str]
"""Markdown by path."""

REFERENCE = "reference/"


def kept_validation(keep: Keep) -> Pages:
    """Return the pages that `site_pages` needs last, so that another process can make them."""
    pages: Pages = keep("pages of the validation", validation_pages.__module__, validation_pages)
    return pages


def site_pages(
    docs: Path | None,
    terms: Terms,
    keep: Keep = made,
    excluded: Callable[[str], bool] = nowhere,
) -> Pages:
    """Return Markdown by path;

    `docs` are the written pages, `terms` the entries of the glossary.

    `keep` may answer for pages that follow only from a request, the code of a module and the
    catalog. Pages of the reference and the validation are not computed if a site excludes them.
    """
    written = _written(docs) if docs else {}
    titles = {path: found[1] for path, source in written.items() if (found := _H1.search(source))}
    pages = {
        **({} if excluded(REFERENCE) else _reference(written, titles, keep, excluded)),
        **({} if excluded("validation/") else kept_validation(keep)),
    }
    history = docs.parent / "CHANGELOG.md" if docs else None
    if history and history.is_file():
        pages |= changelog_pages(history.read_text(encoding="utf-8"))
    if terms and not excluded(REFERENCE):  # without terms, navigation names a page that isn't there
        pages["reference/glossary.md"] = glossary_page(terms, [*written, *pages])
    planned = planned_figures(docs / "appendix" / "figures.toml") if docs else ()
    if planned:
        pages["appendix/coverage.md"] = figure_coverage_page(planned, titles)
    everything = written | pages
    names = {
        path: found[1]
        for path, source in everything.items()
        if path != "LICENSE.md" and (found := _H1.search(source))
    }
    pages[PATH] = search_page(names, terms)
    return pages


def _reference(
    written: Pages, titles: Mapping[str, str], keep: Keep, excluded: Callable[[str], bool]
) -> Pages:
    """Return the pages of formulas, notation, functions, presets and the catalog."""
    tools = frozenset(path for path in written if path.startswith("tools/"))
    known = Known(
        points=frozen_points(),
        uses=pages_of_formulas(written),
        titles=titles,
        pictures=borrowed_figures(written, titles),
    )

    def kept(what: str, make: Callable[[], Any]) -> Any:
        return keep(what, make.__module__, make)

    about = digest(repr(known))
    return {
        **keep(f"formulas {about}", formula_pages.__module__, lambda: formula_pages(known)),
        "reference/coverage.md": kept("coverage of formulas", coverage_page),
        "reference/api.md": kept("page of the functions", api_page),
        "reference/notation.md": kept("notation", notation_page),
        **({} if excluded("reference/presets/") else preset_pages(tools, keep)),
        **kept("pages of the catalog", catalog_pages),
    }


def _written(docs: Path) -> dict[str, str]:
    return {
        path.relative_to(docs).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(docs.rglob("*.md"))
    }
