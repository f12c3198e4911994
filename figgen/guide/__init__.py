"""The subject of this site, which `figgen.subject.use("figgen.guide")` registers with the press.

Functions import the models when they are called, since each build imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from figgen.guide.lookups import LOOKUPS, RANGES
from figgen.guide.words import COUNTED, NAMES, SAME_SYMBOLS, SPELLED
from figgen.subject import Expand, Keep, Subject, Terms, ToolScripts, made, nowhere

__all__ = ["SUBJECT"]


def _preset_title(name: str) -> str:
    from figgen.catalog import preset

    return preset(name).title


def _pages(
    docs: Path | None,
    terms: Terms,
    keep: Keep = made,
    excluded: Callable[[str], bool] = nowhere,
) -> dict[str, str]:
    from figgen.generated.site_pages import site_pages

    return site_pages(docs, terms, keep, excluded)


def _pages_ahead(keep: Keep) -> object:
    from figgen.generated.site_pages import kept_validation

    return kept_validation(keep)


def _tools() -> ToolScripts:
    from figgen.guide.tool_scripts import TOOLS

    return TOOLS


def _expansions() -> Mapping[str, Expand]:
    from figgen.guide.expand import EXPANSIONS

    return EXPANSIONS


def _premises(name: str) -> Iterable[tuple[float, str]]:
    from figgen.guide.premises import entry_sizes

    return entry_sizes(name)


SUBJECT = Subject(
    figures="figgen.figures",
    formulas="figgen.formulas",
    entries="figgen.catalog.load",
    rooms=(
        "figgen.figures",
        "figgen.formulas",
        "figgen.models",
        "figgen.catalog",
        "figgen.scenarios",
        "figgen.plotting",
        "figgen.generated",
        "figgen.commands",
        "figgen.guide",
    ),
    lookups=LOOKUPS,
    ranges=RANGES,
    preset_title=_preset_title,
    glossary="reference/glossary.md",
    first_uses="guide/",
    pages=_pages,
    pages_ahead=_pages_ahead,
    tools=_tools,
    quantities=Path(__file__).with_name("quantities.toml"),
    expansions=_expansions,
    spelled=SPELLED,
    premises=_premises,
    same_symbols=SAME_SYMBOLS,
    counted=COUNTED,
    names=NAMES,
)
