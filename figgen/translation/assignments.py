"""Print assignments, and keep the types of the names that they bind."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from figgen.translation.base import Scope
from figgen.translation.calls import CallPrinter
from figgen.translation.code import Code, Level, array, identifier, is_list, listed
from figgen.translation.names import (
    independent,
)
from figgen.translation.types import (
    ANY,
    BOOL,
    Type,
    element,
    union,
    without_none,
)

_SIGNS = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/="}


class Assignments(CallPrinter):
    """Prints assignments to names, tuples, attributes and items."""

    def note(self, name: str, given: Type) -> None:
        """Remember the type of a local name, and drop what earlier tests implied about it."""
        scope = self.scope
        while scope is not None and scope.above is not None and not getattr(scope, "whole", False):
            if scope.above.find(name) is None:
                break
            if name in scope.types and scope.above.find(name) is not None:
                del scope.types[name]
            scope = scope.above
        assert self.scope is not None
        found = self.scope.find(name)
        target = found or self.function_scope
        old = target.types.get(name)
        target.types[name] = given if old in (None, ANY) else self.merged(old, given)

    @staticmethod
    def merged(old: Type | None, new: Type) -> Type:
        """Return the type of a name after a second assignment."""
        if old is None or new == ANY:
            return new if old is None else old
        if old.kind in ("list", "dict", "set") and ANY in old.args:
            return new
        if old.kind in ("list", "dict", "set") and new.kind == old.kind and ANY in new.args:
            return old
        return union((old, new))

    function_scope: Scope

    def word(self, name: str, new: set[str]) -> str:
        """Return `const ` or `let ` if the statement declares the name, else ""."""
        if name not in new:
            return ""
        return "const " if self.stores.get(name, 2) == 1 else "let "

    stores: dict[str, int] = {}  # noqa: RUF012 - replaced by each function

    def assigned(
        self, targets: Sequence[ast.expr], value: ast.expr, new: set[str], node: ast.stmt
    ) -> list[str]:
        match targets, value:
            case [ast.Tuple(elts=parts)], ast.Tuple(elts=values) if len(parts) == len(
                values
            ) and independent(parts, values):
                return [
                    line
                    for part, one in zip(parts, values, strict=True)
                    for line in self.assigned([part], one, new, node)
                ]
        if isinstance(value, ast.Yield):
            raise self.no(node, "a value sent to a generator")
        hint = self.known(targets[0]) if len(targets) == 1 else ANY
        shown = self.expression(value, hint)
        lines = []
        for target in reversed(targets[1:]):
            lines.append(self.stored(target, shown, new))
            shown = Code(self.place(target), type=shown.type)
        if lines:
            lines.append(self.stored(targets[0], shown, new))
            return lines
        return [self.stored(targets[0], shown, new)]

    def known(self, node: ast.expr) -> Type:
        """Return the type of an assignment's target, if known."""
        if isinstance(node, ast.Name):
            scope = self.function_scope.find(node.id)
            return scope.types[node.id] if scope else ANY
        if isinstance(node, ast.Attribute):
            return self.expression(node).type
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
            given = without_none(self.expression(node.value).type)
            return given.args[1] if given.kind == "dict" else element(given)
        return ANY

    def stored(self, target: ast.expr, value: Code, new: set[str]) -> str:
        """Print the assignment of a value to a target."""
        match target:
            case ast.Name(id=name):
                self.note(name, value.type)
                return f"{self.word(name, new)}{self.shown_name(name)} = {value.text};"
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                types: dict[str, Type] = {}
                inner = [p.value if isinstance(p, ast.Starred) else p for p in parts]
                if not all(isinstance(part, ast.Name | ast.Tuple) for part in inner):
                    return self.scattered(parts, value)
                pattern = self.target(target, value.type, types)
                for name, given in types.items():
                    self.note(name, given)
                names = set(types) - {"_"}
                if names <= new:
                    once = all(self.stores.get(name, 2) == 1 for name in names)
                    return f"{'const' if once else 'let'} {pattern} = {value.text};"
                begun = f"let {listed(sorted(names & new))}; " if names & new else ""
                brackets = pattern.startswith("{")
                text = f"({pattern} = {value.text});" if brackets else f"{pattern} = {value.text};"
                return begun + text
            case ast.Subscript(value=owner, slice=ast.Slice(lower=low, upper=high, step=None)):
                held = self.expression(owner)
                start = self.expression(low).text if low else "0"
                end = self.expression(high).text if high else f"{held.atom}.length"
                place = f"{held.text}, {start}, {end}"
                return f"{self.help('put')}({place}, {array(value).text});"
            case ast.Subscript(value=owner, slice=key):
                held, at = self.expression(owner), self.expression(key)
                if without_none(held.type).kind == "dict":
                    return f"{held.atom}.set({at.text}, {value.text});"
                if held.type == ANY:
                    raise self.no(target, "an assignment to an item of a value of unknown type")
                return f"{held.atom}[{self.position(held, key)}] = {value.text};"
            case ast.Attribute():
                return f"{self.place(target)} = {value.text};"
        raise self.no(target, "this target")

    def scattered(self, parts: Sequence[ast.expr], value: Code) -> str:
        """Print an assignment that unpacks a tuple into attributes or items."""
        first = [self.place(part) for part in parts]
        return f"[{listed(first)}] = {value.text};"

    def shown_name(self, name: str) -> str:
        scope = self.scope.find(name) if self.scope else None
        return scope.shown.get(name, identifier(name)) if scope else identifier(name)

    def position(self, held: Code, key: ast.expr) -> str:
        """Print the index of an item that is assigned to."""
        at = self.expression(key)
        if isinstance(key, ast.UnaryOp) and isinstance(key.op, ast.USub):
            return f"{held.atom}.length - {self.expression(key.operand).within(Level.PRODUCT)}"
        return f"+{at.within(Level.UNARY)}" if at.type == BOOL else at.text

    def place(self, node: ast.expr) -> str:
        """Print an assignment target as an expression."""
        match node:
            case ast.Name(id=name):
                return self.shown_name(name)
            case ast.Attribute(value=owner, attr=name):
                return f"{self.expression(owner).atom}.{name}"
            case ast.Subscript(value=owner, slice=key) if not isinstance(key, ast.Slice):
                held = self.expression(owner)
                if without_none(held.type).kind != "dict":
                    return f"{held.atom}[{self.position(held, key)}]"
        raise self.no(node, "this target")

    def augmented(self, node: ast.AugAssign) -> str:
        """Print `a += b` and other augmented assignments."""
        if isinstance(node.target, ast.Subscript):
            held = self.expression(node.target.value)
            if without_none(held.type).kind == "dict":
                operation = ast.BinOp(node.target, node.op, node.value)
                ast.copy_location(operation, node)
                key = self.expression(node.target.slice).text
                return f"{held.atom}.set({key}, {self.expression(operation).text});"
        target = self.expression(node.target)
        value = self.expression(node.value, target.type)
        given = without_none(target.type)
        if isinstance(node.op, ast.Add) and is_list(given):
            if given.about == "list" or given.about is None:
                return f"{self.extended(target, value).text};"
            return f"{self.place(node.target)} = [...{target.text}, ...{array(value).text}];"
        if isinstance(node.op, ast.BitOr) and given.kind in ("dict", "set"):
            return f"{self.help('updated')}({target.text}, {value.text});"
        if isinstance(node.target, ast.Name):
            result = self.arithmetic(
                ast.copy_location(ast.BinOp(node.target, node.op, node.value), node), target, value
            )
            self.note(node.target.id, result.type)
        sign = _SIGNS.get(type(node.op))
        if sign is None:
            operation = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
            return f"{self.place(node.target)} = {self.expression(operation).text};"
        return f"{self.place(node.target)} {sign} {value.text};"
