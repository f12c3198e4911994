"""The table of where each entry of the formula catalog is computed, from `coverage.toml`."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources

from figgen.equations.definition import FORMULAS
from figgen.errors import InputError

COVERED_KINDS = ("formula", "model", "test", "identity")


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """An entry of the formula catalog;

    `name` is a formula, or the dotted path of something else.
    """

    id: str
    title: str
    kind: str
    name: str
    note: str


@functools.cache
def coverage() -> tuple[Covered, ...]:
    """Return all entries in the catalog's order.

    Raises InputError for an entry that has no title, is of an unknown kind, or names no formula.
    """
    text = (resources.files("figgen.formulas") / "coverage.toml").read_text("utf-8")
    found = []
    for key, entry in tomllib.loads(text).items():
        if (
            entry.keys() - {"note"} != {"title", "kind", "name"}
            or entry["kind"] not in COVERED_KINDS
        ):
            raise InputError(f"coverage.toml: [{key}]", expected="title, kind, name, maybe a note")
        if entry["kind"] == "formula" and entry["name"] not in FORMULAS:
            raise InputError(f"coverage.toml: [{key}]", expected="a formula", got=entry["name"])
        found.append(
            Covered(
                id=key,
                title=entry["title"],
                kind=entry["kind"],
                name=entry["name"],
                note=entry.get("note", ""),
            )
        )
    return tuple(found)
