"""Which files of the package changed, which modules follow from them, and how to load those anew.

A module depends on what it imports, wherever in it the import stands, and on the data files that it
names.  That the registry loads figures by name is no dependency: it asks them to register.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from figgen.cache import digest
from figgen.subject import subject

PACKAGE = Path(__file__).parents[1]
DATA = (".toml", ".json")
ASIDE = ("figgen.agreement", "figgen.search", "figgen.changes", "figgen.prose")
"""Rooms of the press that have nothing to do with how a page looks."""
KEPT = ("figgen.serving", "figgen.lookups", "figgen.subject")
"""What remembers is loaded once; who works on it starts the server again."""

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(figgen[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)"
    r"|import[ \t]+(figgen[\w., \t]*))",
    re.M,
)


@dataclass(kw_only=True)
class SourceCode:
    """The sources of the package as they were at the last look; `version` counts the changes."""

    root: Path = PACKAGE
    version: int = 0
    _stamps: dict[Path, tuple[int, int]] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)
    _needed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _closures: dict[str, frozenset[str]] = field(default_factory=dict)
    _fingerprints: dict[str, str] = field(default_factory=dict)

    def look(self) -> set[str]:
        """The modules and data files that changed since the last look, those that came or went."""
        changed = set()
        there = {path: _stamp(path) for path in self._files()}
        for path in self._stamps.keys() - there.keys():
            self._texts.pop(self._name(path), None)
            changed.add(self._name(path))
        for path, stamp in there.items():
            if self._stamps.get(path) == stamp:
                continue
            name, text = self._name(path), path.read_text(encoding="utf-8", errors="replace")
            if self._texts.get(name) != text:
                self._texts[name] = text
                changed.add(name)
        if there.keys() != self._stamps.keys():
            self._needed.clear()
        self._stamps = there
        if changed:
            self.version += 1
            for name in changed:
                self._needed.pop(name, None)
            self._closures.clear()
            self._fingerprints.clear()
        return changed

    def closure(self, module: str) -> frozenset[str]:
        """The module and all that it depends on, data files by their names."""
        if module not in self._closures:
            found, todo = set(), [module]
            while todo:
                name = todo.pop()
                if name not in found and name in self._texts:
                    found.add(name)
                    todo += self._needs(name)
            self._closures[module] = frozenset(found)
        return self._closures[module]

    def fingerprint(self, module: str) -> str:
        """Changes when the module or what it depends on does, entries of the catalog left out."""
        if module not in self._fingerprints:
            entries = {name for name in self._needs(subject().entries) if name.endswith(DATA)}
            parts = (self._texts[name] for name in sorted(self.closure(module) - entries))
            self._fingerprints[module] = digest("\0".join(parts))
        return self._fingerprints[module]

    def entries(self) -> set[str]:
        """The data files that are followed entry by entry, and that nothing else names."""
        tables = subject().entries
        beside = self._texts.keys() - self.closure(tables)
        others = {need for name in beside for need in self._needs(name)}
        return {name for name in self._needs(tables) if name.endswith(DATA)} - others

    def everything(self) -> str:
        """Changes when any source or data file does."""
        return digest("\0".join(f"{name}\0{self._texts[name]}" for name in sorted(self._texts)))

    def shell(self) -> str:
        """Changes when the code changes that turns values into pages, whatever they are."""
        if "" not in self._fingerprints:
            aside = (*subject().rooms, *ASIDE)
            shell = (
                text
                for name, text in sorted(self._texts.items())
                if not name.startswith(aside) and not name.endswith(DATA)
            )
            self._fingerprints[""] = digest("\0".join(shell))
        return self._fingerprints[""]

    def beneath_figures(self, *, catalog: bool) -> str:
        """The digest of all code but the figures, which nothing else depends on, and of all data.

        Without `catalog`, entries of the catalog are left out: no module reads one when it is
        imported.
        """
        key = f"beneath figures {catalog}"
        if key not in self._fingerprints:
            entries = () if catalog else self.entries()
            figures = subject().figures or "."
            parts = (
                f"{name}\0{text}"
                for name, text in sorted(self._texts.items())
                if name not in entries and not f"{name}.".startswith(f"{figures}.")
            )
            self._fingerprints[key] = digest("\0".join(parts))
        return self._fingerprints[key]

    def dependents(self, changed: Iterable[str]) -> set[str]:
        """These and the modules that depend on any of them."""
        importers: dict[str, set[str]] = {}
        for name in self._texts:
            for needed in self._needs(name):
                importers.setdefault(needed, set()).add(name)
        found: set[str] = set()
        todo = list(changed)
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo += importers.get(name, ())
        return found

    def _files(self) -> Iterator[Path]:
        for path in self.root.rglob("*"):
            if path.suffix in (".py", *DATA) and "__pycache__" not in path.parts:
                yield path

    def _name(self, path: Path) -> str:
        inside = path.relative_to(self.root)
        if path.suffix != ".py":
            return inside.as_posix()
        return ".".join((self.root.name, *inside.with_suffix("").parts)).removesuffix(".__init__")

    def _needs(self, name: str) -> tuple[str, ...]:
        """The modules and data files that a module names; a data file names none."""
        if name not in self._needed:
            text = "" if name.endswith(DATA) else self._texts.get(name, "")
            modules = (
                f"{base}.{own}" if f"{base}.{own}" in self._texts else base
                for base, own in _imports(text)
            )
            data = (d for d in self._texts if d.endswith(DATA) and _names(d, text))
            self._needed[name] = tuple(sorted({*modules, *data}))
        return self._needed[name]


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=1024)
def _imports(text: str) -> tuple[tuple[str, str], ...]:
    """(module, name) of everything of ours that a source imports."""
    found = []
    for base, names, plain in _IMPORT.findall(text):
        if plain:
            found += [(name.split(" as ")[0].strip(), "") for name in plain.split(",")]
        parts = re.sub(r"#[^\n]*", "", names).strip("() \t\n").split(",")
        found += [(base, part.split(" as ")[0].strip()) for part in parts if part.strip()]
    return tuple(found)


def _names(data: str, text: str) -> bool:
    """Whether a source names a data file."""
    return f'{data.rpartition("/")[2]}"' in text


def reload(modules: Iterable[str]) -> None:
    """Load modules anew that are loaded, and what they register; raises what their import raises.

    What they registered is replaced in its place, so that the order of everything stays.
    """
    figures, formulas = subject().figures, subject().formulas
    gone = {name for name in modules if name in sys.modules and not name.startswith(KEPT)}
    if figures and any(name.startswith(f"{figures}.") for name in gone):
        gone |= {figures} & sys.modules.keys()  # it imports whatever is in its folder
    for name in gone:
        package, _, own = name.rpartition(".")
        if package in sys.modules:
            vars(sys.modules[package]).pop(own, None)
        del sys.modules[name]
    for name in (formulas, figures):
        if name in gone:
            import_module(name)
    if registry := sys.modules.get("figgen.registry"):
        _forget_removed(registry.FIGURES)
    if definition := sys.modules.get("figgen.equations.definition"):
        _forget_removed(definition.FORMULAS)


def _forget_removed(entries: dict[str, Any]) -> None:
    """Take away what a module registered that does not do so any more."""
    for name, entry in list(entries.items()):
        function = entry.function
        if vars(sys.modules.get(function.__module__, sys)).get(function.__name__) is not function:
            del entries[name]
