"""The constants of the time model, as `figgen calibrate` fitted them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from figgen.catalog import load
from figgen.entries.read import CONFIDENCE, cite, parse_file
from figgen.errors import EntryPlace, closest

FILE, LEFT_OUT_FILE = "rates.toml", "rates-left-out.json"
JUDGEMENT = "judgement"
"""The source of guesses that nobody has published."""

GROUP_KEYS = ("about", "source", "confidence")
KEYS = ("value", "start", "spread", "runs", "known")


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A constant of the time model: fitted `value`, first guess, and its freedom (0 if fixed).

    `source` and `confidence` are those of the guess. `runs` is the number of calibration runs that
    it affects, and `known` the uncertainty that they leave, as a standard deviation of its
    logarithm.
    """

    name: str
    value: float
    start: float
    spread: float
    about: str
    source: str
    confidence: str
    runs: int
    known: float

    @property
    def decided(self) -> str:
        """What decided the value: "runs" if they halved the guess's freedom, otherwise "guess"."""
        return "runs" if self.spread and self.known <= self.spread / 2 else "guess"


@cache
def constants() -> dict[str, Constant]:
    """Return the constants by name, such as "matmul_share.hopper"."""
    return read_constants(load.content(FILE), load.sources())


@cache
def left_out_constants() -> dict[str, dict[str, float]]:
    """Return the constants fitted without each house of the fit, by house."""
    held: dict[str, dict[str, float]] = json.loads(load.content(LEFT_OUT_FILE))
    return held


def read_constants(content: str, sources: Mapping[str, str]) -> dict[str, Constant]:
    """Return the constants of `rates.toml`. Raises InputError with the place of any mistake."""
    found = {}
    for group, table in parse_file(FILE, content).items():
        place = EntryPlace(file=FILE, entry=group)
        about, source, confidence = (_word(place, table, key) for key in GROUP_KEYS)
        if source != JUDGEMENT:
            source = cite(place.at("source"), source, sources)
        if confidence not in CONFIDENCE:
            expected = " or ".join(CONFIDENCE)
            raise place.at("confidence").fault("unknown", expected=expected, got=confidence)
        for key, entry in table.items():
            if key not in GROUP_KEYS:
                numbers = _numbers(place.at(key), entry)
                name = f"{group}.{key}"
                found[name] = Constant(
                    name=name,
                    value=numbers["value"],
                    start=numbers["start"],
                    spread=numbers.get("spread", 0.0),
                    about=about,
                    source=source,
                    confidence=confidence,
                    runs=int(numbers.get("runs", 0)),
                    known=numbers.get("known", numbers.get("spread", 0.0)),
                )
    return found


def _word(place: EntryPlace, table: Mapping[str, Any], key: str) -> str:
    got = table.get(key)
    if not isinstance(got, str) or not got.strip():
        raise place.at(key).fault("missing", expected="text", got=got)
    return got


def _numbers(place: EntryPlace, entry: object) -> dict[str, float]:
    """Return the numbers of a constant, all positive, after checking its keys."""
    if not isinstance(entry, dict):
        raise place.fault("no constant", expected="{ value = …, start = … }", got=entry)
    for key, value in entry.items():
        if key not in KEYS:
            raise place.fault(f"unknown key {key!r}", nearest=closest(key, KEYS))
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise place.fault(key, expected="a number above zero", got=value)
    for key in ("value", "start"):
        if not entry.get(key):
            raise place.fault(key, expected="a number above zero", got=entry.get(key, "nothing"))
    return {key: float(value) for key, value in entry.items()}
