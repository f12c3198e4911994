"""A validated table of a catalog file, and the conversion to the object it describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

from figgen.entries.schema import Value
from figgen.errors import EntryPlace

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One validated table: its values, words and flags, and the provenance of the entry."""

    place: EntryPlace
    source: str
    seen: str
    confidence: str
    note: str
    values: Mapping[str, Value] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, bool] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.place.entry

    def whole(self, key: str, default: int = 0) -> int:
        """Return the count under `key`, or `default` if the entry lacks it."""
        found = self.values.get(key)
        return default if found is None else int(found.value)

    def plain(self, key: str) -> float | None:
        """Return the number under `key` in SI, or None."""
        found = self.values.get(key)
        return None if found is None else found.value

    def optional(self, key: str) -> int | None:
        """Return the count under `key`, or None."""
        return self.whole(key) if key in self.values else None

    @property
    def facts(self) -> tuple[tuple[str, Value], ...]:
        """Every value with its provenance, in the file's order."""
        return tuple(self.values.items())

    def fill(self, kind: Callable[..., Thing], **given: object) -> Thing:
        """Construct a `kind` whose fields are the keys of the same name, except those `given`.

        Fields that the entry lacks get their default, or None, 0, "" or False by their type.
        """
        known: dict[str, object] = {
            "name": self.name,
            "source": self.source,
            "note": self.note,
            "facts": self.facts,
            **self.words,
            **self.flags,
            **given,
        }
        return kind(
            **{
                name: known[name] if name in known else self._filled(name, types, default)
                for name, types, default in _fields(kind)
            }
        )

    def _filled(self, name: str, types: tuple[Any, ...], default: object) -> object:
        if name in self.values:
            value = self.values[name]
            if Value in types:
                return value
            return int(value.value) if int in types else value.value
        if default is not MISSING:
            return default
        return None if NoneType in types else types[0]()


@cache
def _fields(kind: Any) -> tuple[tuple[str, tuple[Any, ...], object], ...]:
    """Return the fields of a dataclass: name, allowed types, and default."""
    hints = get_type_hints(kind)
    return tuple(
        (each.name, get_args(hints[each.name]) or (hints[each.name],), each.default)
        for each in fields(kind)
    )
