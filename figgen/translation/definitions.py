"""Print functions, classes and constants of modules as JavaScript, one at a time."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from figgen.errors import InputError
from figgen.translation.answers import AnswerPrinter
from figgen.translation.code import Code, identifier, listed, quoted, refused
from figgen.translation.names import INDENT
from figgen.translation.sources import Place, Source, is_printed, place_of, source_of
from figgen.translation.types import ANY, Type, compared, of_hint, of_value, union

_IGNORED = ("figure(", "formula(", "dataclass", "remembered(")
_ALWAYS = ("__post_init__", "__str__", "__add__")
"""Methods that are never called by name."""

MEMBERS = "\x00"
"""Marks where the members of a class are inserted."""


@dataclasses.dataclass(frozen=True, slots=True)
class Definition:
    """A printed function, class or constant, with the definitions and runtime helpers it uses."""

    text: str
    uses: tuple[Place, ...]
    helpers: tuple[str, ...]


class Printer(AnswerPrinter):
    """Prints one definition."""

    def reference(self, place: Place, node: ast.AST) -> Code:
        if not place.printed:
            return self.of_library(place, node)
        source = source_of(place.module)
        definition = source.definitions.get(place.name)
        if definition is None:
            raise self.no(node, f"{place}, which is not defined")
        if (place.module, place.name) != self.itself:
            self.uses[place] = None
        text = alias(place, self.source)
        match definition:
            case ast.FunctionDef():
                hints = [h for _, h in self.parameters(definition, source.hint, method=False)]
                return Code(text, type=Type("function", (*hints, source.hint(definition.returns))))
            case ast.AnnAssign(annotation=annotation):
                found = source.hint(annotation)
                return Code(text, type=found if found != ANY else of_value(place.value))
        return Code(text, type=of_value(place.value))

    itself = ("", "")

    def member(self, cls: type, name: str) -> None:
        for base in cls.__mro__:
            if is_printed(base.__module__) and (name == "*" or name in vars(base)):
                self.uses[Place(base.__module__, f"{base.__name__}.{name}")] = None
                if name != "*":
                    return

    def of_library(self, place: Place, node: ast.AST) -> Code:
        """Print a constant of the standard library, or a module."""
        if not place.name:
            return Code(place.module, type=of_value(place.value))
        known = {
            "math.inf": "Infinity",
            "math.pi": "Math.PI",
            "figgen.equations.ops.pi": "Math.PI",
            "math.e": "Math.E",
            "math.nan": "NaN",
        }
        if str(place) in known:
            return Code(known[str(place)], type=of_hint(float))
        if place.module == "figgen.errors":
            self.helpers[f"errors.{place.name}"] = None
            return Code(place.name, type=of_value(place.value))
        if inspect.isclass(place.value):
            return Code(place.name, type=Type("class", about=place.value))
        raise self.no(node, f"{place} of Python's library")

    def member_type(self, cls: type, name: str, node: ast.AST) -> Type:
        if cls.__module__ == "figgen.errors":
            return {"nearest": of_hint(tuple[str, ...])}.get(name, of_hint(str))
        found = _member(cls, name)
        if found is None:
            raise self.no(node, f"the attribute {name} of {cls.__name__}")
        if isinstance(found, ast.FunctionDef):
            source = source_of(_owner(cls, name).__module__)
            hints = [h for _, h in self.parameters(found, source.hint, method=True)]
            return Type("function", (*hints, source.hint(found.returns)))
        return found

    def defined(self, name: str, node: ast.stmt) -> str:
        """Print a definition; `name` may be `Class.member`."""
        self.itself = (self.source.module.__name__, name.partition(".")[0])
        if "." in name:
            assert isinstance(node, ast.ClassDef)
            return self.of_record(node, name.partition(".")[2])
        match node:
            case ast.FunctionDef():
                return self.top_function(node)
            case ast.ClassDef():
                return self.record(node)
            case ast.Assign(targets=[ast.Name()], value=value):
                return self.constant(name, value, ANY)
            case ast.Assign(targets=[ast.Tuple()], value=value):
                return self.constant(name, None, ANY)
            case ast.AnnAssign(value=ast.expr() as value, annotation=annotation):
                return self.constant(name, value, self.source.hint(annotation))
        raise self.no(node, "this statement of a module")

    def constant(self, name: str, value: ast.expr | None, wanted: Type) -> str:
        """Print a constant: its expression, or its value where the expression is unsupported."""
        found = self.source.names[name]
        wanted = wanted if wanted != ANY else of_value(found)
        uses, helpers = dict(self.uses), dict(self.helpers)
        if value is not None:
            try:
                shown = self.expression(value, wanted).text
                return f"export const {identifier(name)} = {shown};\n"
            except InputError:
                self.uses, self.helpers = uses, helpers
                if not _is_data(found):
                    raise
        assert value is None or _is_data(found)
        shown = self.data(found, value or ast.Constant(None))
        return f"export const {identifier(name)} = {shown};\n"

    def data(self, value: Any, node: ast.AST) -> str:
        """Print a value made of numbers, strings, tuples, dictionaries, sets and records."""
        if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
            return f"[{listed(self.data(one, node) for one in value)}]"
        if isinstance(value, Mapping):
            given = of_value(value)
            pairs = (f"[{self.data(k, node)}, {self.data(v, node)}]" for k, v in value.items())
            return self.made_dict(f"[{listed(pairs)}]", *given.args).text
        if isinstance(value, set | frozenset):
            items = Code(f"[{listed(self.data(one, node) for one in sorted(value))}]",
                         type=Type("list", (union(map(of_value, value)),)))  # fmt: skip
            return self.made_set(items).text
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self.record_data(value, node)
        return self.literal(value, node).text

    def top_function(self, node: ast.FunctionDef) -> str:
        name, kept = identifier(node.name), ""
        for decorator in map(ast.unparse, node.decorator_list):
            if decorator.startswith("stored("):
                return f"export const {name} = {self.answers(node)};\n"
            if decorator.startswith(("lru_cache(", "cache", "functools.lru_cache(")):
                found = [k for k in ast.walk(ast.parse(decorator)) if isinstance(k, ast.keyword)]
                most = next((ast.unparse(k.value) for k in found if k.arg == "maxsize"), "1024")
                kept = most if most != "None" else "1024"
            elif not decorator.startswith(_IGNORED):
                raise self.no(node, f"the decorator {decorator}")
        given, lines = self.function_parts(node, method=False)
        star = "*" if self.made_generator else ""
        text = _block(f"function{star} {name}({given})", lines)
        if kept:
            return f"export const {name} = {self.help('cached')}({text}, {kept});\n"
        return f"export {text}\n"

    def record(self, node: ast.ClassDef) -> str:
        """Print a class with its fields, without its properties and methods."""
        cls = getattr(self.source.module, node.name)
        if getattr(cls, "_is_protocol", False):
            return ""
        bases = [base for base in node.bases if ast.unparse(base) != "NamedTuple"]
        own = Type("record", about=cls)
        parent = self.expression(bases[0]).text if bases else self.help("Record")
        for method in methods_of(node):
            if method.name in _ALWAYS or any(hasattr(b, method.name) for b in cls.__mro__[1:-1]):
                self.member(cls, method.name)
        lines = self.constructor(cls, node, own, bool(bases))
        names = [name for name, compared in compared(cls) if compared]
        text = f"export class {node.name} extends {parent} {{\n"
        text += "".join(f"{INDENT}{line}\n" for line in lines) + f"{MEMBERS}"
        if names:
            text += at_once(f"{self.help('fields')}(this, {quoted(' '.join(names))});")
        return text + "}\n"

    def of_record(self, node: ast.ClassDef, name: str) -> str:
        """Print a property or method of a class; return "" for a field."""
        cls = getattr(self.source.module, node.name)
        method = next((one for one in methods_of(node) if one.name == name), None)
        if method is None:
            return ""
        lines = self.method_lines(method, Type("record", about=cls))
        return "".join(f"{INDENT}{line}\n" for line in lines)

    def is_kept(self, node: ast.ClassDef, name: str) -> bool:
        """Return whether a property is cached: a `cached_property`, or one that makes an object."""
        method = next((one for one in methods_of(node) if one.name == name), None)
        if method is None:
            return False
        kinds = [ast.unparse(one) for one in method.decorator_list]
        made = self.source.hint(method.returns).kind in ("record", "list", "tuple")
        return "cached_property" in kinds or ("property" in kinds and made)

    def constructor(self, cls: type, node: ast.ClassDef, own: Type, inherits: bool) -> list[str]:
        """Print a record's constructor, from its fields or from `__init__`."""
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                given, lines = self.function_parts(method, method=True, first=own)
                return _lines(f"constructor({given})", ["super();", *lines])
        shown, stored, handed_on = [], [], _stored_above(cls)
        for name, default in self.defaults(cls, node):
            shown.append(identifier(name) + (f" = {default}" if default is not None else ""))
            if name not in handed_on:
                stored.append(f"this.{name} = {identifier(name)};")
        if any(isinstance(m, ast.FunctionDef) and m.name == "__post_init__" for m in node.body):
            stored.append("this.__post_init__();")
        above = f"super({listed(map(identifier, handed_on))});"
        return _lines(f"constructor({listed(shown)})", [above, *stored])

    def defaults(self, cls: type, node: ast.ClassDef) -> Iterable[tuple[str, str | None]]:
        """Yield the fields that a constructor takes, each with its default as text or None."""
        if not dataclasses.is_dataclass(cls):
            usual: Mapping[str, Any] = getattr(cls, "_field_defaults", {})
            for name in getattr(cls, "_fields", ()):
                yield name, self.data(usual[name], node) if name in usual else None
            return
        for field in dataclasses.fields(cls):
            if not field.init:
                continue
            if field.default is not dataclasses.MISSING:
                yield field.name, self.data(field.default, node)
            elif field.default_factory is not dataclasses.MISSING:
                yield field.name, self.factory(cls, field.name, field.default_factory, node)
            else:
                yield field.name, None

    def factory(self, cls: type, name: str, make: Any, node: ast.ClassDef) -> str:
        kind = self.member_type(cls, name, node)
        if kind.kind == "list":
            return "[]"
        if kind.kind == "dict":
            return self.made_dict("", *kind.args).text
        if kind.kind == "set":
            return self.made_set(Code("", type=Type("list", kind.args))).text
        if kind.kind == "record":
            return f"new {self.reference(Place(make.__module__, make.__name__), node).text}()"
        raise self.no(node, f"the default of {name}")

    def method_lines(self, node: ast.FunctionDef, own: Type) -> list[str]:
        kinds = [ast.unparse(one) for one in node.decorator_list]
        word, first = "", own
        if any(kind.endswith("property") for kind in kinds):
            word = "get "
        elif "classmethod" in kinds:
            word, first = "static ", Type("class", about=own.about)
        elif "staticmethod" in kinds:
            given, lines = self.function_parts(node, method=False)
            return _lines(f"static {node.name}({given})", lines)
        elif kinds:
            raise self.no(node, f"the decorator {kinds[0]}")
        given, lines = self.function_parts(node, method=True, first=first)
        star = "*" if self.made_generator else ""
        name = {"__str__": "toString", "__len__": "$length"}.get(node.name, node.name)
        if node.name in ("__bool__", "__eq__", "__hash__", "__lt__", "__iter__", "__len__"):
            raise self.no(node, f"a class with {node.name}")
        return _lines(f"{word}{star}{name}({given})", lines)


