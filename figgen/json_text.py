"""Parse readers' JSON strictly, and write JSON for pages and scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, NoReturn, TypeVar

Made = TypeVar("Made")

DEEPEST = 200
"""The deepest nesting of lists and objects; real files have at most ten levels."""


def read_json(text: str) -> Any:
    """Parse JSON strictly.

    Raises ValueError for invalid JSON, NaN and infinities, duplicate keys, and nesting deeper than
    `DEEPEST`.
    """
    if max(_depths(text), default=0) > DEEPEST:
        raise ValueError(f"more than {DEEPEST} nested lists and objects")
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
    """Yield the depth of each list and object in JSON text."""
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
    """Construct a record from the values that are its fields; other fields get their defaults.

    Raises TypeError for a field with neither.
    """
    names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    return cls(**{name: values[name] for name in names if name in values})


def compact_json(value: object) -> str:
    """Return JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
