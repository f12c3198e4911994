"""JSON as a reader brings it, read strictly, and as pages and scripts carry it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, NoReturn, TypeVar

Made = TypeVar("Made")

DEEPEST = 200
"""Lists and objects in each other; no file that is read here has more than ten."""


def read_json(text: str) -> Any:
    """Parse JSON strictly.

    Raises ValueError for invalid JSON, NaN and infinities, duplicate keys, and nesting deeper than
    `DEEPEST`.
    """
    if max(_depths(text), default=0) > DEEPEST:
        raise ValueError(f"more than {DEEPEST} lists and objects in each other")
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice[:80]!r} is given twice")
    return found


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _depths(text: str) -> Iterator[int]:
    """The nesting depth at which each list and object of a JSON text begins."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return
    depth, quoted, escaped = 0, False, False
    for character in text:
        if quoted:
            quoted, escaped = escaped or character != '"', not escaped and character == "\\"
        elif character == '"':
            quoted = True
        elif character in "[{":
            depth += 1
            yield depth
        elif character in "]}":
            depth -= 1


def record_of(cls: type[Made], values: Mapping[str, Any]) -> Made:
    """Return a record of those values that are its fields; fields without a value have defaults.

    Raises TypeError for a field that has neither.
    """
    names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    return cls(**{name: values[name] for name in names if name in values})


def compact_json(value: object) -> str:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
