"""lint: check that the prose of the pages follows the rules."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from figgen.commands import Answer, Verbs, add_verb
from figgen.errors import InputError, raise_all
from figgen.project import docs_here
from figgen.subject import subject


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    summary = "check quantities, sentences and terms of the pages"
    lint = add_verb(verbs, "lint", _lint, summary, "docs/about")
    lint.add_argument("docs", nargs="?", type=Path)


def _lint(options: argparse.Namespace) -> Answer:
    from figgen.prose.rules import lint_folder
    from figgen.serving.code import in_place

    docs = docs_here(options.docs)
    try:
        subject()  # a mistake in the site's modules would recur with each figure
    except InputError as error:
        raise_all(in_place(error))
    found = lint_folder(docs)
    told = "\n".join(map(str, found)) or "every page follows the rules"
    return Answer([asdict(finding) for finding in found], told, status=int(bool(found)))
