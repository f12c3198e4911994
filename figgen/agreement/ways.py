"""Read the subject's table of quantities, which says which numbers are the same quantity."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from figgen.agreement.inputs import plain
from figgen.agreement.numbers import Kind, Number
from figgen.errors import InputError, unknown
from figgen.registry import all_formulas
from figgen.subject import Subject, subject

NUMBER_KINDS: tuple[Kind, ...] = ("formula", "lookup", "figure")
CONDITIONS = ("when", "unless")
NAMING = ("convention", "words")
KEYS = (*NUMBER_KINDS, "value", "given", "as", "from", "without", *CONDITIONS, *NAMING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to compute a quantity: a formula, a catalog field, or values of a figure.

    `value` is the name of the values, with inputs in braces: `{schedule}_idle`, or with choices:
    `exposed_{axis:tp|cp}`.
    `given` are inputs that the way implies, `names` maps its own names of inputs to shared names,
    `values` are inputs that are other values of the same figure, `without` parameters that do not
    affect the value, `when` required and `unless` excluded values of parameters, and `expansions`
    the subject's keys with their values.
    """

    kind: Kind
    source: str
    value: str
    given: Mapping[str, object] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    when: Mapping[str, object] = field(default_factory=dict)
    unless: Mapping[str, object] = field(default_factory=dict)
    expansions: Mapping[str, object] = field(default_factory=dict)
    convention: str = ""
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.source}: {self.value}" if self.kind == "figure" else self.source

    def inputs(self, number: Number) -> dict[str, object] | None:
        """Return the inputs of a number by their shared names; None if the way does not apply."""
        match = _pattern(self.value).fullmatch(number.name)
        if (number.kind, number.source) != (self.kind, self.source) or not match:
            return None
        given = {name: plain(value) for name, value in number.inputs.items()}
        if any(given.get(name) != plain(wanted) for name, wanted in self.when.items()):
            return None
        if any(given.get(name) == plain(wanted) for name, wanted in self.unless.items()):
            return None
        found = {
            name: value
            for name, value in given.items()
            if name not in self.without and name not in self.when
        }
        found |= {name: plain(_number(part)) for name, part in match.groupdict().items()}
        found |= {name: number.beside[of] for name, of in self.values.items()}
        implied = {name: plain(value) for name, value in self.given.items()}
        if any(found.get(name, value) != value for name, value in implied.items()):
            return None
        found |= implied
        asked = dict(number.inputs) | match.groupdict()
        try:
            for key, expand in subject().expansions().items():
                if key in self.expansions:
                    found = expand(found, asked, self.expansions[key])
        except (KeyError, InputError):  # a name that matches but is not in the catalog
            return None
        if any(found.get(name) == plain(wanted) for name, wanted in self.unless.items()):
            return None
        return {
            self.names.get(name, name): value
            for name, value in found.items()
            if name not in self.unless and value is not None and value not in ("", ())
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedQuantity:
    """A quantity with its convention in words, and the ways in which the site computes it."""

    name: str
    unit: str
    convention: str
    ways: tuple[Way, ...]


def _number(text: str) -> object:
    return int(text) if text.isdecimal() else text


@cache
def _pattern(value: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+(?::[^}]+)?)\}", value)
    return re.compile(
        "".join(
            _wildcard(*part.split(":")) if index % 2 else re.escape(part)
            for index, part in enumerate(parts)
        )
    )


def _wildcard(name: str, choices: str = ".+") -> str:
    return f"(?P<{name}>{choices})"


def quantities(table: Path | None = None) -> tuple[ComparedQuantity, ...]:
    """Return the table of quantities, by default the subject's.

    Raises InputError for a key or a formula that does not exist.
    """
    return _quantities(table or subject().quantities, subject())


@cache
def _quantities(table: Path | None, about: Subject) -> tuple[ComparedQuantity, ...]:
    """Return the table of quantities. A server that reloads code or data has a new subject."""
    if table is None:
        return ()
    entries = tomllib.loads(table.read_text(encoding="utf-8"))
    return tuple(_quantity(name, entry) for name, entry in entries.items())


def _quantity(name: str, entry: dict[str, Any]) -> ComparedQuantity:
    ways = tuple(way for given in entry["ways"] for way in _ways(name, given))
    return ComparedQuantity(
        name=name.replace("_", " "), unit=entry["unit"], convention=entry["convention"], ways=ways
    )


def _ways(quantity: str, entry: dict[str, Any]) -> Iterator[Way]:
    expansions = subject().expansions()
    for key in entry:
        if key not in KEYS and key not in expansions:
            raise unknown(f"key of a way to compute {quantity}", key, [*KEYS, *expansions])
    kind = next((kind for kind in NUMBER_KINDS if kind in entry), None)
    if kind is None:
        raise InputError(
            f"a way to compute {quantity}", expected=f"one of {', '.join(NUMBER_KINDS)}", got=entry
        )
    source = entry[kind]
    if kind == "formula" and source not in all_formulas():
        raise unknown(f"formula of {quantity}", source, all_formulas())
    values = entry.get("value", source)
    for value in values if isinstance(values, list) else [values]:
        yield Way(
            kind=kind,
            source=source,
            value=value,
            given=entry.get("given", {}),
            names=entry.get("as", {}),
            values=entry.get("from", {}),
            without=tuple(entry.get("without", ())),
            when=entry.get("when", {}),
            unless=entry.get("unless", {}),
            expansions={key: _frozen(entry[key]) for key in expansions if key in entry},
            convention=entry.get("convention", ""),
            words=tuple(entry.get("words", ())),
        )


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
