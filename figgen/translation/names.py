"""The names that a statement uses and assigns to."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
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
    """Names that a statement assigns to, and names that it uses."""

    def __init__(self) -> None:
        self.assigned: set[str] = set()
        self.all: dict[str, int] = {}

    def add(self, others: Names, hidden: frozenset[str] = frozenset()) -> None:
        """Add the names of a child node, except the hidden ones."""
        for name in others.all.keys() - hidden:
            self.all[name] = self.all.get(name, 0) + others.all[name]
        self.assigned |= others.assigned - hidden


_NO_PARTS = frozenset({
    "arg", "attr", "ctx", "id", "is_async", "kind", "kwd_attrs", "level", "module", "name", "names",
    "op", "ops", "rest", "simple", "type_comment",
})  # fmt: skip
"""Fields with operators, contexts and strings: half of a tree's nodes, none of which is a name."""


_PARTS: dict[type, list[str]] = {
    kind: [name for name in kind._fields if name not in _NO_PARTS]
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}


def parts_of(node: ast.AST) -> list[ast.AST]:
    """Return the children of a node, without operators and contexts."""
    found: list[ast.AST] = []
    for name in _PARTS[type(node)]:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [one for one in value if isinstance(one, ast.AST)]
    return found


def within(nodes: Iterable[ast.AST]) -> list[ast.AST]:
    """Return these nodes and all their descendants, without operators and contexts."""
    found = list(nodes)
    for node in found:  # which grows
        found += parts_of(node)
    return found


@lru_cache(maxsize=65536)
def names_of(node: ast.AST) -> Names:
    found = Names()
    _gather(node, frozenset(), found)
    return found


def _gather(node: ast.AST, hidden: frozenset[str], found: Names) -> None:
    """Collect the names of a node, except names local to its comprehensions and functions."""
    match node:
        case ast.Name(id=name, ctx=context):
            if name not in hidden:
                found.all[name] = found.all.get(name, 0) + 1
                if isinstance(context, ast.Store):
                    found.assigned.add(name)
            return
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            targets = within(loop.target for loop in node.generators)
            hidden = hidden | {n.id for n in targets if isinstance(n, ast.Name)}
        case ast.Lambda(args=arguments):
            hidden = hidden | {one.arg for one in arguments.args}
        case ast.FunctionDef():
            own = {one.arg for one in arguments_of(node)}
            outer = {
                name for one in node.body if isinstance(one, ast.Nonlocal) for name in one.names
            }
            hidden = hidden | own | (stores_of(within(node.body)).keys() - outer)
    for child in parts_of(node):
        if isinstance(child, ast.stmt):
            found.add(names_of(child), hidden)
        else:
            _gather(child, hidden, found)


def count_of(node: ast.AST, name: str) -> int:
    return names_of(node).all.get(name, 0)


def uses_of(node: ast.FunctionDef) -> dict[str, int]:
    found = Names()
    for statement in node.body:
        found.add(names_of(statement))
    return found.all


def stores_of(nodes: Iterable[ast.AST]) -> dict[str, int]:
    """Count how often each name is assigned to by these nodes."""
    found: dict[str, int] = {}
    for one in nodes:
        match one:
            case ast.Name(id=name, ctx=ast.Store()) | ast.AugAssign(target=ast.Name(id=name)):
                found[name] = found.get(name, 0) + 1
    return found


def generates(node: ast.FunctionDef) -> bool:
    """Return whether a function itself yields, ignoring functions nested in it."""
    found: list[ast.AST] = list(node.body)
    for one in found:  # which grows
        if isinstance(one, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(one, ast.FunctionDef | ast.Lambda):
            found += parts_of(one)
    return False


def declares(node: ast.stmt, name: str) -> bool:
    """Return whether a statement can be printed as the declaration of a name."""
    targets: list[ast.expr] = []
    match node:
        case ast.Assign(targets=[one]):
            targets = [one]
        case ast.AnnAssign(target=one, value=ast.expr()) | ast.For(target=one):
            targets = [one]
    if isinstance(node, ast.For):
        return any(isinstance(n, ast.Name) and n.id == name for n in within([node.target]))
    return any(
        isinstance(inner, ast.Name) and inner.id == name and isinstance(inner.ctx, ast.Store)
        for inner in within(targets)
    )


def independent(parts: Sequence[ast.expr], values: Sequence[ast.expr]) -> bool:
    """Return whether a tuple assignment may be split into one assignment per name."""
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    if len(names) < len(parts) or any(isinstance(one, ast.Starred) for one in values):
        return False
    return not any(isinstance(one, ast.Name) and one.id in names for one in within(values))


def leaves(nodes: Sequence[ast.stmt]) -> bool:
    """Return whether control never passes the end of a block."""
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
