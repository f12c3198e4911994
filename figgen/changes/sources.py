"""What a build was made from: catalog values, files of code, data and text, the libraries."""

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
"""Those that a build computes, draws or writes with."""


def sources(pages: Mapping[str, str]) -> str:
    """`sources.json`: digests and values by name; `pages` are the texts by their path."""
    own = own_sources(modules())
    catalog = catalog_values(CATALOG) if not own else {}
    for place in own.values():
        catalog |= catalog_values(place if place.is_dir() else place.parent)
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


def _versions() -> Iterator[tuple[str, str]]:
    """The libraries that are installed: a site has a theme of its own."""
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            yield name, metadata.version(name)


def _digests(pattern: str) -> dict[str, str]:
    """Every file of the package of one kind, by its path."""
    return {
        path.relative_to(PACKAGE).as_posix(): digest(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob(pattern))
    }


def _own_digests(own: Mapping[str, Path]) -> dict[str, str]:
    """Every source of the site's modules, by its path from the folder in which they lie."""
    files = (
        (path, [path] if path.is_file() else sorted(path.rglob("*.py"))) for path in own.values()
    )
    return {
        file.relative_to(root.parent).as_posix(): digest(file.read_text(encoding="utf-8"))
        for root, found in files
        for file in found
    }


def catalog_values(folder: Path) -> dict[str, str]:
    """Every value of the catalog as its file writes it, by `file/entry/key`."""
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
