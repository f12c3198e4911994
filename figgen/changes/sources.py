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
from figgen.serving.code import data_files, own_sources
from figgen.subject import modules

PACKAGE = Path(__file__).parents[1]
CATALOG = PACKAGE / "catalog"
LIBRARIES = (
    "fonttools", "latex2mathml", "markdown", "matplotlib", "mkdocs", "mkdocs-figgen",
    "mkdocs-material", "numpy", "plotly", "properdocs", "pygments", "pymdown-extensions", "pyyaml",
    "resvg-py", "snowballstemmer", "ziamath",
)  # fmt: skip
"""Libraries that affect what a build computes, draws or writes."""


def sources(pages: Mapping[str, str]) -> str:
    """Return `sources.json`: digests and values by name; `pages` are the texts by path."""
    own = own_sources(modules())
    # To a site of other modules alone, this package is a library, known by its version.
    inside = any(name.partition(".")[0] == PACKAGE.name for name in modules()) or not own
    found = {
        "catalog": catalog_values(),
        "code": (_digests("*.py") if inside else {}) | _own_digests(own),
        "data": _digests("*.json") if inside else {},
        "libraries": {
            "python": platform.python_version(),
            **dict(_versions()),
        },
        "pages": {path: digest(text) for path, text in sorted(pages.items())},
    }
    return json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def catalog_files() -> dict[str, Path]:
    """Return the catalogs of the site's modules, or the guide's, by path in their folder."""
    own = {
        path.relative_to(place if place.is_dir() else place.parent).as_posix(): path
        for place in own_sources(modules()).values()
        for path in sorted(data_files(place))
        if path.suffix == ".toml"
    }
    return own or {path.name: path for path in sorted(CATALOG.glob("*.toml"))}


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


def catalog_values() -> dict[str, str]:
    """Return every value of the catalogs as written in their files, by `file/entry/key`."""
    found = {}
    for file, path in catalog_files().items():
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        for name, value in _leaves(tables, file):
            found[name] = value if isinstance(value, str) else json.dumps(value, default=str)
    return found


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}/{key}")
    else:
        yield name, value
