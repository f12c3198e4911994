"""Print stored lookups (`figgen.lookups.stored`) as tables of their answers."""

from __future__ import annotations

import ast
import inspect
import re
import typing
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any

from figgen.translation.code import listed, quoted
from figgen.translation.sources import Place, place_of
from figgen.translation.statements import Statements
from figgen.translation.types import FLOAT, without_none

_BEGIN, _MEANS, _END = "\x01", "\x02", "\x03"
_MARK = "stored_names"
_FIELD = re.compile(f"{_BEGIN}([^{_MEANS}]*){_MEANS}([^{_BEGIN}{_END}]*){_END}")


class AnswerPrinter(Statements):
    """Print records, and lookups with all their answers."""

    answering = False

    def data(self, value: Any, node: ast.AST) -> str:
        """Print a value of numbers, strings, tuples, dictionaries and records."""
        raise NotImplementedError

    def answers(self, node: ast.FunctionDef) -> str:
        """Print a stored lookup, which constructs an answer when it is first needed."""
        self.answering = True
        find = self.source.names[node.name]
        names = vars(find)[_MARK]
        if names is None:
            return f"{self.help('cached')}(() => {self.whole(find(), node)}, 1)"
        made = [f"[{quoted(name)}, () => {self.whole(find(name), node)}]" for name in names()]
        kind = quoted(node.name.replace("_", " "))
        return f"{self.help('stored')}({kind}, new Map([{listed(made)}]))"

    def record_data(self, value: Any, node: ast.AST) -> str:
        """Print a record; within an answer, a record that has its own lookup becomes a call."""
        place = self.lookup_of(value) if self.answering else None
        if place is None:
            return self.whole(value, node)
        return f"{self.reference(place, node).text}({quoted(value.name)})"

    def lookup_of(self, value: Any) -> Place | None:
        """Return the stored lookup of this module that returns this record for its name."""
        for name, find, cls in self.lookups:
            names = vars(find)[_MARK]
            if isinstance(value, cls) and value.name in names() and find(value.name) is value:
                return Place(self.source.module.__name__, name)
        return None

    @cached_property
    def lookups(self) -> list[tuple[str, Callable[[str], Any], Any]]:
        """Return the module's stored lookups of names, each with the class of its answers."""
        marked = {
            name: find
            for name, find in self.source.names.items()
            if inspect.isfunction(find) and vars(find).get(_MARK) is not None
        }
        return [
            (name, find, typing.get_type_hints(find)["return"]) for name, find in marked.items()
        ]

    def whole(self, value: Any, node: ast.AST) -> str:
        """Print a record by its fields, which are marked for `with_fields` in an answer."""
        cls = type(value)
        place = place_of(cls.__module__, cls.__name__)
        assert place is not None
        parts = []
        for name, hint in self.fields(cls, node):
            given = getattr(value, name)
            # Datasheets write 1.5e16 without a decimal point.
            is_whole = isinstance(given, int) and without_none(hint) == FLOAT
            shown = self.data(float(given) if is_whole else given, node)
            if self.answering:
                shown = f"{_BEGIN}{_owner(cls, name)}{_MEANS}{shown}{_END}"
            parts.append(shown)
        return f"new {self.reference(place, node).text}({listed(parts)})"


def with_fields(
    text: str, found: Mapping[str, set[str]], members: Collection[str] | None = None
) -> str:
    """Return printed answers in which fields that nothing reads are null."""

    def shown(match: re.Match[str]) -> str:
        module, _, member = match[1].partition(":")
        cls, _, field = member.partition(".")
        names = found.get(module, set())
        is_read = not cls or members is None or f".{field}" in members
        return match[2] if is_read or {member, f"{cls}.*"} & names else "null"

    count = 1
    while count:
        text, count = _FIELD.subn(shown, text)
    return text


def _owner(cls: type, name: str) -> str:
    """Return the key under which reads of a field are recorded, or "" if they aren't."""
    owner = next((base for base in cls.__mro__ if name in vars(base)), None)
    return f"{owner.__module__}:{owner.__name__}.{name}" if owner else ""
