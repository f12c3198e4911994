"""Pieces of JavaScript with their precedence and type."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from figgen.errors import InputError
from figgen.translation.types import ANY, LISTS, NUMBERS, SCALARS, Type, kinds, without_none


class Level(IntEnum):
    """The precedence of an expression; an operand of lower precedence gets parentheses."""

    ARROW = 1
    CHOICE = 2
    OR = 3
    AND = 4
    EQUAL = 8
    RELATION = 9
    SUM = 11
    PRODUCT = 12
    POWER = 13
    UNARY = 14
    ATOM = 18


@dataclass(frozen=True, slots=True)
class Code:
    """An expression: its text, its precedence, and its type."""

    text: str
    level: Level = Level.ATOM
    type: Type = ANY

    def within(self, least: Level) -> str:
        """Return the text, in parentheses if its precedence is below `least`."""
        return self.text if self.level >= least else f"({self.text})"

    def typed(self, type: Type) -> Code:
        """Return the same code with a different type."""
        return replace(self, type=type)

    @property
    def atom(self) -> str:
        """The text as it must be before a member access or a call."""
        return self.within(Level.ATOM)


_WORDS = (
    "arguments case catch const debugger default delete do enum eval export extends function",
    "implements instanceof interface let new null package private protected public static super",
    "switch this throw true false typeof undefined var void with yield await",
)
RESERVED = frozenset(word for line in _WORDS for word in line.split(" "))


def identifier(name: str) -> str:
    """Return a name that is not a reserved word of JavaScript."""
    return f"{name}_" if name in RESERVED else name


def quoted(text: str) -> str:
    """Return a string as a JavaScript literal."""
    return json.dumps(text, ensure_ascii=False)


def binary(left: Code, sign: str, right: Code, level: Level, type: Type) -> Code:
    """Return `left sign right` for a left-associative operator."""
    shown = f"{left.within(level)} {sign} {right.within(Level(_above(level)))}"
    return Code(shown, level, type)


def _above(level: Level) -> Level:
    return min(one for one in Level if one > level)


def array(code: Code) -> Code:
    """Convert an iterable to an array; a list or tuple is returned as it is, not copied."""
    given = without_none(code.type)
    if given.kind in ("list", "tuple"):
        return code
    item = given.args[0] if given.args else ANY
    if given.kind == "dict":
        return Code(f"[...{code.atom}.keys()]", type=Type("list", (item,), "list"))
    if given.kind == "str":
        return Code(f"[...{code.text}]", type=Type("list", (given,), "list"))
    return Code(f"[...{code.within(Level.ARROW)}]", type=Type("list", (item,), "list"))


def loop(code: Code) -> str:
    """Return the text of an iterable for `for … of`; for a dictionary, its keys."""
    keys = without_none(code.type).kind == "dict"
    return f"{code.atom}.keys()" if keys else code.text


def truth(code: Code) -> Code:
    """Return a condition that is true where Python considers the value true."""
    given = without_none(code.type)
    found = kinds(given)
    optional = given != code.type
    if found <= SCALARS | {"record", "match", "function", "class", "pattern"}:
        return code
    member = {"list": "length", "tuple": "length", "dict": "size", "set": "size"}
    names = {member.get(kind) for kind in found}
    if len(names) == 1 and None not in names:
        name = next(iter(names))
        return Code(f"{code.atom}{'?.' if optional else '.'}{name}", type=Type("int"))
    return Code(f"$truth({code.text})", type=Type("bool"))


def is_native(given: Type) -> bool:
    """Return whether JavaScript considers the same values of a type true as Python does."""
    return truth(Code("x", type=given)).text == "x"


def is_plain(given: Type) -> bool:
    """Return whether `===` compares values of a type as Python's `==` does."""
    return kinds(given) <= SCALARS | {"function", "class"}


def is_number(given: Type) -> bool:
    """Return whether a type can only be a number."""
    return kinds(given) <= NUMBERS


def is_list(given: Type) -> bool:
    """Return whether a type can only be an array."""
    return kinds(without_none(given)) <= LISTS


def refused(path: str, node: ast.AST, why: str) -> InputError:
    """Return the error for a node that cannot be printed, with file and line."""
    line = getattr(node, "lineno", 0)
    return InputError(f"{path}:{line}: cannot print {why}", got=ast.unparse(node)[:80])


def listed(parts: Iterable[str]) -> str:
    """Join strings with commas."""
    return ", ".join(parts)
