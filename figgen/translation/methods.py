"""Print methods of the built-in types."""

from __future__ import annotations

import ast
from collections.abc import Callable

from figgen.translation.built_in import BuiltIn
from figgen.translation.code import Code, Level, array, is_list, listed
from figgen.translation.types import ANY, BOOL, INT, NONE, STR, Type, element, kinds, union

Method = Callable[[BuiltIn, Code, Type, ast.Call], Code]


def _as(text: str, result: Callable[[Type], Type]) -> Method:
    """Print a method by a template: `{0}` the value, `{1}` … the arguments, `{all}` up to two.

    More arguments than the template has are refused, because JavaScript would ignore them.
    """
    most = 2 if "{all}" in text else sum(f"{{{at}}}" in text for at in (1, 2))

    def call(calls: BuiltIn, value: Code, given: Type, node: ast.Call) -> Code:
        parts = [calls.expression(one).text for one in node.args]
        if node.keywords:
            raise calls.no(node, "a keyword of a method")
        if len(parts) > most:
            raise calls.no(node, f"a method with {len(parts)} arguments")
        helper = text.split("(")[0]
        if helper.isidentifier() and helper[0].islower():
            shown = calls.help(helper) + text[len(helper) :]
        else:
            shown = text
        shown = shown.format(value.atom, *parts, all=listed(parts), value=value.text)
        return Code(shown, type=result(given))

    return call


def _replace(calls: BuiltIn, value: Code, given: Type, node: ast.Call) -> Code:
    """Print the replacement of every occurrence, or of the first."""
    if len(node.args) == 2:
        return _as("{0}.replaceAll({1}, {2})", _always(STR))(calls, value, given, node)
    if not isinstance(node.args[2], ast.Constant) or node.args[2].value != 1:
        raise calls.no(node, "a replacement of several occurrences")
    old, new = (calls.expression(one).text for one in node.args[:2])
    # A function's result is taken as it is; `$` in a text has a meaning.
    return Code(f"{value.atom}.replace({old}, () => {new})", type=STR)


def _always(type: Type) -> Callable[[Type], Type]:
    return lambda given: type


def _item(given: Type) -> Type:
    return element(given)


def _join(calls: BuiltIn, value: Code, given: Type, node: ast.Call) -> Code:
    items = array(calls.expression(node.args[0], Type("iterator", (STR,))))
    return Code(f"{items.atom}.join({value.text})", type=STR)


def _starts(name: str) -> Method:
    def call(calls: BuiltIn, value: Code, given: Type, node: ast.Call) -> Code:
        start, *where = [calls.expression(one) for one in node.args]
        if where and name == "endsWith":
            raise calls.no(node, "endswith with a position")
        if is_list(start.type):
            # `$part` is not a Python name, so it cannot clash with a name in the value.
            parts = listed(["$part", *(one.text for one in where)])
            return Code(f"{start.atom}.some(($part) => {value.atom}.{name}({parts}))", type=BOOL)
        parts = listed(one.text for one in (start, *where))
        return Code(f"{value.atom}.{name}({parts})", type=BOOL)

    return call


def _extend(calls: BuiltIn, value: Code, given: Type, node: ast.Call) -> Code:
    return calls.extended(value, calls.expression(node.args[0], given))


def _union(calls: BuiltIn, value: Code, given: Type, node: ast.Call) -> Code:
    sets = calls.sequence(node.args, "list", ANY)
    return Code(f"{calls.help('united')}({value.text}, {sets.text})", type=given)


def _sort(calls: BuiltIn, value: Code, given: Type, node: ast.Call) -> Code:
    options = calls.options(node, value, ("key", "reverse"))
    return Code(f"{calls.help('sort')}({value.text}{options})", type=NONE)


def _pop(calls: BuiltIn, value: Code, given: Type, node: ast.Call) -> Code:
    if not node.args:
        return Code(f"{value.atom}.pop()", type=element(given))
    if ast.unparse(node.args[0]) == "0":
        return Code(f"{value.atom}.shift()", type=element(given))
    at = calls.expression(node.args[0]).text
    return Code(f"{value.atom}.splice({at}, 1)[0]", type=element(given))


def _get(calls: BuiltIn, value: Code, given: Type, node: ast.Call) -> Code:
    key = calls.expression(node.args[0]).text
    if len(node.args) == 1:
        return Code(f"{value.atom}.get({key}) ?? null", Level.CHOICE, union((given.args[1], NONE)))
    other = calls.expression(node.args[1], given.args[1])
    found = union((given.args[1], other.type)) if given.args[1] != ANY else ANY
    if "none" in kinds(given.args[1]):
        text = f"{calls.help('got')}({value.text}, {key}, {other.text})"
        return Code(text, type=found)
    return Code(f"{value.atom}.get({key}) ?? {other.within(Level.UNARY)}", Level.CHOICE, found)


