"""Which source files changed, which modules depend on them, and how to reload those.

The followed files are those of this package and of the site's subject. A module depends on
everything that it imports, wherever the import stands, and on the data files that it names. The
registry loads figures by name, which doesn't count as a dependency: loading only asks them to
register.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from traceback import extract_tb
from typing import Any

from figgen.cache import digest
from figgen.errors import InputError, PlacedError, closest
from figgen.subject import modules, subject

PACKAGE = Path(__file__).parents[1]
DATA = (".toml", ".json")
ASIDE = ("figgen.agreement", "figgen.search", "figgen.changes", "figgen.prose")
"""Rooms of the press that don't affect what a page looks like."""
KEPT = ("figgen.serving", "figgen.lookups", "figgen.subject", "figgen.plugin")
"""Modules that hold the server's state: they load once, and editing one takes a restart."""

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)"
    r"|import[ \t]+(\w[\w., \t]*))",
    re.M,
)
_WORD = re.compile(r"[\w-][\w.-]*")
INSTALLED = ("site-packages", "dist-packages")


def own_sources(names: Iterable[str]) -> dict[str, Path]:
    """Return the folder or file of each top-level module in `names` outside this package.

    Modules that such a module imports from its own folder are included too, unless that folder is
    where all packages are installed.
    """
    found: dict[str, Path] = {}
    todo = [name.partition(".")[0] for name in names]
    while todo:
        name = todo.pop()
        path = _place(name) if name not in found and name != PACKAGE.name else None
        if path is None:
            continue
        found[name] = path
        if path.parent.name not in INSTALLED:
            sources = path.rglob("*.py") if path.is_dir() else [path]
            texts = [source.read_text(encoding="utf-8", errors="replace") for source in sources]
            tops = {module.partition(".")[0] for text in texts for module, _ in _imports(text)}
            todo += [top for top in sorted(tops - {""}) if _lies_in(path.parent, top)]
    return found


def watched_paths(names: Iterable[str]) -> list[Path]:
    """Return the sources of the site's own modules, and the data files of single-file modules."""
    own = own_sources(names).values()
    return [*own, *sorted({data for path in own if path.is_file() for data in data_files(path)})]


def data_files(module: Path) -> list[Path]:
    """Return the data files of a module.

    A package's are all in its folder; a single file's are those beside it, and those in subfolders
    if its text names the file and the folder.
    """
    if module.is_dir():
        return [path for path in module.rglob("*") if path.suffix in DATA]
    words = set(_WORD.findall(module.read_text(encoding="utf-8", errors="replace")))
    found, todo = list[Path](), [module.parent]
    while todo:
        folder = todo.pop()
        inside = [p for p in folder.iterdir() if folder == module.parent or p.name in words]
        found += [path for path in inside if path.suffix in DATA]
        todo += [p for p in inside if p.name in words and p.is_dir() and not p.is_symlink()]
    return found


def _place(name: str) -> Path | None:
    """Return a package's folder or a module's file, or None if there is no such module."""
    spec = find_spec(name)
    if spec and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(spec.origin) if spec and spec.has_location and spec.origin else None


def _inside(folder: str) -> Iterator[str]:
    """Yield every source and data file in a folder and its subfolders."""
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _inside(entry.path)
            elif entry.name.endswith((".py", *DATA)):
                yield entry.path