def at_once(statement: str) -> str:
    """Print a statement in a static block, which runs when the class is defined."""
    return "".join(f"{INDENT}{line}\n" for line in _lines("static", [statement]))


def _lines(head: str, lines: list[str]) -> list[str]:
    return [f"{head} {{", *(INDENT + line for line in lines), "}"]


def _block(head: str, lines: list[str]) -> str:
    return "\n".join(_lines(head, lines)) + "\n"


def _stored_above(cls: type) -> list[str]:
    """Return the fields that a record's base class stores; none if there is a `__post_init__`."""
    above = cls.__mro__[1]
    if hasattr(cls, "__post_init__") or not dataclasses.is_dataclass(above):
        return []
    return [field.name for field in dataclasses.fields(above) if field.init]


def _is_data(value: Any) -> bool:
    """Return whether a value consists of numbers, strings, None, collections and dataclasses."""
    if isinstance(value, tuple | list | set | frozenset):
        return all(map(_is_data, value))
    if isinstance(value, Mapping):
        return all(map(_is_data, value)) and all(map(_is_data, value.values()))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return all(_is_data(getattr(value, f.name)) for f in dataclasses.fields(value))
    return value is None or isinstance(value, bool | int | float | str)


def _owner(cls: type, name: str) -> type:
    return next(one for one in cls.__mro__ if name in vars(one))


