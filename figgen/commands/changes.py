"""diff: list the changes of a revision to the numbers and figures that readers see."""

from __future__ import annotations

import argparse
import json
from datetime import date
from pathlib import Path

from figgen.changes import report
from figgen.changes.builds import Build, build_of, git, read_build
from figgen.changes.causes import causes
from figgen.changes.compare import compare
from figgen.changes.feed import with_moved
from figgen.commands import Answer, Verbs, add_verb
from figgen.errors import InputError
from figgen.project import site_of
from figgen.publish.changelog import FEED


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "diff",
        _diff,
        "compare two builds: numbers, figures, pictures and text",
        "main",
        "main . --report changes",
        "v1.0 v1.1 --exit-code",
        "old-site new-site --feed",
    )
    parser.add_argument("base", help="a revision, a site's folder, or a figures.json")
    parser.add_argument("head", nargs="?", default=".", help="as `base`; the work tree by default")
    parser.add_argument("--report", type=Path, help="a folder for the report and its summary")
    parser.add_argument(
        "--feed", action="store_true", help="append the changes to head's changes.xml"
    )
    parser.add_argument(
        "--exit-code", action="store_true", help="exit with status 1 if anything changed"
    )


def _diff(options: argparse.Namespace) -> Answer:
    base, head = _build(options.base), _build(options.head)
    changes = compare(base, head)
    revisions = not _is_build(options.base) and not _is_build(options.head)
    found = causes(changes, _root() if revisions else None, options.base, options.head)
    if options.report:
        options.report.mkdir(parents=True, exist_ok=True)
        for name, content in {
            "index.html": report.html(base, head, changes, found),
            "summary.md": report.summary(changes, found),
            "changes.json": report.as_json(changes, found),
        }.items():
            (options.report / name).write_text(content, encoding="utf-8")
    if options.feed:
        if head.folder is None or not (head.folder / FEED).is_file():
            raise InputError("head", expected=f"the folder of a site with {FEED}", got=options.head)
        before = Path(options.base, FEED) if base.folder else Path(options.base).with_name(FEED)
        said = before.read_text(encoding="utf-8") if before.is_file() else ""
        mine, today = (head.folder / FEED).read_text(encoding="utf-8"), str(date.today())
        added = with_moved(mine, said, changes, found, today)
        (head.folder / FEED).write_text(added, encoding="utf-8")
    status = int(options.exit_code and any(changes.counts.values()))
    data = json.loads(report.as_json(changes, found))
    return Answer(data, report.summary(changes, found).rstrip("\n"), status)


def _is_build(name: str) -> bool:
    try:
        return name != "." and Path(name).exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _build(name: str) -> Build:
    return read_build(Path(name)) if _is_build(name) else build_of(_root(), name)


def _root() -> Path:
    """Return the folder of the site here. Raises InputError if there is none, or no repository."""
    site = site_of(Path.cwd())
    if site is None:
        raise InputError("figgen diff", expected="a folder of a site", got=str(Path.cwd()))
    git(site.folder, "rev-parse", "--git-dir")
    return site.folder
