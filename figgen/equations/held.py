"""The tests of each formula and their tolerances, as recorded from the tests for pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from figgen.equations.definition import Formula


@dataclass(frozen=True, slots=True)
class Held:
    """A test, by path and name, and its tolerance: "1e-8 relative", "equal"."""

    test: str
    within: str


def held_by(formula: Formula) -> tuple[Held, ...]:
    """Return a formula's tests: its row of `points.json`, then a test of a different kind, if any.

    They are read from `held.json`.  A new formula has none until `make golden` records them.
    """
    written = Path(formula.function.__code__.co_filename)
    return _table(written.with_name("held.json")).get(formula.name, ())


@cache
def _table(file: Path) -> Mapping[str, tuple[Held, ...]]:
    if not file.is_file():
        return {}
    text = file.read_text("utf-8")
    return {name: tuple(Held(**row) for row in rows) for name, rows in json.loads(text).items()}
