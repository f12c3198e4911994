"""The frozen split of the leaderboard, and what other predictors answered on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from figgen.catalog import load

FILE = "leaderboard.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """A predictor with its version, where it is from, and its seconds by run of the split."""

    name: str
    version: str
    source: str
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenSplit:
    """Measured seconds by run, by publisher, as they were on the day; and who entered."""

    date: str
    publishers: Mapping[str, Mapping[str, float]]
    entrants: tuple[Entrant, ...]


@cache
def frozen_split() -> FrozenSplit:
    """The split as its file has it."""
    held = json.loads(load.content(FILE))
    entrants = (Entrant(name=name, **facts) for name, facts in held["entrants"].items())
    return FrozenSplit(date=held["date"], publishers=held["runs"], entrants=tuple(entrants))
