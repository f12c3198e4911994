"""The definitions of a source, and what each names: a function depends on what it reaches by names.

A source is read this way if nothing but imports, functions, classes and assigned names stand at its
top level. Importing it then changes nothing elsewhere, except that decorators register functions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

Name = tuple[str, str]
"""A name and the attribute asked of it, such as ("load", "models"); "" for the thing itself."""

_UNTOLD = re.compile(r"^\s*import\s[^#\n]*\.|\bimport\s*\(?\s*\*", re.M)


@dataclass(slots=True, kw_only=True)
class NamedSource:
    """The source of one name; `names` are those in it, `imports` what it imports by itself."""

    text: str = ""
    names: set[Name] = field(default_factory=set)
    imports: dict[str, Name] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """The definitions of a source by name, and module and name of each import at its top level."""

    own: dict[str, NamedSource]
    imports: dict[str, Name]


@lru_cache(maxsize=4096)
def definitions(source: str) -> Definitions | None:
    """Return what a source defines; None if its top level does more, or if it doesn't parse.

    None too if it imports names that its own text doesn't tell: `import a.b` or all of a module.
    """
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return None
    if _UNTOLD.search(source):
        return None
    lines, own = source.splitlines(), dict[str, NamedSource]()
    imports = dict[str, Name]()
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= _imported(node)
        elif isinstance(node, ast.If) and _is_for_types(node):
            for one in node.body:
                imports |= _imported(one)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            named = list(_named(node))
            if not named or None in named:
                return None
            for name in named:
                _add(own.setdefault(str(name), NamedSource()), node, lines)
    return Definitions(own=own, imports=imports)


def _is_for_types(node: ast.If) -> bool:
    return ast.unparse(node.test) == "TYPE_CHECKING" and not node.orelse


def _named(node: ast.stmt) -> Iterator[str | None]:
    """Yield the names that a statement defines, None for whatever else it changes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                yield one.id if isinstance(one, ast.Name) else None


def _add(found: NamedSource, node: ast.stmt, lines: list[str]) -> None:
    """Add a statement to the definition of its name."""
    above = [decorator.lineno for decorator in getattr(node, "decorator_list", ())]
    text = lines[min([node.lineno, *above]) - 1 : node.end_lineno]
    found.text = "\n".join(filter(None, (found.text, *text)))
    asked = set[int]()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name):
            found.names.add((inner.value.id, inner.attr))
            asked.add(id(inner.value))
        elif isinstance(inner, ast.Import | ast.ImportFrom):
            found.imports |= _imported(inner)
    found.names |= {
        (inner.id, "")
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and id(inner) not in asked
    }


def _imported(node: ast.stmt) -> dict[str, Name]:
    """Return module and name of what an import brings, by its name here."""
    if isinstance(node, ast.ImportFrom):
        base = "." * node.level + (node.module or "")
        return {one.asname or one.name: (base, one.name) for one in node.names}
    names: Iterable[ast.alias] = node.names if isinstance(node, ast.Import) else ()
    return {one.asname or one.name.partition(".")[0]: (one.name, "") for one in names}