def _taken(calls: BuiltIn, value: Code, given: Type, node: ast.Call) -> Code:
    parts = [calls.expression(one, given.args[at]) for at, one in enumerate(node.args)]
    shown = listed([value.text, *(one.text for one in parts)])
    types = (given.args[1], *(one.type for one in parts[1:]))
    return Code(f"{calls.help('take')}({shown})", type=union(types))


def _default(calls: BuiltIn, value: Code, given: Type, node: ast.Call) -> Code:
    key, other = (
        calls.expression(one, hint) for one, hint in zip(node.args, given.args, strict=True)
    )
    shown = f"{calls.help('setdefault')}({value.text}, {key.text}, {other.text})"
    return Code(shown, type=given.args[1] if given.args[1] != ANY else other.type)


def _items(calls: BuiltIn, value: Code, given: Type, node: ast.Call) -> Code:
    return Code(f"{value.atom}.entries()", type=Type("iterator", (Type("tuple", given.args),)))


LIST: dict[str, Method] = {
    "append": _as("{0}.push({1})", _always(NONE)), "extend": _extend, "sort": _sort, "pop": _pop,
    "popleft": _as("{0}.shift()", _item), "index": _as("{0}.indexOf({all})", _always(INT)),
    "insert": _as("{0}.splice({1}, 0, {2})", _always(NONE)),
    "reverse": _as("{0}.reverse()", _always(NONE)), "copy": _as("[...{value}]", lambda t: t),
    "count": _as("{0}.filter(($part) => $part === {1}).length", _always(INT)),
    "appendleft": _as("{0}.unshift({1})", _always(NONE)),
}  # fmt: skip
DICT: dict[str, Method] = {
    "get": _get, "items": _items, "pop": _taken, "setdefault": _default,
    "keys": _as("{0}.keys()", lambda t: Type("iterator", (t.args[0],))),
    "values": _as("{0}.values()", lambda t: Type("iterator", (t.args[1],))),
    "update": _as("updated({value}, {1})", _always(NONE)),
    "copy": _as("new Map({value})", lambda t: t),
}  # fmt: skip
SET: dict[str, Method] = {
    "add": _as("{0}.add({1})", _always(NONE)), "remove": _as("{0}.delete({1})", _always(NONE)),
    "discard": _as("{0}.delete({1})", _always(NONE)),
    "isdisjoint": _as("disjoint({value}, {1})", _always(BOOL)),
    "issubset": _as("subset({value}, {1})", _always(BOOL)),
    "intersection": _as("common({value}, new Set({1}))", lambda t: t),
    "union": _union,
    "update": _as("updated({value}, {1})", _always(NONE)),
}  # fmt: skip
_TEXT, _TEXTS, _TRUE = _always(STR), _always(Type("list", (STR,), "list")), _always(BOOL)
STRING: dict[str, Method] = {
    "join": _join, "startswith": _starts("startsWith"), "endswith": _starts("endsWith"),
    "split": _as("split({value}, {all})", _TEXTS),
    "strip": _as("strip({value}, {all})", _TEXT), "lstrip": _as("lstrip({value}, {all})", _TEXT),
    "rstrip": _as("rstrip({value}, {all})", _TEXT),
    "partition": _as("partition({value}, {1})", _always(Type("tuple", (STR, STR, STR)))),
    "rpartition": _as("rpartition({value}, {1})", _always(Type("tuple", (STR, STR, STR)))),
    "find": _as("{0}.indexOf({all})", _always(INT)),
    "rfind": _as("{0}.lastIndexOf({1})", _always(INT)),
    "replace": _replace, "lower": _as("{0}.toLowerCase()", _TEXT),
    "upper": _as("{0}.toUpperCase()", _TEXT), "casefold": _as("{0}.toLowerCase()", _TEXT),
    "splitlines": _as("{0}.split(/\\r\\n|\\n|\\r/)", _TEXTS),
    "removeprefix": _as("removeprefix({value}, {1})", _TEXT),
    "removesuffix": _as("removesuffix({value}, {1})", _TEXT),
    "isdigit": _as("/^[0-9]+$/.test({value})", _TRUE),
    "isdecimal": _as("/^[0-9]+$/.test({value})", _TRUE),
    "isidentifier": _as("/^[A-Za-z_][A-Za-z0-9_]*$/.test({value})", _TRUE),
    "isalnum": _as("/^[A-Za-z0-9]+$/.test({value})", _TRUE),
    "isalpha": _as("/^[A-Za-z]+$/.test({value})", _TRUE),
    "isspace": _as("/^\\s+$/.test({value})", _TRUE),
    "count": _as("({0}.split({1}).length - 1)", _always(INT)),
}  # fmt: skip
WHOLE: dict[str, Method] = {
    "bit_length": _as("({0} ? {0}.toString(2).length : 0)", _always(INT)),
}
MATCH: dict[str, Method] = {
    "groups": _as("{0}.slice(1)", _always(Type("list", (STR,), "tuple"))),
    "start": _as("{0}.index", _always(INT)),
    "end": _as("({0}.index + {0}[0].length)", _always(INT)),
}  # fmt: skip