@lru_cache(maxsize=4096)
def _member(cls: type, name: str) -> Type | ast.FunctionDef | None:
    """Return the type of a field or property, the definition of a method, or None."""
    for base in cls.__mro__:
        if not is_printed(base.__module__):
            continue
        source = source_of(base.__module__)
        node = source.definitions.get(base.__name__)
        if not isinstance(node, ast.ClassDef):
            continue
        for child in node.body:
            match child:
                case ast.AnnAssign(target=ast.Name(id=field)) if field == name:
                    return source.hint(child.annotation)
                case ast.FunctionDef(name=method) if method == name:
                    decorators = [ast.unparse(one) for one in child.decorator_list]
                    if any(one.endswith("property") for one in decorators):
                        return source.hint(child.returns)
                    return child
        for child in node.body:
            if isinstance(child, ast.FunctionDef) and child.name == "__init__":
                found = _attribute(source, child, name, cls)
                if found is not None:
                    return found
    return None


def _attribute(source: Source, node: ast.FunctionDef, name: str, cls: type) -> Type | None:
    """Return the type of the attribute that `__init__` assigns under a name, or None."""
    printer = Printer(source)
    arguments = [*node.args.args, *node.args.kwonlyargs]
    types = {one.arg: source.hint(one.annotation) for one in arguments[1:]}
    types[arguments[0].arg] = Type("record", about=cls)
    with printer.names(types) as scope:
        printer.function_scope = scope
        for child in node.body:
            match child:
                case ast.AnnAssign(target=ast.Attribute(attr=field), annotation=hint):
                    if field == name:
                        return source.hint(hint)
                case ast.Assign(targets=[target], value=value):
                    for part, one in _pairs(target, value):
                        match part:
                            case ast.Attribute(attr=field) if field == name:
                                return printer.expression(one).type
                            case ast.Name(id=local):
                                scope.types[local] = printer.expression(one).type
    return None


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    match target, value:
        case ast.Tuple(elts=parts), ast.Tuple(elts=values) if len(parts) == len(values):
            return list(zip(parts, values, strict=True))
    return [(target, value)]


