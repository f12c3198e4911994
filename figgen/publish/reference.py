"""The pages that any site can have about its terms and its formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from html import escape
from pathlib import Path

from figgen.equations.definition import Formula
from figgen.equations.latex import domain_latex, latex
from figgen.errors import InputError
from figgen.markdown.lists import term_anchor
from figgen.registry import all_formulas
from figgen.subject import Terms, subject

FORMULAS = "formulas.md"


def glossary_page(terms: Terms) -> str:
    """Return each term with its meaning, and the page that says more if the entry names one."""
    lines = ["# Glossary", ""]
    for term in sorted(terms, key=str.lower):
        entry = terms[term]
        names = " or ".join([term, *([entry["short"]] if "short" in entry else [])])
        more = f" [More]({entry['see']})" if "see" in entry else ""
        anchor = f'<span id="{term_anchor(term)}"></span>'
        lines += [f"{anchor}**{escape(names)}**: {entry['means']}{more}", ""]
    return "\n".join(lines)


def formulas_page() -> str:
    """Return each formula with its arguments, where it holds, and its source."""
    formulas = sorted(all_formulas().values(), key=lambda formula: (formula.module, formula.line))
    return "\n".join(["# Formulas", "", *(line for one in formulas for line in _described(one))])


def _described(formula: Formula) -> Iterator[str]:
    unit = "" if formula.unit == "1" else f" ({formula.unit})"
    title = formula.name.removesuffix("_of").replace("_", " ").capitalize()
    yield from (
        f'## <span id="{formula.name}"></span>{title}',
        "",
        formula.doc,
        "",
        _law(formula),
        "",
    )
    yield from ("| symbol | argument | meaning | unit |", "|---|---|---|---|")
    for argument in formula.args:
        written = "pure number" if argument.unit == "1" else argument.unit
        yield f"| ${argument.symbol}$ | `{argument.name}` | {argument.meaning} | {written} |"
    holds = ", ".join(f"${condition}$" for condition in domain_latex(formula))
    yield from ("", f"The result is ${formula.symbol}${unit}.")
    yield from ([f"It holds for {holds}."] if holds else [])
    yield from (f"Source: {formula.source}", "")


def _law(formula: Formula) -> str:
    try:
        return f"$${latex(formula)}$$"
    except InputError as error:  # the build says so where a page shows the formula
        return f"It has no printed law: {escape(str(error))}."


def reference_pages(docs: Path | None, terms: Terms, formulas: bool) -> dict[str, str]:
    """Return the pages by path: the glossary if there are terms, the formulas if asked for.

    A page that the site's author wrote in `docs` isn't replaced.
    """
    found: dict[str, Callable[[], str]] = {}
    found |= {subject().glossary: partial(glossary_page, terms)} if terms else {}
    found |= {FORMULAS: formulas_page} if formulas else {}
    return {path: make() for path, make in found.items() if not (docs and (docs / path).is_file())}