def _lies_in(folder: Path, name: str) -> bool:
    return (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file()


@dataclass(kw_only=True)
class SourceCode:
    """The sources as of the last look; `version` counts the changes.

    `root` is the folder of this package; `own` maps the names of the subject's modules to their
    places.
    """

    root: Path = PACKAGE
    own: Mapping[str, Path] = field(default_factory=dict)
    version: int = 0
    _stamps: dict[str, tuple[int, int]] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)
    _packages: set[str] = field(default_factory=set)
    _needed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _closures: dict[str, frozenset[str]] = field(default_factory=dict)
    _fingerprints: dict[str, str] = field(default_factory=dict)

    def look(self) -> set[str]:
        """Return modules and data files that changed, appeared or vanished since the last look."""
        changed = set()
        self.own = own_sources(modules()) if self.root == PACKAGE else {}
        there = {path: _stamp(path) for path in self._files()}
        for path in self._stamps.keys() - there.keys():
            name = self._name(Path(path))
            self._texts.pop(name, None)
            self._digests.pop(name, None)
            changed.add(name)
        for path, stamp in there.items():
            if self._stamps.get(path) == stamp:
                continue
            name = self._name(Path(path))
            text = Path(path).read_text(encoding="utf-8", errors="replace")
            if self._texts.get(name) != text:
                self._texts[name], self._digests[name] = text, digest(text)
                changed.add(name)
        if there.keys() != self._stamps.keys():
            self._needed.clear()
            inits = (path for path in there if path.endswith(f"{os.sep}__init__.py"))
            self._packages = {self._name(Path(path)) for path in inits}
        self._stamps = there
        if changed:
            self.version += 1
            for name in changed:
                self._needed.pop(name, None)
            self._closures.clear()
            self._fingerprints.clear()
        return changed

    def knows(self, module: str) -> bool:
        """Return whether changes of a module are followed."""
        return module.partition(".")[0] in {PACKAGE.name, *self.own}

    def closure(self, module: str) -> frozenset[str]:
        """Return a module and everything that it depends on, data files by their names."""
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
        """Return a digest of a module and its dependencies, catalog entries left out."""
        if module not in self._fingerprints:
            entries = {name for name in self._needs(subject().entries) if name.endswith(DATA)}
            parts = (self._digests[name] for name in sorted(self.closure(module) - entries))
            self._fingerprints[module] = digest("\0".join(parts))
        return self._fingerprints[module]

    def entries(self) -> set[str]:
        """Return the data files that are tracked entry by entry and that no other code names."""
        tables = subject().entries
        beside = self._texts.keys() - self.closure(tables)
        others = {need for name in beside for need in self._needs(name)}
        return {name for name in self._needs(tables) if name.endswith(DATA)} - others

    def everything(self) -> str:
        """Return a digest of all source and data files."""
        return digest("\0".join(f"{name}\0{self._digests[name]}" for name in sorted(self._texts)))

    def shell(self) -> str:
        """Return a digest of the code that turns values into pages, whatever the values are."""
        if "" not in self._fingerprints:
            aside = (*subject().rooms, *ASIDE, *self.own)
            shell = (
                text
                for name, text in sorted(self._digests.items())
                if not name.startswith(aside) and not name.endswith(DATA)
            )
            self._fingerprints[""] = digest("\0".join(shell))
        return self._fingerprints[""]

    def beneath_figures(self) -> str:
        """Return a digest of all data and of all code but the figures, on which nothing depends."""
        key = "beneath figures"
        if key not in self._fingerprints:
            figures = subject().figures or "."
            parts = (
                f"{name}\0{text}"
                for name, text in sorted(self._digests.items())
                if not f"{name}.".startswith(f"{figures}.")
            )
            self._fingerprints[key] = digest("\0".join(parts))
        return self._fingerprints[key]

    def dependents(self, changed: Iterable[str]) -> set[str]:
        """Return the changed modules and all modules that depend on them."""
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

    def _files(self) -> Iterator[str]:
        """Yield every source and data file."""
        for root in (self.root, *self.own.values()):
            yield from _inside(str(root)) if root.is_dir() else map(str, (root, *data_files(root)))

    def _name(self, path: Path) -> str:
        """Return a module's dotted name, or a data file's path with its package in front."""
        text = str(path)
        roots = (*self.own.values(), self.root)
        root = next((r for r in roots if text == str(r) or text.startswith(f"{r}{os.sep}")), None)
        if root is None or root.suffix == ".py":
            return path.stem if path.suffix == ".py" else f"./{_beside(path, self.own.values())}"
        inside = text[len(str(root)) + 1 :].split(os.sep)
        if not text.endswith(".py"):
            return "/".join(inside if root == self.root else (root.name, *inside))
        return ".".join((root.name, *inside)).removesuffix(".py").removesuffix(".__init__")

    def _absolute(self, base: str, module: str) -> str:
        """Resolve a relative import to the absolute name of the module that it imports from."""
        inside = base.lstrip(".")
        if inside == base:
            return base
        up = len(base) - len(inside) - (module in self._packages)
        package = module.split(".")[: module.count(".") + 1 - up]
        return ".".join(filter(None, (*package, inside)))

    def _needs(self, name: str) -> tuple[str, ...]:
        """Return the modules and data files that a module names; data files name none."""
        if name not in self._needed:
            text = "" if name.endswith(DATA) else self._texts.get(name, "")
            modules = (
                f"{base}.{own}" if f"{base}.{own}" in self._texts else base
                for base, own in _imports(text)
                for base in [self._absolute(base, name)]
            )
            data = (d for d in self._texts if d.endswith(DATA) and _names(d, text))
            self._needed[name] = tuple(sorted({*modules, *data}))
        return self._needed[name]


def last_place(error: BaseException) -> tuple[str, int] | None:
    """Return file and line of the innermost followed source in an error's traceback, or None.

    The site's own modules come before this package, which they may have called in a wrong way.
    """
    own = list(own_sources(modules()).values())
    return _innermost(error, own) or _innermost(error, [PACKAGE])


