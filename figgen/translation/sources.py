"""Modules as syntax trees: their definitions, the meaning of their names and annotations."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from figgen.translation.types import Type, of_hint

PRINTED = (
    *("figgen.models", "figgen.formulas", "figgen.scenarios", "figgen.figures"),
    *("figgen.charts", "figgen.plotting", "figgen.renderers", "figgen.theme"),
    *("figgen.catalog", "figgen.entries.schema"),
    *("figgen.quantity_text", "figgen.quantity_shown", "figgen.quantity_units"),
    *(
        "figgen.equations.tree",
        "figgen.equations.call_data",
        "figgen.equations.opened_data",
    ),
)
"""Rooms and modules whose definitions are printed."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name is defined: in a printed module, or in one that the runtime replaces.

    `name` is empty for a module itself.
    """

    module: str
    name: str

    @property
    def printed(self) -> bool:
        """Whether the definition is printed from Python."""
        return bool(self.name) and is_printed(self.module)

    @property
    def value(self) -> Any:
        """The Python object defined there."""
        module = importlib.import_module(self.module)
        return getattr(module, self.name) if self.name else module

    def __str__(self) -> str:
        return f"{self.module}.{self.name}" if self.name else self.module


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Source:
    """A module that was read: its definitions and imports by name, and its values."""

    module: ModuleType
    path: str
    definitions: Mapping[str, ast.stmt]
    imports: Mapping[str, Place]
    names: Mapping[str, Any]
    hints: dict[str, Type]

    def hint(self, annotation: ast.expr | None) -> Type:
        """Return the type that an annotation means; `any` if there is no annotation."""
        if annotation is None:
            return of_hint(Any)
        match annotation:
            case ast.Name(id=text) | ast.Constant(value=str(text)):
                pass
            case _:
                text = ast.unparse(annotation)
        if text not in self.hints:
            self.hints[text] = of_hint(eval(text, {**self.names}))  # our own source, imported
        return self.hints[text]


def is_printed(module: str) -> bool:
    """Return whether definitions of a module are printed."""
    return f"{module}.".startswith(tuple(f"{room}." for room in PRINTED))


@lru_cache(maxsize=512)
def source_of(name: str) -> Source:
    """Read a module once; `figgen.translation.modules` clears this cache when files change."""
    module = importlib.import_module(name)
    path = str(module.__file__)
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    definitions: dict[str, ast.stmt] = {}
    imports: dict[str, Place] = {}
    names: dict[str, Any] = {}
    for node in _statements(tree):
        match node:
            case ast.FunctionDef(name=defined) | ast.ClassDef(name=defined):
                definitions[defined] = node
            case ast.Assign(targets=targets):
                for target in targets:
                    definitions |= {n.id: node for n in ast.walk(target) if isinstance(n, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=defined)):
                definitions[defined] = node
            case ast.Import(names=aliases):
                for alias in aliases:
                    imports[alias.asname or alias.name] = Place(alias.name, "")
            case ast.ImportFrom(module=str() as origin, names=aliases):
                for alias in aliases:
                    place = _imported(origin, alias.name)
                    imports[alias.asname or alias.name] = place
                    names[alias.asname or alias.name] = place.value
    depth = len(name.split(".")) + ("figgen" in Path(path).parts and not name.startswith("figgen"))
    shown = Path(*Path(path).parts[-depth:]).as_posix()
    return Source(
        module=module,
        path=shown,
        definitions=definitions,
        imports=imports,
        names=names | vars(module),
        hints={},
    )


def _imported(origin: str, name: str) -> Place:
    module = importlib.import_module(origin)
    inner = f"{origin}.{name}"
    if isinstance(getattr(module, name, None), ModuleType):
        return Place(inner, "")
    return Place(origin, name)


def _statements(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements of a module, including those under `if TYPE_CHECKING`."""
    found: list[ast.stmt] = []
    for node in tree.body:
        inner = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        found += node.body if inner and isinstance(node, ast.If) else [node]
    return found


def place_of(module: str, name: str) -> Place | None:
    """Find where a name in a printed module is defined; None if the module has no such name."""
    for _ in range(9):
        source = source_of(module)
        if name in source.definitions:
            return Place(module, name)
        found = source.imports.get(name)
        if found is None:
            return None
        if not found.name or not is_printed(found.module):
            return found
        module, name = found.module, found.name
    return None
