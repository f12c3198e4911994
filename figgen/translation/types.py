"""The types of the printed subset of Python, which decide how an operation is printed."""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Type:
    """A type: its kind, its type arguments, and further details in `about`.

    Kinds: int, float, bool, str, none, tuple (one type per element), list (one type), iterator,
    dict (keys, values), set, record (`about` is the class), function (parameters, then the result),
    class, module, pattern, match, var (a type variable), union, any.
    """

    kind: str
    args: tuple[Type, ...] = ()
    about: Any = None


INT, FLOAT, BOOL, STR = Type("int"), Type("float"), Type("bool"), Type("str")
NONE, ANY = Type("none"), Type("any")
NUMBERS = frozenset({"int", "float", "bool"})
SCALARS = NUMBERS | {"str", "none"}
LISTS = frozenset({"list", "tuple"})

_PLAIN: dict[Any, Type] = {
    int: INT, float: FLOAT, bool: BOOL, str: STR, None: NONE, type(None): NONE, Any: ANY,
    object: ANY, bytes: Type("list", (INT,), "bytes"), bytearray: Type("list", (INT,), "bytes"),
    range: Type("list", (INT,), "range"), re.Pattern: Type("pattern"), re.Match: Type("match"),
    tuple: Type("list", (ANY,), "tuple"), list: Type("list", (ANY,), "list"),
    dict: Type("dict", (ANY, ANY)), set: Type("set", (ANY,)), frozenset: Type("set", (ANY,)),
}  # fmt: skip
_LISTS = (list, collections.abc.Sequence, collections.abc.Collection, collections.deque)
_LOOPS = (
    collections.abc.Iterable, collections.abc.Iterator, collections.abc.Generator,
    collections.abc.Reversible,
)  # fmt: skip
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping, collections.defaultdict)
_SETS = (set, frozenset, collections.abc.Set)


def of_hint(hint: Any) -> Type:
    """Return the type that an evaluated annotation means."""
    try:
        if hint in _PLAIN:
            return _PLAIN[hint]
    except TypeError:
        pass
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return union(map(of_hint, args))
    if origin is typing.Annotated:
        return of_hint(args[0])
    if origin is typing.Literal:
        return union(map(of_value, args))
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            return Type("list", (of_hint(args[0]),), "tuple")
        return Type("tuple", tuple(map(of_hint, args)))
    if origin is collections.Counter:
        return Type("dict", (of_hint(args[0]), INT), "counter")
    for classes, kind in ((_LISTS, "list"), (_LOOPS, "iterator"), (_DICTS, "dict"), (_SETS, "set")):
        if origin in classes:
            about = "list" if origin in (list, collections.deque) else None
            count = 2 if kind == "dict" else 1
            return Type(kind, tuple(map(of_hint, args[:count])), about)
    if origin in (re.Pattern, re.Match):
        return _PLAIN[origin]
    if origin is collections.abc.Callable:
        given = args[0] if isinstance(args[0], list) else []
        return Type("function", (*map(of_hint, given), of_hint(args[1])))
    if origin is type:
        return Type("class", about=args[0])
    if isinstance(hint, typing.TypeVar):
        return Type("var", about=hint.__name__)
    if inspect.isclass(hint):
        if getattr(hint, "_is_protocol", False) and "__call__" in vars(hint):
            return Type("function", about=hint)
        return Type("record", about=hint)
    return ANY


