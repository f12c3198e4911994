"""Print expressions as JavaScript that evaluates the same operations in the same order."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Sequence
from typing import Any

from figgen.translation.base import is_simple
from figgen.translation.code import (
    Code,
    Level,
    array,
    identifier,
    is_list,
    listed,
    loop,
    quoted,
)
from figgen.translation.comprehensions import Comprehensions
from figgen.translation.sources import Place, is_printed, place_of, source_of
from figgen.translation.types import (
    ANY,
    BOOL,
    FLOAT,
    NONE,
    STR,
    Type,
    element,
    is_short,
    kinds,
    of_value,
    union,
    without_none,
)


class Expressions(Comprehensions):
    """Prints names, literals, attributes, subscripts and strings."""

    def on_name(self, node: ast.Name, wanted: Type) -> Code:
        if scope := self.scope.find(node.id) if self.scope else None:
            return Code(scope.shown.get(node.id, identifier(node.id)), type=scope.types[node.id])
        place = place_of(self.source.module.__name__, node.id)
        if place is not None:
            if place.printed and self.takes_any_number(place):
                raise self.no(node, "a function of any number of arguments as a value")
            return self.reference(place, node)
        if hasattr(builtins, node.id):
            return Code(node.id, type=of_value(getattr(builtins, node.id)))
        raise self.no(node, "a name that no module defines")

    def takes_any_number(self, place: Place) -> bool:
        definition = source_of(place.module).definitions.get(place.name)
        return isinstance(definition, ast.FunctionDef) and definition.args.vararg is not None

    def on_constant(self, node: ast.Constant, wanted: Type) -> Code:
        return self.literal(node.value, node)

    def on_tuple(self, node: ast.Tuple, wanted: Type) -> Code:
        return self.sequence(node.elts, "tuple", wanted)

    def on_list(self, node: ast.List, wanted: Type) -> Code:
        return self.sequence(node.elts, "list", wanted)

    def sequence(self, nodes: Sequence[ast.expr], about: str, wanted: Type) -> Code:
        """Print a tuple or list; a tuple of fixed length has a type for each element."""
        wanted = without_none(wanted)
        inner = wanted.args if wanted.kind == "tuple" else (element(wanted),) * len(nodes)
        inner = inner if len(inner) == len(nodes) else (ANY,) * len(nodes)
        parts, types, fixed = [], list[Type](), about == "tuple"
        for child, hint in zip(nodes, inner, strict=True):
            if isinstance(child, ast.Starred):
                code = self.expression(child.value)
                parts.append(f"...{loop(code)}")
                if without_none(code.type).kind == "tuple":
                    types += without_none(code.type).args
                else:
                    types, fixed = [*types, element(code.type)], False
            else:
                code = self.expression(child, hint)
                parts.append(code.text)
                types.append(code.type)
        if fixed and wanted.kind != "list":
            return Code(f"[{listed(parts)}]", type=Type("tuple", tuple(types)))
        item = union(types) if types else element(wanted)
        return Code(f"[{listed(parts)}]", type=Type("list", (item,), about))

    def on_set(self, node: ast.Set, wanted: Type) -> Code:
        return self.made_set(self.sequence(node.elts, "list", ANY))

    def on_dict(self, node: ast.Dict, wanted: Type) -> Code:
        wanted = without_none(wanted)
        hints = wanted.args if wanted.kind == "dict" else (ANY, ANY)
        keys, values, pairs = list[Type](), list[Type](), []
        for key, value in zip(node.keys, node.values, strict=True):
            shown = self.expression(value, hints[1] if key is not None else ANY)
            if key is None:
                pairs.append(f"...{shown.text}")
                keys, values = [*keys, shown.type.args[0]], [*values, shown.type.args[1]]
            else:
                name = self.expression(key)
                pairs.append(f"[{name.text}, {shown.text}]")
                keys, values = [*keys, name.type], [*values, shown.type]
        if wanted.kind == "dict" or not keys:
            return self.made_dict(f"[{listed(pairs)}]" if pairs else "", *hints)
        return self.made_dict(f"[{listed(pairs)}]", union(keys), union(values))

    def on_attribute(self, node: ast.Attribute, wanted: Type) -> Code:
        value = self.expression(node.value)
        given = without_none(value.type)
        if given.kind == "module":
            module = given.about.__name__
            found_at = place_of(module, node.attr) if is_printed(module) else None
            return self.reference(found_at or Place(module, node.attr), node)
        types = [t for t in (given.args if given.kind == "union" else (given,)) if t != NONE]
        if all(t.kind == "record" for t in types):
            found = union(self.member_type(t.about, node.attr, node) for t in types)
            for one in types:
                self.member(one.about, node.attr)
            method = inspect.getattr_static(types[0].about, node.attr, None) if types else None
            if inspect.isfunction(method):
                if not is_simple(node.value):
                    raise self.no(node, "a bound method of a computed object")
                return Code(f"{value.atom}.{node.attr}.bind({value.text})", type=found)
            return Code(f"{value.atom}.{node.attr}", type=found)
        if given.kind == "class":
            self.member(given.about, node.attr)
            return Code(f"{value.atom}.{node.attr}", type=ANY)
        raise self.no(node, f"an attribute of a value of kind {given.kind}")

    def on_subscript(self, node: ast.Subscript, wanted: Type) -> Code:
        value = self.expression(node.value)
        given = without_none(value.type)
        if isinstance(node.slice, ast.Slice):
            return self.slice(value, node.slice, node)
        if given.kind == "dict":
            key = self.expression(node.slice).text
            start = " ?? 0" if given.about == "counter" else ""
            text = f"{value.atom}.get({key}){start}"
            return Code(text, Level.CHOICE if start else Level.ATOM, given.args[1])
        if given.kind == "match":
            return Code(f"{value.atom}[{self.expression(node.slice).text}]", type=STR)
        found = element(given)
        match node.slice, given:
            case ast.Constant(value=int() as at), Type(kind="tuple", args=parts):
                found = parts[at]
            case (
                ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as at)),
                Type(kind="tuple", args=parts),
            ):
                found = parts[-at]
            case ast.Constant(value=int() as at), Type(kind="record", about=cls) if hasattr(
                cls, "_fields"
            ):
                name = cls._fields[at]
                return Code(f"{value.atom}.{name}", type=self.member_type(cls, name, node))
        if given.kind not in ("list", "tuple", "str"):
            raise self.no(node, f"an element of a value of kind {given.kind}")
        at_code = self.expression(node.slice)
        from_behind = isinstance(node.slice, ast.UnaryOp) or (
            isinstance(node.slice, ast.BinOp) and isinstance(node.slice.op, ast.Sub)
        )
        if from_behind:
            return Code(f"{value.atom}.at({at_code.text})", type=found)
        text = f"+{at_code.within(Level.UNARY)}" if at_code.type == BOOL else at_code.text
        return Code(f"{value.atom}[{text}]", type=found)

    def slice(self, value: Code, cut: ast.Slice, node: ast.AST) -> Code:
        """Print a slice of an array or a string."""
        given = without_none(value.type)
        if given.kind not in ("list", "tuple", "str"):
            raise self.no(node, f"a slice of a value of kind {given.kind}")
        found = given
        if given.kind == "tuple":
            found = Type("list", (element(given),), "tuple")
            bounds = [self.index(b) for b in (cut.lower, cut.upper)]
            if cut.step is None and all(b is not False for b in bounds):
                found = Type("tuple", given.args[slice(*bounds)])
        parts = [self.expression(b).text if b else None for b in (cut.lower, cut.upper)]
        if cut.step is not None:
            shown = listed(part or "null" for part in [*parts, self.expression(cut.step).text])
            return Code(f"{self.help('strided')}({value.text}, {shown})", type=found)
        start = parts[0] or ("0" if parts[1] else "")
        return Code(f"{value.atom}.slice({listed(p for p in (start, parts[1]) if p)})", type=found)

    @staticmethod
    def index(node: ast.expr | None) -> Any:
        """Return a slice's constant bound, None if it has none, or False if it is not constant."""
        if node is None:
            return None
        try:
            return ast.literal_eval(node)
        except ValueError:
            return False

    def on_ifexp(self, node: ast.IfExp, wanted: Type) -> Code:
        test = self.condition(node.test)
        with self.narrowed(node.test, True):
            yes = self.expression(node.body, wanted)
        with self.narrowed(node.test, False):
            no = self.expression(node.orelse, wanted)
        text = f"{test.within(Level.OR)} ? {yes.within(Level.CHOICE)} : {no.within(Level.CHOICE)}"
        return Code(text, Level.CHOICE, union((yes.type, no.type)))

    def on_namedexpr(self, node: ast.NamedExpr, wanted: Type) -> Code:
        value = self.expression(node.value)
        self.note(node.target.id, value.type)
        return Code(f"{identifier(node.target.id)} = {value.text}", Level.ARROW, value.type)

    def on_starred(self, node: ast.Starred, wanted: Type) -> Code:
        """Print `*tuple` in a call; a call takes some 100,000 arguments, so lists are refused."""
        code = self.spread(node)
        if not is_short(code.type):
            raise self.no(node, "a call with a list of unknown length as its arguments")
        return code

    def spread(self, node: ast.Starred) -> Code:
        value = self.expression(node.value)
        return Code(f"...{loop(value)}", Level.ARROW, value.type)

    def extended(self, held: Code, items: Code) -> Code:
        """Print `held.extend(items)`."""
        more = array(items).text
        if is_short(items.type):
            return Code(f"{held.atom}.push(...{more})", type=NONE)
        return Code(f"{self.help('extend')}({held.text}, {more})", type=NONE)

    def on_call(self, node: ast.Call, wanted: Type) -> Code:
        return self.called(node, wanted)

    def on_joinedstr(self, node: ast.JoinedStr, wanted: Type) -> Code:
        parts = []
        for part in node.values:
            match part:
                case ast.Constant(value=str() as text):
                    parts.append(text.replace("\\", "\\\\").replace("`", "\\`").replace("$", "\\$"))
                case ast.FormattedValue():
                    parts.append(f"${{{self.formatted(part).text}}}")
        return Code(f"`{''.join(parts)}`".replace("\n", "\\n"), type=STR)

    def formatted(self, node: ast.FormattedValue) -> Code:
        value = self.expression(node.value)
        if node.format_spec is not None:
            assert isinstance(node.format_spec, ast.JoinedStr)
            match node.format_spec.values:
                case [ast.Constant(value=str() as plain)]:
                    spec = quoted(plain)
                case _:
                    spec = self.on_joinedstr(node.format_spec, STR).text
            return Code(f"{self.help('format')}({value.text}, {spec})", type=STR)
        return self.written(value, exact=node.conversion == ord("r"))

    def written(self, value: Code, *, exact: bool = False) -> Code:
        """Print a value as `str` formats it, or as `repr` does if `exact`."""
        given = value.type
        if kinds(given) <= {"int", "str"} and not exact:
            return value
        if given == FLOAT:
            return Code(f"{self.help('decimal')}({value.text})", type=STR)
        if given.kind == "record" and not exact:
            if given.about.__module__ == "figgen.errors":
                return Code(f"{value.atom}.message", type=STR)
            return Code(f"{value.atom}.toString()", type=STR)
        if given.kind == "list" and given.about == "list":
            return Code(f"{self.help('listed')}({value.text})", type=STR)
        name = "repr" if exact or is_list(given) else "text"
        return Code(f"{self.help(name)}({value.text})", type=STR)
