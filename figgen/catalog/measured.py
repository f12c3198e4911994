"""More than a thousand measured runs, as their sources print them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from figgen.catalog.load import content
from figgen.catalog.run_recipes import recipe_of


@cache
def measured_records() -> tuple[dict[str, Any], ...]:
    """Return the records of the file, with the fields of `figgen.scenarios.runs.record`."""
    return records_in("runs-measured.json")


def records_in(file: str) -> tuple[dict[str, Any], ...]:
    """Return the runs of a file of the catalog that keeps repeated texts and shapes once."""
    held = json.loads(content(file))
    records = []
    for row in held["rows"]:
        record = dict(zip(held["columns"], row, strict=True))
        for key, words in held["texts"].items():
            if record[key] is not None:
                record[key] = words[record[key]]
        record["shape"] = held["shapes"].get(record["shape"])
        known = {key: value for key, value in record.items() if value is not None}
        records.append(known | recipe_of(record["id"]))
    return tuple(records)
