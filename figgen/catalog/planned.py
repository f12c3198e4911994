"""The fastest layout of each published job, as `figgen plan --published --write` found it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from figgen.catalog.load import content

FILE = "planned.json"


@dataclass(frozen=True, slots=True)
class PlannedBest:
    """The fastest layout that fits, of `layouts` that were tried: its options by name."""

    layouts: int
    choices: Mapping[str, str | int | None]


@cache
def planned_best() -> Mapping[str, PlannedBest]:
    """Return the fastest layouts by preset."""
    held = json.loads(content(FILE))["presets"]
    return {name: PlannedBest(**entry) for name, entry in held.items()}
