"""The start of a build: everything that it knows before it sees a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from figgen import serving
from figgen.markdown import math
from figgen.markdown.conversion import Short, Site
from figgen.markdown.lists import TERM, read_list, read_references, term_anchor
from figgen.pictures import Pictures
from figgen.publish.build import SiteBuild
from figgen.serving.answers import Answers
from figgen.subject import subject, use


def begin_build(
    docs: Path, cache: Path, name: str, address: str, modules: Iterable[str] | None = None
) -> SiteBuild:
    """Start a build of the pages in `docs`, with pictures cached in `cache`.

    `modules` register the site's subject; None leaves the current subject in place.

    A server keeps a memory and rebuilds only what changed; other builds reuse what the same code
    has computed before.
    """
    if modules is not None:
        use(*modules)
    keeper = serving.current() or Answers(folder=cache)
    math.recall(cache)
    terms = read_list(docs / "glossary.toml", TERM, "means")
    site = Site(
        pictures=Pictures(folder=cache, memory=keeper),
        name=name,
        address=address,
        references=read_references(docs),
        glossary={t: entry["means"] for t, entry in terms.items() if entry.get("hover", True)},
        shorts=_shorts(terms),
        late=True,
        styles=("assets/stylesheets/roles.css", "assets/stylesheets/figures.css"),
    )
    return SiteBuild(site=site, docs=docs, terms=terms, keeper=keeper)


def _shorts(terms: Mapping[str, Mapping[str, Any]]) -> dict[str, Short]:
    """Map the short names of glossary terms to the terms."""
    return {
        entry["short"]: Short(term, entry["means"], f"{subject().glossary}#{term_anchor(term)}")
        for term, entry in terms.items()
        if "short" in entry
    }