@lru_cache(maxsize=512)
def _renamed(source: Source) -> dict[Place, str]:
    """Return what a module imports under a different name, e.g. because its own would hide it."""
    module = source.module.__name__
    names = [name for name, found in source.imports.items() if found.name not in ("", name)]
    found = {place_of(module, name): name for name in names}
    return {place: name for place, name in found.items() if place is not None}


def alias(place: Place, source: Source) -> str:
    """Return the name that a definition has within a printed module."""
    if place.module == source.module.__name__:
        return identifier(place.name)
    if place in (renamed := _renamed(source)):
        return identifier(renamed[place])
    if place.name not in source.definitions:
        return identifier(place.name)
    return f"{place.name}_of_{place.module.rpartition('.')[2]}"


def methods_of(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """Return the properties and methods of a class, except `__init__`."""
    return [m for m in node.body if isinstance(m, ast.FunctionDef) and m.name != "__init__"]


@lru_cache(maxsize=4096)
def _printed(source: Source, name: str) -> Definition:
    printer = Printer(source)
    text = printer.defined(name, source.definitions[name.partition(".")[0]])
    return Definition(text, tuple(printer.uses), tuple(printer.helpers))


def definition(place: Place) -> Definition:
    """Print a definition. Raises InputError, with file and line, for unsupported syntax."""
    source = source_of(place.module)
    if place.name.partition(".")[0] not in source.definitions:
        raise InputError(f"{place.module} defines no {place.name}")
    return _printed(source, place.name)


def arithmetic(node: ast.expr, module: str, names: Iterable[str]) -> str:
    """Print a numeric expression that needs no definition or runtime function; else raise."""
    printer = Printer(source_of(module))
    with printer.names({name: of_hint(float) for name in names}):
        shown = printer.expression(node).text
    if printer.uses or printer.helpers:
        raise refused(module, node, "an expression that needs other definitions")
    return shown


def forget_definitions() -> None:
    """Clear the caches, so that every definition is printed again."""
    for remembered in (_printed, _member, _renamed):
        remembered.cache_clear()
