"""agree: check that equal quantities with equal inputs have equal values on every page."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from figgen.commands import Answer, Verbs, add_verb
from figgen.project import docs_here


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    summary = "check that a quantity with equal inputs has one value on all pages"
    agree = add_verb(verbs, "agree", _agree, summary, "docs/about")
    agree.add_argument("docs", nargs="?", type=Path)


def _agree(options: argparse.Namespace) -> Answer:
    from figgen.agreement import compared, numbers_of_folder
    from figgen.agreement.ways import quantities

    docs = docs_here(options.docs)
    known = quantities()
    numbers, failed = numbers_of_folder(docs)
    found = compared(numbers, known)
    told = [f"{docs.name}/{each}" for each in (*failed, *found.disagreements)]
    told.append(
        f"{found.numbers:,} numbers; {found.identified:,} of {len(known)} quantities that"
        f" are computed in several ways, {found.points:,} points where they can be compared,"
        f" {len(found.disagreements) or 'no'} disagreement{'s' * (len(found.disagreements) != 1)}"
        + (f", {len(failed)} not computed" if failed else "")
    )
    data = asdict(found) | {"failed": [asdict(one) for one in failed]}
    return Answer(data, "\n".join(told), status=int(bool(failed or found.disagreements)))
