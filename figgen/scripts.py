"""Scripts as they are published: minified, and what they import by name."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = "assets/javascripts"


def sources(docs: Path) -> dict[str, str]:
    """Every script of the site's sources by its path."""
    return {
        path.relative_to(docs).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((docs / FOLDER).rglob("*.js"))
    }


def minified(script: str) -> str:
    """A script without comments and spaces, its inner names shortened.

    Raises ValueError, with line and column, for what cannot be read as a script.
    """
    import minify  # loads a library of 16 MB, which only a build of the site needs

    return str(minify.string("text/javascript", script))


def imported_names(docs: Path, module: str) -> tuple[str, ...]:
    """What the site's scripts import by name from the script called `module`, sorted."""
    found: set[str] = set()
    for source in sources(docs).values():
        for names in re.findall(rf'import \{{([^}}]*)\}} from "[./]*/{re.escape(module)}"', source):
            found.update(name.split()[0] for name in names.split(",") if name.strip())
    return tuple(sorted(found))
