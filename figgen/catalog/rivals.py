"""Predictions of other open models of training time for the measured runs, from `make rivals`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from figgen.catalog import load

FILE = "rivals.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A tool and its answers: seconds by run, with the documented and the fitted constant.

    `fitted` has its constant by kind of run, `refused` what the tool cannot express, by run.
    """

    name: str
    version: str
    date: str
    source: str
    constant: str
    documented: float
    fitted: Mapping[str, float]
    seconds: Mapping[str, tuple[float, float]]
    refused: Mapping[str, str]


@cache
def rivals() -> dict[str, Rival]:
    """Return the tools by name."""
    held = json.loads(load.content(FILE))
    found = {}
    for place, (name, facts) in enumerate(held["tools"].items()):
        answers = {run: row[place] for run, row in held["runs"].items()}
        found[name] = Rival(
            name=name,
            version=facts["version"],
            date=held["date"],
            source=facts["source"],
            constant=facts["constant"],
            documented=facts["documented"],
            fitted=facts["fitted"],
            seconds={run: (a[0], a[1]) for run, a in answers.items() if not isinstance(a, str)},
            refused={run: a for run, a in answers.items() if isinstance(a, str)},
        )
    return found
