"""The interface between a site's subject and the press.

The press is all packages that turn pages and figures into a site. It imports no figures, formulas
or catalog; it gets them from the `Subject` of a module whose name is passed to `use`. The parts of
a subject are functions and names of modules, so that nothing is imported before it is needed and
a server can reload changed code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeAlias

Keep: TypeAlias = Callable[[str, str, Callable[[], Any]], Any]
"""Returns the cached result of a request, or makes it: (request, module of the code, make)."""

Terms: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The entries of a glossary by name."""

Expand: TypeAlias = Callable[[dict[str, object], Mapping[str, object], Any], dict[str, object]]
"""Rewrites the inputs of a number: (inputs, inputs as written, the key's value)."""


def made(_: str, __: str, make: Callable[[], Any]) -> Any:
    """Call `make` without caching."""
    return make()


def nowhere(_: str) -> bool:
    """Exclude no page."""
    return False


class GeneratedPages(Protocol):
    """Makes the generated pages, as Markdown by path, from the folder of the written ones.

    `keep` may return cached results that depend only on code and catalog; pages whose folder is
    `excluded` may be omitted.
    """

    def __call__(
        self,
        docs: Path | None,
        terms: Terms,
        keep: Keep = made,
        excluded: Callable[[str], bool] = nowhere,
    ) -> dict[str, str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolScripts:
    """The sources of a site's live tools.

    `data` makes JSON by the name that a tool's page requests. `printed` makes scripts by path,
    given the formulas that other scripts import from the script `formulas`; `imported` returns the
    printed scripts that tools import, which are joined with them. `models` prints the parts of
    the subject's code that given scripts import. `later` lists every tool that is joined into one
    file, with the parts that it loads later; a part that ends in "/" is a folder of parts.
    `written` makes the scripts that the build writes.
    """

    data: Mapping[str, Callable[[], str]]
    formulas: str
    printed: Callable[[Iterable[str]], dict[str, str]]
    imported: Callable[[Mapping[str, str | bytes]], dict[str, str]]
    models: Callable[[Mapping[str, str]], dict[str, str]]
    later: Mapping[str, tuple[str, ...]]
    written: Callable[[], dict[str, str]]


def _no_pages(
    docs: Path | None,
    terms: Terms,
    keep: Keep = made,
    excluded: Callable[[str], bool] = nowhere,
) -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """The subject of a site. All parts are optional; subjects are compared by identity."""

    figures: str = ""
    """The module whose import registers all figures."""
    formulas: str = ""
    """The module whose import registers all formulas."""
    entries: str = ""
    """The module of tables (`figgen.lookups`) whose data files are tracked entry by entry."""
    rooms: tuple[str, ...] = ()
    """Packages that compute: editing them affects pages only through computed values."""

    lookups: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    """Functions that an inline value may call besides formulas, by name."""
    ranges: Mapping[str, str] = field(default_factory=dict)
    """Fields of an entry that are bare numbers, each with the field that has its range."""
    preset_title: Callable[[str], str] = str
    """Returns the title of a preset, which labels its tab; a name that it doesn't know is one."""

    glossary: str = "glossary.md"
    """The path of the page of terms, which the press makes unless `pages` does."""
    first_uses: str = ""
    """The folder of pages whose first uses of short names are linked to that page."""
    pages: GeneratedPages = _no_pages
    pages_ahead: Callable[[Keep], object] = lambda _: None
    """Makes the generated pages that a different process can make in parallel."""
    tools: Callable[[], ToolScripts | None] = lambda: None

    quantities: Path | None = None
    """The table of quantities that the site computes in several ways (`figgen.agreement`)."""
    expansions: Callable[[], Mapping[str, Expand]] = dict
    """Keys of that table that rewrite inputs, in order of application."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """Names that are spelled differently in names of values."""

    premises: Callable[[str], Iterable[tuple[float, str]]] = lambda _: ()
    """Returns quantities, in SI with units, that a page may type if it names their owner."""
    same_symbols: tuple[frozenset[str], ...] = ()
    """Arguments that share a symbol because they mean the same thing."""
    counted: tuple[str, ...] = ()
    """Plural nouns before which a large number is a quantity."""
    names: str = ""
    """A pattern of names that contain a quantity without stating one."""


_NOTHING = Subject()
_modules: list[str] = []


def use(*modules: str) -> None:
    """Set the modules of the site: importing them registers its parts, one may have a `SUBJECT`."""
    _modules[:] = modules


def modules() -> tuple[str, ...]:
    """Return the names of the modules in use."""
    return tuple(_modules)


def subject() -> Subject:
    """Return the current subject of the site; an empty one if none is in use."""
    about = _NOTHING
    for name in _modules:
        module = sys.modules.get(name) or import_module(name)
        about = getattr(module, "SUBJECT", about)
    return about


def title_of_preset(name: str) -> str:
    """Return the title of a preset: its name if the subject has no other; "" for no preset."""
    try:
        return subject().preset_title(name) if name else ""
    except (LookupError, ValueError):  # a figure may have presets that no catalog has
        return name