def own_place(error: BaseException) -> str:
    """Return `heat.py:12: ` for the innermost line of the site's own modules, else nothing."""
    found = _innermost(error, list(own_sources(modules()).values()))
    return f"{found[0]}:{found[1]}: " if found else ""


def own_fault(error: BaseException) -> str:
    """Return what is wrong in the site's own modules, with file and line; "" if it isn't there.

    A circle of imports is named wherever it is.
    """
    if circle := import_circle(error):
        return circle
    place = own_place(error)
    if not place and isinstance(error, ModuleNotFoundError) and error.name in modules():
        return _missing(error.name)
    if isinstance(error, SyntaxError) and error.filename:
        path = Path(error.filename)
        own = own_sources(modules()).values()
        if any(root == path or root in path.parents for root in own):
            code = f": {error.text.strip()}" if error.text else ""
            return f"{path.name}:{error.lineno}: {error.msg}{code}"
    return f"{place}{type(error).__name__}: {error}" if place else ""


def _missing(module: str) -> str:
    """Return what to say of a module that the configuration names and that isn't there."""
    from figgen.project import site_of

    site = site_of(Path.cwd())
    where = f"{site.line_of(module)}: " if site else ""
    own = [path.stem for path in site.folder.glob("*.py")] if site else []
    near = [f" (did you mean {' or '.join(found)}?)" for found in [closest(module, own)] if found]
    what = f"there is no {module}.py in this folder, and no such package installed"
    return f"{where}modules: {what}{''.join(near)}"


def import_circle(error: BaseException) -> str:
    """Return the modules that import each other in a circle, each with its line; "" for none."""
    if not isinstance(error, ImportError) or "partially initialized" not in str(error):
        return ""
    frames = [frame for frame in extract_tb(error.__traceback__) if frame.name == "<module>"]
    begin = next((at for at, frame in enumerate(frames) if frame.filename == error.path), None)
    if begin is None:
        return ""
    roots = [PACKAGE, *own_sources(modules()).values()]
    steps = [f"{_relative(frame.filename, roots)}:{frame.lineno}" for frame in frames[begin:]]
    back = _relative(frames[begin].filename, roots)
    return (
        f"circle of imports: {' → '.join([*steps, back])}; "
        "move what both sides need into a module that imports neither"
    )


def in_place(error: InputError) -> list[InputError]:
    """Return each of an error's mistakes, with the line of the site's modules where it arose."""
    place = own_place(error)
    return [
        one if isinstance(one, PlacedError) else PlacedError(f"{place}{one}") for one in error.all
    ]


def _relative(filename: str, roots: Sequence[Path]) -> str:
    path = Path(filename)
    root = next((one for one in roots if one == path or one in path.parents), path)
    return path.relative_to(root.parent).as_posix()


def _innermost(error: BaseException, roots: Sequence[Path]) -> tuple[str, int] | None:
    for frame in reversed(extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        for root in roots:
            if path == root or root in path.parents:
                return path.relative_to(root.parent).as_posix(), frame.lineno or 1
    return None


def _beside(data: Path, modules: Iterable[Path]) -> str:
    """Return the path of a data file relative to the folder of the module that it belongs to."""
    folders = {place.parent for place in modules if place.suffix == ".py"}
    return data.relative_to(next(up for up in data.parents if up in folders)).as_posix()


def _stamp(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=1024)
def _imports(text: str) -> tuple[tuple[str, str], ...]:
    """Yield (module, name) for each import in a source that may be one of ours."""
    found = []
    for base, names, plain in _IMPORT.findall(text):
        if plain:
            found += [(name.split(" as ")[0].strip(), "") for name in plain.split(",")]
        parts = re.sub(r"#[^\n]*", "", names).strip("() \t\n").split(",")
        found += [(base, part.split(" as ")[0].strip()) for part in parts if part.strip()]
    return tuple(found)


def _names(data: str, text: str) -> bool:
    """Return whether a source names a data file."""
    return f'{data.rpartition("/")[2]}"' in text


def reload(changed: Iterable[str]) -> None:
    """Reload those of the modules that are loaded; raises whatever their import raises.

    New registrations replace old ones in place, so that the order of everything stays the same.
    """
    figures, formulas = subject().figures, subject().formulas
    gone = {name for name in changed if name in sys.modules and not name.startswith(KEPT)}
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
    subject()  # which imports what is in use
    if registry := sys.modules.get("figgen.registry"):
        _forget_removed(registry.FIGURES)
    if definition := sys.modules.get("figgen.equations.definition"):
        _forget_removed(definition.FORMULAS)


def _forget_removed(entries: dict[str, Any]) -> None:
    """Remove the registrations that a reloaded module no longer makes."""
    for name, entry in list(entries.items()):
        function = entry.function
        if vars(sys.modules.get(function.__module__, sys)).get(function.__name__) is not function:
            del entries[name]
