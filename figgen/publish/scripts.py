"""Scripts as they are published: without what only the readers of the source need."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import minify_html

from figgen.errors import InputError

FOLDER = "assets/javascripts"
OWN = Path(__file__).parents[1]
"""The package, whose `assets/` every site gets."""
STYLES = "assets/stylesheets"
SEARCH = (f"{FOLDER}/search/", f"{STYLES}/search.css")
"""What only the search needs."""
_OPEN, _CLOSE = "<script type=module>", "</script>"


def plain_scripts(docs: Path) -> dict[str, str]:
    """Every script of the site's sources and of the package by its path, without its comments."""
    return {
        path.relative_to(root).as_posix(): plain(path.read_text(encoding="utf-8"))
        for root in (OWN, docs)
        for path in sorted((root / FOLDER).rglob("*.js"))
    }


def own_styles() -> dict[str, str]:
    """The stylesheets that every site gets, by their paths."""
    sheets = sorted((OWN / STYLES).glob("*.css"))
    return {f"{STYLES}/{sheet.name}": sheet.read_text(encoding="utf-8") for sheet in sheets}


def imported_names(docs: Path, module: str) -> tuple[str, ...]:
    """What the site's scripts import by name from the script called `module`, sorted."""
    found: set[str] = set()
    for path in (docs / FOLDER).rglob("*.js"):
        source = path.read_text(encoding="utf-8")
        for names in re.findall(rf'import \{{([^}}]*)\}} from "[./]*/{re.escape(module)}"', source):
            found.update(name.split()[0] for name in names.split(",") if name.strip())
    return tuple(sorted(found))


_BEHIND = re.compile(r"(?<=[^\s:]) +// [^\"'`]*$")


# A server asks again whenever one script changed.
@lru_cache(maxsize=512)
def plain(source: str) -> str:
    """A script without empty lines, comments and indentation.

    Texts in backticks that run over several lines are left as they are; a comment that quotes
    something stays behind its code, since it might be none.
    """
    kept: list[str] = []
    comment = text = False
    for line in source.splitlines():
        bare = line.strip()
        if text:
            kept.append(line)
        elif comment or bare.startswith("/*"):
            comment = not bare.endswith("*/")
            continue
        elif not bare or bare.startswith("//"):
            continue
        else:
            kept.append(bare if bare.count("`") % 2 else _BEHIND.sub("", bare))
        # An odd number of backticks opens or closes a text that goes on in the next line.
        text ^= len(re.findall(r"(?<!\\)`", line)) % 2 == 1
    return "\n".join(kept) + "\n"


@lru_cache(maxsize=512)
def lean(source: str) -> str:
    """A module as it is published: its statements in as few characters, its names as they were.

    With `plain` a third less than the source. Raises InputError for a text that would end a script.
    """
    if "</script" in source:
        raise InputError("a script", expected="no </script in it", got="</script")
    # The library has no other way in, and keeps comments that lead a statement.
    shorter: str = minify_html.minify(f"{_OPEN}{source}{_CLOSE}", minify_js=True)
    return shorter.removeprefix(_OPEN).removesuffix(_CLOSE) + "\n"


def plotly_bundle() -> bytes:
    """The library out of the installed package, without importing the package."""
    package = find_spec("plotly")
    if package is None or package.origin is None:
        raise InputError("the plotly package is not installed")
    return (Path(package.origin).parent / "package_data" / "plotly.min.js").read_bytes()
