"""Published steps that were timed with several values of one option, and otherwise alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from figgen.catalog.load import content

FILE = "options-timed.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOption:
    """A job by its options, and the seconds of its step for each value of one further option."""

    address: str
    job: Mapping[str, Any]
    seconds: Mapping[str, float]


@cache
def timed_options(option: str) -> tuple[TimedOption, ...]:
    """Return the jobs that were timed with several values of `option`.

    `option` is `"context_exchange"`, whose values are those of `figgen step`, or `"routing"`, which
    is `"balanced"` by force or `"natural"`.
    """
    return tuple(TimedOption(**row) for row in json.loads(content(FILE))[option])
