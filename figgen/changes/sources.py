"""Record the inputs of a build: catalog values, code, data, texts and library versions."""

from __future__ import annotations

import json
import platform
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from figgen.cache import digest
from figgen.serving.code import own_sources
from figgen.subject import modules

PACKAGE = Path(__file__).parents[1]
CATALOG = PACKAGE / "catalog"
LIBRARIES = (
    "fonttools", "latex2mathml", "markdown", "matplotlib", "mkdocs", "mkdocs-material", "numpy",
    "plotly", "pygments", "pymdown-extensions", "pyyaml", "resvg-py", "snowballstemmer", "ziamath",
)  # fmt: skip
"""Libraries that affect what a build computes, draws or writes."""


def sources(pages: Mapping[str, str]) -> str:
    """Return `sources.json`: digests and values by name; `pages` are the texts by path."""
    own = own_sources(modules())
    catalog: dict[str, str] = {}
    for folder in catalog_folders():
        catalog |= catalog_values(folder)
    found = {
        "catalog": catalog,
        "code": _digests("*.py") | _own_digests(own),
        "data": _digests("*.json"),
        "libraries": {
            "python": platform.python_version(),
            **dict(_versions()),
        },
        "pages": {path: digest(text) for path, text in sorted(pages.items())},
    }
    return json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def catalog_folders() -> tuple[Path, ...]:
    """Return the folders of the subject's catalogs: those of the site's modules, or the guide's."""
    own = own_sources(modules()).values()
    folders = [place if place.is_dir() else place.parent for place in own]
    return tuple(dict.fromkeys(folders)) or (CATALOG,)


def _versions() -> Iterator[tuple[str, str]]:
    """Yield the versions of those libraries that are installed: sites have different themes."""
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            yield name, metadata.version(name)


def _digests(pattern: str) -> dict[str, str]:
    """Return the digests of the package's files that match a pattern, by path."""
    return {
        path.relative_to(PACKAGE).as_posix(): digest(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob(pattern))
    }


def _own_digests(own: Mapping[str, Path]) -> dict[str, str]:
    """Return the digests of the sources of the site's modules, by path relative to their folder."""
    files = (
        (path, [path] if path.is_file() else sorted(path.rglob("*.py"))) for path in own.values()
    )
    return {
        file.relative_to(root.parent).as_posix(): digest(file.read_text(encoding="utf-8"))
        for root, found in files
        for file in found
    }


def catalog_values(folder: Path) -> dict[str, str]:
    """Return every value of the catalog as written in its file, by `file/entry/key`."""
    found = {}
    for file in sorted(folder.glob("*.toml")):
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        for name, value in _leaves(tables, file.name):
            found[name] = value if isinstance(value, str) else json.dumps(value, default=str)
    return found


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}/{key}")
    else:
        yield name, value
