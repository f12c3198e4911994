"""Pieces of JavaScript that know how tightly they hold together and what type they have."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from figgen.errors import InputError
from figgen.translation.types import ANY, LISTS, NUMBERS, SCALARS, Type, kinds, without_none


class Level(IntEnum):
    """How tightly an expression holds together; an operand that is looser gets parentheses."""

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
    """An expression: its text, how tightly it holds together, and its type."""

    text: str
    level: Level = Level.ATOM
    type: Type = ANY

    def within(self, least: Level) -> str:
        """The text where nothing looser than `least` may stand."""
        return self.text if self.level >= least else f"({self.text})"

    def typed(self, type: Type) -> Code:
        """The same with another type."""
        return replace(self, type=type)

    @property
    def atom(self) -> str:
        """The text where a member or a call follows."""
        return self.within(Level.ATOM)


_WORDS = (
    "arguments case catch const debugger default delete do enum eval export extends function",
    "implements instanceof interface let new null package private protected public static super",
    "switch this throw true false typeof undefined var void with yield await",
)
RESERVED = frozenset(word for line in _WORDS for word in line.split(" "))


def identifier(name: str) -> str:
    """A name that is no word of JavaScript."""
    return f"{name}_" if name in RESERVED else name


def quoted(text: str) -> str:
    """A text as JavaScript writes it."""
    return json.dumps(text, ensure_ascii=False)


def binary(left: Code, sign: str, right: Code, level: Level, type: Type) -> Code:
    """`left sign right`, computed from left to right."""
    shown = f"{left.within(level)} {sign} {right.within(Level(_above(level)))}"
    return Code(shown, level, type)


def _above(level: Level) -> Level:
    return min(one for one in Level if one > level)


def array(code: Code) -> Code:
    """What one can go over, as an array that nothing else holds or that is only read."""
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
    """What a loop goes over."""
    keys = without_none(code.type).kind == "dict"
    return f"{code.atom}.keys()" if keys else code.text


def truth(code: Code) -> Code:
    """A condition that holds where Python takes the value for true."""
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
    """Whether JavaScript takes the same values for true."""
    return truth(Code("x", type=given)).text == "x"


def is_plain(given: Type) -> bool:
    """Whether equality is JavaScript's own."""
    return kinds(given) <= SCALARS | {"function", "class"}


def is_number(given: Type) -> bool:
    """Whether it is a number for certain."""
    return kinds(given) <= NUMBERS


def is_list(given: Type) -> bool:
    """Whether it is an array for certain."""
    return kinds(without_none(given)) <= LISTS


def refused(path: str, node: ast.AST, why: str) -> InputError:
    """The error for what cannot be printed, with file and line."""
    line = getattr(node, "lineno", 0)
    return InputError(f"{path}:{line}: cannot print {why}", got=ast.unparse(node)[:80])


def listed(parts: Iterable[str]) -> str:
    """Texts with commas."""
    return ", ".join(parts)
