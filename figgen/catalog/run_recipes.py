"""What the recipes of published runs say and their records do not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from figgen.catalog.load import content
from figgen.lookups import remembered

FILE = "run-recipes.json"


@remembered(1)
def run_recipes() -> Mapping[str, dict[str, Any]]:
    """Return by run the fields that its record gets; see `figgen.scenarios.runs.record`."""
    held: dict[str, dict[str, Any]] = json.loads(content(FILE))["recipes"]
    return held


def recipe_of(run: str) -> dict[str, Any]:
    """Return the fields that a run's recipe adds to its record, none without a recipe."""
    return run_recipes().get(run, {})
