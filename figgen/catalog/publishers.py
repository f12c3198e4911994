"""Publishers of measured runs, and the runs of publishers who were not used in any fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from figgen.catalog.load import content
from figgen.catalog.measured import records_in

FILE = "runs-publishers.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """A publisher of measured runs.

    `trust` ranges from 1, a number in a thread, to 5, a script with its log; `doubts` are those of
    the people who collected the runs. Of the `rows` that were collected the catalog keeps `kept`.
    """

    name: str
    source: str
    date: str
    trust: int
    doubts: str
    rows: int
    kept: int


@cache
def publishers() -> Mapping[str, Publisher]:
    """Return the publishers of the file, by name."""
    held = json.loads(content(FILE))["publishers"]
    return {name: Publisher(name=name, **facts) for name, facts in held.items()}


@cache
def publisher_records() -> tuple[dict[str, Any], ...]:
    """Return the records of the file, with the fields of `figgen.scenarios.runs.record`.

    Their additional fields are `publisher`, `training` ("lora", "qlora", "encoder" or missing),
    `doubt` and `memory_kind`.
    """
    return records_in(FILE)
