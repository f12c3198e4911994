"""Scripts for publication, without comments and indentation."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import minify_html

from figgen.errors import InputError

FOLDER = "assets/javascripts"
OWN = Path(__file__).parents[1]
"""The package; every site gets its `assets/`."""
STYLES = "assets/stylesheets"
SEARCH = (f"{FOLDER}/search/", f"{STYLES}/search.css")
"""Scripts that only search needs."""
_OPEN, _CLOSE = "<script type=module>", "</script>"


def plain_scripts(docs: Path) -> dict[str, str]:
    """Return every script of the site and the package by path, without comments."""
    return {
        path.relative_to(root).as_posix(): _plain_file(path, about.st_mtime_ns, about.st_size)
        for root in (OWN, docs)
        for path in sorted((root / FOLDER).rglob("*.js"))
        for about in [path.stat()]
    }


WRITTEN_FOR_PX = 20
"""The root's font size for which the stylesheets are written, Material's."""


def own_styles(root_px: int) -> dict[str, str]:
    """Return the stylesheets that every site gets, by path, for a theme's font size of the root."""
    sheets = sorted((OWN / STYLES).glob("*.css"))
    larger = WRITTEN_FOR_PX / root_px
    return {
        f"{STYLES}/{sheet.name}": sheet.read_text("utf-8")
        if larger == 1
        else _REM.sub(lambda size: f"{larger * float(size[1]):.4g}rem", sheet.read_text("utf-8"))
        for sheet in sheets
    }


def imported_names(docs: Path, module: str) -> tuple[str, ...]:
    """Return the names that the site's scripts import from `module`, sorted."""
    found: set[str] = set()
    for path in (docs / FOLDER).rglob("*.js"):
        source = path.read_text(encoding="utf-8")
        for names in re.findall(rf'import \{{([^}}]*)\}} from "[./]*/{re.escape(module)}"', source):
            found.update(name.split()[0] for name in names.split(",") if name.strip())
    return tuple(sorted(found))


_BEHIND = re.compile(r"(?<=[^\s:]) +// [^\"'`]*$")

_REM = re.compile(r"(?<![\w.])(\d*\.?\d+)rem\b")

_NOTE = re.compile(r"(\w?)/\* @__PURE__ \*/ ")


# A server calls these again after each change. More scripts than answers would forget them all.
KEPT_SCRIPTS = 4096


@lru_cache(maxsize=KEPT_SCRIPTS)
def _plain_file(path: Path, changed_ns: int, size: int) -> str:
    """Return a file's script as `plain` does; it is read again when its time or size changes."""
    return plain(path.read_text(encoding="utf-8"))


@lru_cache(maxsize=KEPT_SCRIPTS)
def plain(source: str) -> str:
    """Return a script without empty lines, comments and indentation.

    Template literals over several lines stay as they are. A comment that contains a quote stays
    too, since it might not be a comment.
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


@lru_cache(maxsize=KEPT_SCRIPTS)
def lean(source: str) -> str:
    """Return a minified module; names are kept.

    It is a third smaller than what `plain` gives. Raises InputError for text that would end a
    script.
    """
    if "</script" in source:
        raise InputError("a script", expected="no </script in it", got="</script")
    # The library has no other way in, and keeps comments that lead a statement.
    shorter: str = minify_html.minify(f"{_OPEN}{source}{_CLOSE}", minify_js=True)
    # It adds notes for other tools; the joiner knows that creating a Map has no effects.
    shorter = _NOTE.sub(lambda found: found[1] and f"{found[1]} ", shorter)
    return shorter.removeprefix(_OPEN).removesuffix(_CLOSE) + "\n"


def plotly_bundle() -> bytes:
    """Return the library from the installed package, without importing the package."""
    package = find_spec("plotly")
    if package is None or package.origin is None:
        raise InputError("the plotly package is not installed")
    return (Path(package.origin).parent / "package_data" / "plotly.min.js").read_bytes()
