"""Print calls of printed functions and classes, built-in functions, and built-in methods."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence

from figgen.translation.built_in import BuiltIn
from figgen.translation.code import (
    Code,
    Level,
    array,
    listed,
    quoted,
)
from figgen.translation.methods import DICT, LIST, MATCH, SET, STRING, WHOLE, Method
from figgen.translation.sources import Place, is_printed, place_of, source_of
from figgen.translation.types import (
    ANY,
    STR,
    Type,
    bind,
    bound,
    kinds,
    without_none,
)

COLUMNS = "figgen.equations.columns"


class CallPrinter(BuiltIn):
    """Prints calls."""

    def signature(self, place: Place) -> ast.FunctionDef | None:
        """Return the definition of a printed function; None if the name is not a function."""
        node = source_of(place.module).definitions[place.name]
        return node if isinstance(node, ast.FunctionDef) else None

    def called(self, node: ast.Call, wanted: Type) -> Code:
        match node.func:
            case ast.Name(id=name) if self.local(name) is None:
                place = place_of(self.source.module.__name__, name)
                if place is None:
                    return self.built_in(name, node, wanted)
                return self.at(place, node, wanted)
            case ast.Attribute(value=value, attr=attribute):
                given = self.module_of(value)
                if given is not None:
                    module = is_printed(given) and given in sys.modules
                    place = place_of(given, attribute) if module else None
                    return self.at(place or Place(given, attribute), node, wanted)
                return self.method(node, value, attribute, wanted)
            case ast.Subscript(
                value=ast.Name(id="list" | "dict" | "set" | "frozenset" | "tuple" as name)
            ):
                return self.built_in(name, node, self.source.hint(node.func))
            case ast.Subscript(value=ast.Name(id="Counter" | "defaultdict" as name)):
                place = place_of(self.source.module.__name__, name)
                assert place is not None
                return self.library(place, node, self.source.hint(node.func))
        return self.plain_call(self.expression(node.func), node)

    def module_of(self, node: ast.expr) -> str | None:
        """Return the module or class of the standard library that an expression names, or None."""
        if isinstance(node, ast.Name) and self.local(node.id) is None:
            place = place_of(self.source.module.__name__, node.id)
            if place is None:
                return node.id if node.id in ("dict", "object", "str") else None
            return None if place.printed else str(place)
        if isinstance(node, ast.Attribute) and (inner := self.module_of(node.value)):
            return f"{inner}.{node.attr}"
        return None

    def plain_call(self, function: Code, node: ast.Call) -> Code:
        """Print a call of a value, such as a parameter or an item of a dictionary."""
        given = without_none(function.type)
        if given.kind == "function" and given.about is not None and not given.args:
            protocol = getattr(given.about, "__call__", None)  # noqa: B004 - of a protocol
            if inspect.isfunction(protocol):
                return self.by_protocol(function, given.about, node)
        if node.keywords:
            raise self.no(node, "keywords in a call of a value")
        hints = given.args[:-1] if given.kind == "function" and given.args else ()
        parts = [
            self.passed(arg, hints[at] if at < len(hints) else ANY)
            for at, arg in enumerate(node.args)
        ]
        result = given.args[-1] if given.kind == "function" and given.args else ANY
        return Code(f"{function.atom}({listed(c.text for c in parts)})", type=result)

    def by_protocol(self, function: Code, protocol: type, node: ast.Call) -> Code:
        """Print a call of a value whose type is a protocol."""
        place = place_of(protocol.__module__, protocol.__name__)
        assert place is not None
        source = source_of(place.module)
        definition = source.definitions[place.name]
        assert isinstance(definition, ast.ClassDef)
        call = next(one for one in definition.body if isinstance(one, ast.FunctionDef))
        hints = self.parameters(call, source.hint, method=True)
        parts, _ = self.arranged(node, hints)
        return Code(f"{function.atom}({listed(parts)})", type=source.hint(call.returns))

    def passed(self, node: ast.expr, wanted: Type) -> Code:
        """Print an argument of type `wanted`; a dictionary that is iterated over gives its keys."""
        if isinstance(node, ast.Starred):
            return self.on_starred(node, wanted)
        code = self.expression(node, wanted)
        asked = without_none(wanted)
        if asked.kind in ("iterator", "list") and kinds(without_none(code.type)) & {"dict"}:
            return array(code)
        if asked.kind == "list" and without_none(code.type).kind == "set":
            return array(code)
        return code

    def parameters(
        self, node: ast.FunctionDef, hint: Callable[[ast.expr | None], Type], *, method: bool
    ) -> list[tuple[str, Type]]:
        """Return a function's parameters as names and types; `*name` is called `*INDEX name`."""
        given = [*node.args.posonlyargs, *node.args.args][1 if method else 0 :]
        found = [(one.arg, hint(one.annotation)) for one in [*given, *node.args.kwonlyargs]]
        if node.args.vararg:
            # A rest parameter comes last in JavaScript; keyword arguments precede it.
            name = f"*{len(given)} {node.args.vararg.arg}"
            found.append((name, hint(node.args.vararg.annotation)))
        if node.args.kwarg:
            raise self.no(node, "a function of any keywords")
        return found

    def arranged(
        self, node: ast.Call, parameters: Sequence[tuple[str, Type]]
    ) -> tuple[list[str], dict[str, Type]]:
        """Return a call's arguments in parameter order, and the types of type variables."""
        known: dict[str, Type] = {}
        texts: dict[int, str] = {}
        names = [name for name, _ in parameters]
        rest = len(names) - 1 if names and names[-1].startswith("*") else None
        begins = int(names[-1][1:].split()[0]) if rest is not None else 0
        many: list[str] = []
        for at, argument in enumerate(node.args):
            place = min(at, len(parameters) - 1)
            if rest is not None and at >= begins:
                place = rest
            hint = bound(parameters[place][1], known) if parameters else ANY
            if isinstance(argument, ast.Starred) and place == rest:
                code = self.spread(argument)
            else:
                code = self.passed(argument, hint)
            if parameters and not isinstance(argument, ast.Starred):
                bind(parameters[place][1], code.type, known)
            if place == rest:
                many.append(code.text)
            else:
                texts[at] = code.text
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.no(node, "keywords from a dictionary")
            if keyword.arg not in names:
                raise self.no(node, f"the keyword {keyword.arg}")
            at = names.index(keyword.arg)
            code = self.passed(keyword.value, bound(parameters[at][1], known))
            bind(parameters[at][1], code.type, known)
            texts[at] = code.text
        if rest is not None and many:
            texts[rest] = f"[{listed(many)}]"
        return [texts.get(at, "undefined") for at in range(max([*texts, -1]) + 1)], known

    def at(self, place: Place, node: ast.Call, wanted: Type) -> Code:
        """Print a call of the function or class defined at `place`."""
        if place.module == COLUMNS:
            return self.of_columns(place, node)
        if not place.printed:
            return self.library(place, node, wanted)
        value = place.value
        if inspect.isclass(value):
            return self.made(place, value, node)
        definition = self.signature(place)
        function = self.reference(place, node.func)
        if definition is None:
            return self.plain_call(function, node)
        source = source_of(place.module)
        parts, known = self.arranged(node, self.parameters(definition, source.hint, method=False))
        result = bound(source.hint(definition.returns), known)
        if any(ast.unparse(one) == "contextmanager" for one in definition.decorator_list):
            raise self.no(node, "a context manager")
        return Code(f"{function.text}({listed(parts)})", type=result)

    def of_columns(self, place: Place, node: ast.Call) -> Code:
        """Print a call of a function of columns, which is hand-written in `columns.js`."""
        self.helpers[f"columns.{place.name}"] = None
        source = source_of(place.module)
        definition = self.signature(place)
        assert definition is not None
        hints = self.parameters(definition, source.hint, method=False)
        parts, known = self.arranged(node, hints)
        result = bound(source.hint(definition.returns), known)
        return Code(f"{place.name}({listed(parts)})", type=result)

    def made(self, place: Place, cls: type, node: ast.Call) -> Code:
        """Print the construction of a record."""
        name = self.reference(place, node.func).text
        made = Type("record", about=cls)
        rest = [one.value for one in node.keywords if one.arg is None]
        if not rest:
            parts, _ = self.arranged(node, self.fields(cls, node))
            return Code(f"new {name}({listed(parts)})", type=made)
        return self.made_of_rest(name, node, rest, cls).typed(made)

    def made_of_rest(self, name: str, node: ast.Call, rest: Sequence[ast.expr], cls: type) -> Code:
        """Print the construction of a record that takes some fields from `**` dictionaries."""
        given = {one.arg: one.value for one in node.keywords if one.arg is not None}
        if node.args:
            raise self.no(node, "positional arguments together with keywords from a dictionary")
        held = self.made_dict(
            f"[{listed(f'...{self.expression(one).text}' for one in rest)}]", STR, ANY
        ).text
        parts = [
            self.passed(given[field], hint).text if field in given else f"rest.get({quoted(field)})"
            for field, hint in self.fields(cls, node)
        ]
        return Code(f"((rest) => new {name}({listed(parts)}))({held})")

    def fields(self, cls: type, node: ast.AST) -> list[tuple[str, Type]]:
        """Return the names and types of a record's fields, in order."""
        if dataclasses.is_dataclass(cls):
            given = [field.name for field in dataclasses.fields(cls) if field.init]
        elif hasattr(cls, "_fields"):
            given = list(cls._fields)
        else:
            source = source_of(cls.__module__)
            definition = source.definitions[cls.__name__]
            assert isinstance(definition, ast.ClassDef)
            for method in definition.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    return self.parameters(method, source.hint, method=True)
            return []
        return [(name, self.member_type(cls, name, node)) for name in given]

    def function(self, node: ast.expr, given: Sequence[Type]) -> Code:
        """Print a function passed as an argument, as an arrow with exactly its parameters."""
        wanted = Type("function", (*given, ANY))
        if isinstance(node, ast.Lambda):
            return self.on_lambda(node, wanted)
        names = [f"given{at}" for at in range(len(given))] if len(given) > 1 else ["one"]
        call = ast.Call(node, [ast.Name(name, ast.Load()) for name in names], [])
        ast.copy_location(call, node)
        ast.fix_missing_locations(call)
        with self.names(dict(zip(names, given, strict=True))):
            body = self.called(call, ANY)
        text = f"({listed(names)}) => {body.within(Level.CHOICE)}"
        return Code(text, Level.ARROW, Type("function", (*given, body.type)))

    def method(self, node: ast.Call, owner: ast.expr, name: str, wanted: Type) -> Code:
        """Print a call of a method."""
        value = self.expression(owner)
        given = without_none(value.type)
        if given.kind in ("record", "class"):
            return self.own_method(value, given, name, node)
        if given.kind == "union" and {part.kind for part in given.args} == {"record"}:
            return self.own_method(value, given.args[0], name, node)
        if given.kind == "pattern":
            if name not in ("fullmatch", "search", "finditer", "split"):
                raise self.no(node, f"the method {name} of a pattern")
            return self.matched(name, value, self.expression(node.args[0]).atom)
        table: Mapping[str, Method] = {
            "list": LIST,
            "tuple": LIST,
            "dict": DICT,
            "set": SET,
            "str": STRING,
            "int": WHOLE,
            "match": MATCH,
        }.get(given.kind, {})
        if name not in table:
            raise self.no(node, f"the method {name} of a value of kind {given.kind}")
        made = table[name](self, value, given, node)
        if name in ("append", "add") and given.args == (ANY,) and isinstance(owner, ast.Name):
            item = self.expression(node.args[0]).type
            self.note(owner.id, dataclasses.replace(given, args=(item,)))
        return made

    def own_method(self, value: Code, given: Type, name: str, node: ast.Call) -> Code:
        """Print a call of a method of a printed class."""
        cls = given.about
        if cls.__module__ == "figgen.errors":
            return Code(f"{value.atom}.{name}({self.texts(node.args)})", type=given)
        if given.kind == "record" and name not in ("__init__",):
            kind = self.member_type(cls, name, node)
            if (
                kind.kind == "function"
                and kind.args
                and not inspect.isfunction(inspect.getattr_static(cls, name, None))
            ):
                return self.plain_call(Code(f"{value.atom}.{name}", type=kind), node)
        for one in (t.about for t in (without_none(value.type).args or (given,))):
            if isinstance(one, type):
                self.member(one, name)
        owner = next(c for c in cls.__mro__ if name in vars(c))
        source = source_of(owner.__module__)
        definition = source.definitions[owner.__name__]
        assert isinstance(definition, ast.ClassDef)
        for method in definition.body:
            if isinstance(method, ast.FunctionDef) and method.name == name:
                static = any(ast.unparse(d) == "staticmethod" for d in method.decorator_list)
                hints = self.parameters(method, source.hint, method=not static)
                parts, known = self.arranged(node, hints)
                result = bound(source.hint(method.returns), known)
                return Code(f"{value.atom}.{name}({listed(parts)})", type=result)
        raise self.no(node, f"the method {name}")
