"""Which numbers are the same quantity, as `quantities.toml` says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from figgen.agreement.asked import by_layout, by_step
from figgen.agreement.expand import expanded, plain
from figgen.agreement.numbers import Kind, Number
from figgen.errors import InputError, unknown
from figgen.formulas import FORMULAS

TABLE = Path(__file__).with_name("quantities.toml")
KINDS: tuple[Kind, ...] = ("formula", "lookup", "figure")
EXPANSIONS = ("machine", "shape", "recipe", "accelerator", "step", "layout")
CONDITIONS = ("when", "unless")
NAMING = ("convention", "words")
KEYS = (*KINDS, "value", "given", "as", "from", "without", *CONDITIONS, *EXPANSIONS, *NAMING)


@dataclass(frozen=True, slots=True)
class Way:
    """One way to a quantity: a formula, a field of the catalog, or values of a figure.

    `value` is the name of the values, with what they are of in braces, `{schedule}_idle`, or one of
    several: `exposed_{axis:tp|cp}`.
    `given` are inputs that the way implies, `names` its own names of inputs that go by another,
    `values` inputs that are other values of the same figure, `without` parameters that this value
    does not depend on, `when` parameters that must be so.
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
    machine: str = ""
    accelerator: Mapping[str, str] = field(default_factory=dict)
    shape: tuple[str, ...] = ()
    recipe: tuple[str, ...] = ()
    step: tuple[str, ...] = ()
    layout: tuple[str, ...] = ()
    convention: str = ""
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.source}: {self.value}" if self.kind == "figure" else self.source

    def inputs(self, number: Number) -> dict[str, object] | None:
        """What a number depends on, by the names that all ways have; None where it is not of it."""
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
            if self.step:
                found = by_step(found, asked, self.step)
            if self.layout:
                found = by_layout(found, asked, self.layout)
            found = expanded(found, self)
        except (KeyError, InputError):  # a name that matches, but is nothing of the catalog
            return None
        if any(found.get(name) == plain(wanted) for name, wanted in self.unless.items()):
            return None
        return {
            self.names.get(name, name): value
            for name, value in found.items()
            if name not in self.unless and value is not None and value not in ("", ())
        }


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity with its convention in words, and the ways in which the site comes to it."""

    name: str
    unit: str
    convention: str
    ways: tuple[Way, ...]


def _number(text: str) -> object:
    return int(text) if text.isdecimal() else text


@cache
def _pattern(value: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+(?::[^}]+)?)\}", value)
    return re.compile("".join(
        _wildcard(*part.split(":")) if index % 2 else re.escape(part)
        for index, part in enumerate(parts)
    ))  # fmt: skip


def _wildcard(name: str, choices: str = ".+") -> str:
    return f"(?P<{name}>{choices})"


@cache
def quantities(table: Path = TABLE) -> tuple[Quantity, ...]:
    """The table.  Raises InputError for a key or a formula that does not exist."""
    entries = tomllib.loads(table.read_text(encoding="utf-8"))
    return tuple(_quantity(name, entry) for name, entry in entries.items())


def _quantity(name: str, entry: dict[str, Any]) -> Quantity:
    ways = tuple(way for given in entry["ways"] for way in _ways(name, given))
    return Quantity(name.replace("_", " "), entry["unit"], entry["convention"], ways)


def _ways(quantity: str, entry: dict[str, Any]) -> Iterator[Way]:
    for key in entry:
        if key not in KEYS:
            raise unknown(f"key of a way to {quantity}", key, KEYS)
    kind = next((kind for kind in KINDS if kind in entry), None)
    if kind is None:
        raise InputError(f"a way to {quantity}", expected=f"one of {', '.join(KINDS)}", got=entry)
    source = entry[kind]
    if kind == "formula" and source not in FORMULAS:
        raise unknown(f"formula of {quantity}", source, FORMULAS)
    values = entry.get("value", source)
    for value in values if isinstance(values, list) else [values]:
        yield Way(
            kind,
            source,
            value,
            entry.get("given", {}),
            entry.get("as", {}),
            entry.get("from", {}),
            tuple(entry.get("without", ())),
            entry.get("when", {}),
            entry.get("unless", {}),
            entry.get("machine", ""),
            entry.get("accelerator", {}),
            tuple(entry.get("shape", ())),
            tuple(entry.get("recipe", ())),
            tuple(entry.get("step", ())),
            tuple(entry.get("layout", ())),
            entry.get("convention", ""),
            tuple(entry.get("words", ())),
        )
