"""Which names a statement uses and assigns to, and where a function's names begin."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

INDENT = "  "


def arguments_of(node: ast.FunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def defaults_of(node: ast.FunctionDef) -> dict[str, ast.expr]:
    given = [*node.args.posonlyargs, *node.args.args]
    found = {
        one.arg: value
        for one, value in zip(reversed(given), reversed(node.args.defaults), strict=False)
    }
    named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    return found | {one.arg: value for one, value in named if value is not None}


def indented(lines: Sequence[str]) -> list[str]:
    return [INDENT + line for line in lines]


class Names:
    """Names that a statement assigns to, and those that it uses."""

    def __init__(self) -> None:
        self.assigned: set[str] = set()
        self.all: dict[str, int] = {}


@lru_cache(maxsize=65536)
def names_of(node: ast.AST) -> Names:
    found = Names()
    _gather(node, frozenset(), found)
    return found


def _gather(node: ast.AST, hidden: frozenset[str], found: Names) -> None:
    """Note the names of a node but those that comprehensions and functions within it have."""
    match node:
        case ast.Name(id=name, ctx=context):
            if name not in hidden:
                found.all[name] = found.all.get(name, 0) + 1
                if isinstance(context, ast.Store):
                    found.assigned.add(name)
            return
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            own = {
                n.id
                for loop in node.generators
                for n in ast.walk(loop.target)
                if isinstance(n, ast.Name)
            }
            hidden = hidden | own
        case ast.Lambda(args=arguments):
            hidden = hidden | {one.arg for one in arguments.args}
        case ast.FunctionDef():
            own = {one.arg for one in arguments_of(node)}
            outer = {
                name for one in node.body if isinstance(one, ast.Nonlocal) for name in one.names
            }
            stored = {
                n.id
                for one in node.body
                for n in ast.walk(one)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            }
            hidden = hidden | own | (stored - outer)
    for child in ast.iter_child_nodes(node):
        _gather(child, hidden, found)


def count_of(node: ast.AST, name: str) -> int:
    return names_of(node).all.get(name, 0)


def uses_of(node: ast.FunctionDef) -> dict[str, int]:
    found = Names()
    for statement in node.body:
        _gather(statement, frozenset(), found)
    return found.all


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement without those of functions within it."""
    yield node
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        return
    for child in ast.iter_child_nodes(node):
        yield from walk(child)


def stores_of(node: ast.FunctionDef) -> dict[str, int]:
    """How often each name is assigned to."""
    found: dict[str, int] = {}
    for statement in node.body:
        for one in ast.walk(statement):
            match one:
                case ast.Name(id=name, ctx=ast.Store()):
                    found[name] = found.get(name, 0) + 1
                case ast.AugAssign(target=ast.Name(id=name)):
                    found[name] = found.get(name, 0) + 1
    return found


def generates(node: ast.FunctionDef) -> bool:
    return any(
        isinstance(one, ast.Yield | ast.YieldFrom)
        for statement in node.body
        for one in walk(statement)
    )


def declares(node: ast.stmt, name: str) -> bool:
    """Whether a statement may declare a name itself."""
    targets: list[ast.expr] = []
    match node:
        case ast.Assign(targets=[one]):
            targets = [one]
        case ast.AnnAssign(target=one, value=ast.expr()) | ast.For(target=one):
            targets = [one]
    if isinstance(node, ast.For):
        inside = sum(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node.target))
        return bool(inside)
    return any(
        isinstance(inner, ast.Name) and inner.id == name and isinstance(inner.ctx, ast.Store)
        for target in targets
        for inner in ast.walk(target)
    )


def independent(parts: Sequence[ast.expr], values: Sequence[ast.expr]) -> bool:
    """Whether values may be assigned one after the other."""
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    if len(names) < len(parts) or any(isinstance(one, ast.Starred) for one in values):
        return False
    return not any(
        isinstance(inner, ast.Name) and inner.id in names
        for value in values
        for inner in ast.walk(value)
    )


def leaves(nodes: Sequence[ast.stmt]) -> bool:
    """Whether a block never goes on behind its end."""
    last = nodes[-1]
    if isinstance(last, ast.If) and last.orelse:
        return leaves(last.body) and leaves(last.orelse)
    return isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break)


def handled(node: ast.expr | None) -> set[str]:
    match node:
        case ast.Name(id=name):
            return {name}
        case ast.Tuple(elts=parts):
            return {name for part in parts for name in handled(part)}
    return {"everything"}
