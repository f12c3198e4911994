"""When each page last changed, read from the repository's history."""

from __future__ import annotations

import subprocess
from pathlib import Path


def last_changes(docs: Path) -> dict[str, str]:
    """Return the ISO date of the last commit of every file in `docs`, by path.

    Empty without git, outside a repository, and in a shallow clone, whose history is incomplete.
    """
    shallow = _git(docs, "rev-parse", "--is-shallow-repository")
    if shallow.strip() != "false":
        return {}
    found: dict[str, str] = {}
    date = ""
    log = _git(docs, "log", "--format=%x01%cs", "--name-only", "--relative", "-z", "--", ".")
    for field in log.replace("\n", "\0").split("\0"):
        if field.startswith("\1"):
            date = field[1:]
        elif field:
            found.setdefault(field, date)
    return found


def _git(where: Path, *words: str) -> str:
    try:
        ran = subprocess.run(
            ["git", "-c", "core.quotePath=false", *words],
            cwd=where,
            capture_output=True,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if ran.returncode else ran.stdout.decode("utf-8", "replace")
