"""The base of every part of the printer: scopes, type narrowing by tests, literals."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from figgen.translation.code import (
    Code,
    Level,
    identifier,
    is_plain,
    listed,
    quoted,
    refused,
)
from figgen.translation.sources import Place, Source
from figgen.translation.types import (
    ANY,
    BOOL,
    NONE,
    STR,
    Type,
    element,
    kinds,
    of_value,
    union,
    without_none,
)


@dataclass(slots=True, kw_only=True)
class Scope:
    """The names of a function or comprehension with their types, and the enclosing scope."""

    types: dict[str, Type]
    above: Scope | None = None
    shown: dict[str, str] = field(default_factory=dict)
    whole: bool = False

    def find(self, name: str) -> Scope | None:
        """Return the innermost scope that defines a name, or None."""
        scope: Scope | None = self
        while scope is not None and name not in scope.types:
            scope = scope.above
        return scope


class PrinterBase:
    """Prints the expressions of one definition; `uses` lists the definitions it refers to."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.uses: dict[Place, None] = {}
        self.helpers: dict[str, None] = {}
        self.scope: Scope | None = None
        self.owner: type | None = None

    def called(self, node: ast.Call, wanted: Type) -> Code:
        """Print a call; implemented in `figgen.translation.calls`."""
        raise NotImplementedError

    def passed(self, node: ast.expr, wanted: Type) -> Code:
        """Print an argument whose parameter has the type `wanted`."""
        raise NotImplementedError

    def fields(self, cls: type, node: ast.AST) -> list[tuple[str, Type]]:
        """Return the names and types of a record's fields, in order."""
        raise NotImplementedError

    def function(self, node: ast.expr, given: Sequence[Type]) -> Code:
        """Print a function that is passed as an argument."""
        raise NotImplementedError

    def built_in(self, name: str, node: ast.Call, wanted: Type) -> Code:
        """Print a call of a built-in function."""
        raise NotImplementedError

    def member_type(self, cls: type, name: str, node: ast.AST) -> Type:
        """Return the type of an attribute of a record."""
        raise NotImplementedError

    def member(self, cls: type, name: str) -> None:
        """Note that a property or method of a record is used; `*` means all of them."""
        raise NotImplementedError

    def reference(self, place: Place, node: ast.AST) -> Code:
        """Print a reference to a module-level name."""
        raise NotImplementedError

    def note(self, name: str, given: Type) -> None:
        """Remember the type of a local name."""
        raise NotImplementedError

    def no(self, node: ast.AST, why: str) -> Exception:
        """Return the error for a node that cannot be printed."""
        return refused(self.source.path, node, why)

    def help(self, name: str) -> str:
        """Return the name of a runtime function and note that the printed module imports it."""
        self.helpers[name] = None
        return f"${name}"  # not a valid Python name, so that no local name can shadow it

    @contextmanager
    def names(self, types: Mapping[str, Type]) -> Iterator[Scope]:
        """Open a scope within the current one."""
        above = self.scope
        self.scope = Scope(types=dict(types), above=above)
        yield self.scope
        self.scope = above

    @contextmanager
    def narrowed(self, test: ast.expr, holds: bool) -> Iterator[None]:
        """Open a scope with the types that names have where a test holds, or where it fails."""
        found = self.narrowing(test, holds)
        with self.names(found) as scope:
            for name in found:
                around = scope.above.find(name) if scope.above else None
                if around:
                    scope.shown[name] = around.shown.get(name, identifier(name))
            yield

    def narrowing(self, test: ast.expr, holds: bool) -> dict[str, Type]:
        """Return the types of names that a test implies where it holds, or where it fails."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return self.narrowing(inner, not holds)
            case ast.BoolOp(op=ast.And(), values=values) if holds:
                return {k: t for one in values for k, t in self.narrowing(one, True).items()}
            case ast.BoolOp(op=ast.Or(), values=values) if not holds:
                return {k: t for one in values for k, t in self.narrowing(one, False).items()}
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as op],
                comparators=[ast.Constant(value=None)],
            ) if (known := self.local(name)) is not None:  # fmt: skip
                none = isinstance(op, ast.Is) == holds
                return {name: NONE if none else without_none(known)}
            case ast.Name(id=name) if holds and (known := self.local(name)) is not None:
                return {name: without_none(known)}
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), cls]) if (
                known := self.local(name)
            ) is not None:
                return {name: self.checked(known, cls, holds)}
        return {}

    def checked(self, known: Type, cls: ast.expr, holds: bool) -> Type:
        """Return the type that `known` narrows to where `isinstance` holds, or where it fails."""
        asked = union(map(self.source.hint, classes_of(cls)))
        names = kinds(asked) | ({"tuple", "list"} if kinds(asked) & {"tuple", "list"} else set())
        names |= {"bool"} if "int" in names else set()
        parts = known.args if known.kind == "union" else (known,)
        if known == ANY:
            return asked if holds else ANY
        kept = [p for p in parts if (p.kind in names) == holds]
        return union(kept) if kept else asked if holds else known

    def local(self, name: str) -> Type | None:
        """Return the type of a local name, or None."""
        scope = self.scope.find(name) if self.scope else None
        return scope.types[name] if scope else None

    def expression(self, node: ast.expr, wanted: Type = ANY) -> Code:
        """Print an expression; `wanted` is the type that its context expects."""
        method: Callable[[Any, Type], Code] | None = getattr(
            self, f"on_{type(node).__name__.lower()}", None
        )
        if method is None:
            raise self.no(node, type(node).__name__)
        return method(node, wanted)

    def texts(self, nodes: Sequence[ast.expr]) -> str:
        """Print expressions separated by commas."""
        return listed(self.expression(node).text for node in nodes)

    def literal(self, value: object, node: ast.AST) -> Code:
        """Print a number, string, Boolean or None."""
        match value:
            case None:
                return Code("null", type=NONE)
            case bool():
                return Code("true" if value else "false", type=BOOL)
            case int() | float():
                level = Level.ATOM if value >= 0 else Level.UNARY
                if isinstance(value, int) and abs(value) >= 2**53:
                    raise self.no(node, "a whole number from 2**53 on")
                text = "Infinity" if value == float("inf") else repr(value)
                return Code(text.removesuffix(".0"), level, of_value(value))
            case str():
                return Code(quoted(value), type=STR)
        raise self.no(node, f"a constant of {type(value).__name__}")

    def made_set(self, items: Code) -> Code:
        """Print a set of an array's items; it compares by value where JavaScript uses identity."""
        item = element(items.type)
        name = "Set" if is_plain(item) else self.help("KeySet")
        return Code(f"new {name}({items.text})", type=Type("set", (item,)))

    def made_dict(self, pairs: str, key: Type, value: Type) -> Code:
        """Print a dictionary of pairs; keys compare by value where JavaScript uses identity."""
        name = "Map" if is_plain(key) else self.help("KeyMap")
        return Code(f"new {name}({pairs})", type=Type("dict", (key, value)))


def classes_of(node: ast.expr) -> list[ast.expr]:
    """Return the classes in the second argument of `isinstance`."""
    match node:
        case ast.Tuple(elts=parts):
            return [inner for part in parts for inner in classes_of(part)]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return classes_of(left) + classes_of(right)
    return [node]


def is_simple(node: ast.expr) -> bool:
    """Return whether an expression costs nothing to evaluate twice."""
    return isinstance(node, ast.Name | ast.Constant) or (
        isinstance(node, ast.Attribute) and is_simple(node.value)
    )
