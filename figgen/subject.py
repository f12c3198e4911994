"""The door through which a site's subject comes to the press.

The press is every room that turns pages and figures into a site.  It imports no figure, no formula
and no catalog; what it needs of them is the `Subject` of a module whose name is given to `use`.
The parts of a subject are functions and names of modules, so that nothing of it is imported before
it is asked for, and so that a server can load changed code anew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeAlias

Keep: TypeAlias = Callable[[str, str, Callable[[], Any]], Any]
"""Gives what a request made the last time, or makes it: (request, module of the code, make)."""

Terms: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The entries of a glossary by their names."""

Expand: TypeAlias = Callable[[dict[str, object], Mapping[str, object], Any], dict[str, object]]
"""Puts the inputs of a number in other words: (inputs, inputs as written, the key's value)."""


def made(_: str, __: str, make: Callable[[], Any]) -> Any:
    """Keep nothing."""
    return make()


def nowhere(_: str) -> bool:
    """Exclude no page."""
    return False


class GeneratedPages(Protocol):
    """Makes the pages that nobody writes, as Markdown by path, from the folder of the others.

    `keep` may answer for what follows from code and catalog alone; pages that are `excluded`, by
    their folder, may be left out.
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
    """What the live tools of a site are made from.

    `data` is JSON by the name under which a tool's page asks for it.  `printed` makes scripts by
    path, given the formulas that other scripts import from the script called `formulas`;
    `imported` chooses those of them that tools import, as they are to be joined.  `models` prints
    what given scripts import of the subject's own code.  `later` names every tool that is joined
    into one file, with the parts that it loads later.
    """

    data: Mapping[str, Callable[[], str]]
    formulas: str
    printed: Callable[[Iterable[str]], dict[str, str]]
    imported: Callable[[Mapping[str, str | bytes]], dict[str, str]]
    models: Callable[[Mapping[str, str]], dict[str, str]]
    later: Mapping[str, tuple[str, ...]]


def _no_pages(
    docs: Path | None,
    terms: Terms,
    keep: Keep = made,
    excluded: Callable[[str], bool] = nowhere,
) -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """What a site is about.  Each part may be left out; two subjects are equal only if the same."""

    figures: str = ""
    """The module whose import registers all figures."""
    formulas: str = ""
    """The module whose import registers all formulas."""
    entries: str = ""
    """The module of tables (`figgen.lookups`) whose data files are followed entry by entry."""
    rooms: tuple[str, ...] = ()
    """Packages that compute: an edit of them changes pages by the values that they give alone."""

    lookups: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    """What an inline value may call beside formulas, by name."""
    ranges: Mapping[str, str] = field(default_factory=dict)
    """Fields of an entry that are bare numbers, with the field that knows the number's range."""
    preset_title: Callable[[str], str] = str
    """The title of a preset, which labels its tab of a figure."""

    pages: GeneratedPages = _no_pages
    pages_ahead: Callable[[Keep], object] = lambda _: None
    """Makes those generated pages that another process can make meanwhile."""
    tools: Callable[[], ToolScripts | None] = lambda: None

    quantities: Path | None = None
    """The table of quantities to which the site comes in several ways (`figgen.agreement`)."""
    expansions: Callable[[], Mapping[str, Expand]] = dict
    """The keys of that table that put inputs in other words, in the order of their use."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """Names that the names of values write otherwise."""

    premises: Callable[[str], Iterable[tuple[float, str]]] = lambda _: ()
    """Quantities, in SI with their units, that a page may type once it has named their owner."""
    same_symbols: tuple[frozenset[str], ...] = ()
    """Arguments that share a symbol because they are one thing under several names."""
    counted: tuple[str, ...] = ()
    """Plural words of what is counted: a large number before one of them is a quantity."""
    names: str = ""
    """A pattern of names that contain a quantity without stating one."""


_NOTHING = Subject()
_modules: list[str] = []


def use(*modules: str) -> None:
    """Print what these modules are about: importing them registers it, one may have a `SUBJECT`."""
    _modules[:] = modules


def modules() -> tuple[str, ...]:
    """The modules in use, by name."""
    return tuple(_modules)


def subject() -> Subject:
    """The subject of this site as its module has it now; an empty one where none is in use."""
    about = _NOTHING
    for name in _modules:
        module = sys.modules.get(name) or import_module(name)
        about = getattr(module, "SUBJECT", about)
    return about
