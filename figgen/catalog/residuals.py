"""How far off the predictions of each class of runs were, as `figgen calibrate` wrote it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from figgen.catalog.load import content


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """How runs of a class were measured over predicted: eight in ten between `low` and `high`.

    So many of all runs, and of the test runs where those are eight or more; `runs` and
    `mean_absolute` are of the test runs, or of all where fewer than eight are.
    """

    name: str
    runs: int
    tested: bool
    low: float
    high: float
    mean_absolute: float


@cache
def residuals() -> Mapping[str, Residuals]:
    """The errors of each class by its name."""
    held = tomllib.loads(content("residuals.toml"))
    return {name: Residuals(name=name, **entry) for name, entry in held.items()}
