"""Which tests hold a formula, and how closely, as a page says it; written from the tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Held:
    """A test by its path and name, and what it allows: "1e-8 relative", "equal"."""

    test: str
    within: str


def held_by(formula: str) -> tuple[Held, ...]:
    """The tests of a formula: its point of the catalogue, then one of another kind if any.

    None of a formula that an author writes now; `make golden` notes them.
    """
    return _table().get(formula, ())


@cache
def _table() -> Mapping[str, tuple[Held, ...]]:
    text = (resources.files("figgen.formulas") / "held.json").read_text("utf-8")
    return {name: tuple(Held(**row) for row in rows) for name, rows in json.loads(text).items()}
