"""The errors of predictions for each class of runs, as `figgen calibrate` wrote them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from figgen.catalog.load import content


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """Measured over predicted times of a class: eight in ten lie between `low` and `high`.

    The interval is for a publisher who had no part in it. It comes from these `publishers`.
    """

    name: str
    publishers: int
    runs: int
    low: float
    high: float


@cache
def residuals() -> Mapping[str, Residuals]:
    """Return the errors of each class by name."""
    held = tomllib.loads(content("residuals.toml"))
    return {name: Residuals(name=name, **entry) for name, entry in held.items()}