def of_value(value: Any) -> Type:
    """Return the type of a Python value."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return Type("record", about=type(value))
    if isinstance(value, tuple):
        parts = tuple(map(of_value, value))
        return Type("tuple", parts) if len(parts) < 9 else Type("list", (union(parts),), "tuple")
    if isinstance(value, collections.Counter):
        return Type("dict", (union(map(of_value, value)), INT), "counter")
    if isinstance(value, Mapping):
        return Type("dict", (union(map(of_value, value)), union(map(of_value, value.values()))))
    if isinstance(value, list):
        return Type("list", (union(map(of_value, value)),), "list")
    if isinstance(value, set | frozenset):
        return Type("set", (union(map(of_value, value)),))
    if isinstance(value, types.ModuleType):
        return Type("module", about=value)
    if inspect.isclass(value):
        return Type("class", about=value)
    if callable(value) and not dataclasses.is_dataclass(value):
        return Type("function", about=value)
    return of_hint(type(value))


def union(given: Iterable[Type]) -> Type:
    """Return the union of types; numbers merge into one type, and so do lists."""
    parts: list[Type] = []
    for one in given:
        parts += [p for p in (one.args if one.kind == "union" else (one,)) if p not in parts]
    if not parts or ANY in parts:
        return ANY
    empty = Type("tuple")
    if empty in parts and any(part.kind in LISTS for part in parts if part != empty):
        parts.remove(empty)
    if len(parts) == 1:
        return parts[0]
    if {part.kind for part in parts} <= {"int", "float"}:
        return FLOAT if FLOAT in parts else INT
    alike = {(part.kind, len(part.args)) for part in parts}
    if len(alike) == 1 and parts[0].kind in ("tuple", "list", "dict", "set"):
        inner = zip(*(part.args for part in parts), strict=True)
        known = {part.about for part in parts}
        about = parts[0].about if len(known) == 1 else None
        return Type(parts[0].kind, tuple(map(union, inner)), about)
    if {part.kind for part in parts} == {"tuple"}:
        return Type("list", (union(inner for part in parts for inner in part.args),), "tuple")
    if {part.kind for part in parts} == {"tuple", "list"}:
        return Type("list", (union(map(element, parts)),), "tuple")
    return Type("union", tuple(parts))


def without_none(given: Type) -> Type:
    """Return a type without None."""
    if given.kind != "union":
        return given
    return union(part for part in given.args if part != NONE)


def is_short(given: Type) -> bool:
    """Return whether a sequence has a fixed length, as a tuple with one type per element has."""
    return without_none(given).kind == "tuple"


def element(given: Type) -> Type:
    """Return the type of the items that a loop over a value gives; keys for a dictionary."""
    given = without_none(given)
    if given.kind in ("list", "iterator", "set", "dict") and given.args:
        return given.args[0]
    if given.kind == "tuple":
        return union(given.args) if given.args else ANY
    return STR if given.kind == "str" else ANY


def kinds(given: Type) -> frozenset[str]:
    """Return the kinds that a value of this type can have."""
    return frozenset(one.kind for one in (given.args if given.kind == "union" else (given,)))


def bind(wanted: Type, given: Type, found: dict[str, Type]) -> None:
    """Add to `found` the types that `given` implies for the type variables in `wanted`."""
    if wanted.kind == "var":
        found.setdefault(wanted.about, given)
    elif wanted.kind == "function" and given.kind == "function" and given.args and wanted.args:
        bind(wanted.args[-1], given.args[-1], found)
    elif wanted.kind in ("list", "iterator", "set") and wanted.args:
        bind(wanted.args[0], element(given), found)
    elif wanted.kind == given.kind and len(wanted.args) == len(given.args):
        for one, other in zip(wanted.args, given.args, strict=True):
            bind(one, other, found)


def bound(given: Type, found: Mapping[str, Type]) -> Type:
    """Return a type with its type variables replaced by their types in `found`."""
    if given.kind == "var":
        return found.get(given.about, ANY)
    return dataclasses.replace(given, args=tuple(bound(one, found) for one in given.args))


def compared(cls: type) -> list[tuple[str, bool]]:
    """Return each field of a record with whether it counts in comparisons."""
    if dataclasses.is_dataclass(cls):
        return [(field.name, field.compare) for field in dataclasses.fields(cls)]
    return [(name, True) for name in getattr(cls, "_fields", ())]
