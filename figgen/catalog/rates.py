"""The constants of the model of time, as `figgen calibrate` fitted them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache

from figgen.catalog.load import content


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of the model of time: fitted `value`, first guess, and its freedom (0: none)."""

    name: str
    value: float
    start: float
    spread: float
    about: str


@cache
def constants() -> dict[str, Constant]:
    """The constants by name, such as "product_share.hopper"."""
    found = {}
    for group, entries in tomllib.loads(content("rates.toml")).items():
        for key, entry in entries.items():
            if key != "about":
                name = f"{group}.{key}"
                spread = float(entry.get("spread", 0.0))
                found[name] = Constant(
                    name, float(entry["value"]), float(entry["start"]), spread, entries["about"]
                )
    return found
