"""The frozen split of the leaderboard, and the answers of other predictors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from figgen.catalog import load

FILE = "leaderboard.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """A predictor with its version, its origin, and its seconds by run of the split."""

    name: str
    version: str
    source: str
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenSplit:
    """Measured seconds by run and publisher on the day of the freeze, and the entrants."""

    date: str
    publishers: Mapping[str, Mapping[str, float]]
    entrants: tuple[Entrant, ...]


@cache
def frozen_split() -> FrozenSplit:
    """Return the split in its file."""
    held = json.loads(load.content(FILE))
    entrants = (Entrant(name=name, **facts) for name, facts in held["entrants"].items())
    return FrozenSplit(date=held["date"], publishers=held["runs"], entrants=tuple(entrants))
