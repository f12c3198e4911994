"""Calls the tools' engine for the browser tests and compares its answers with the Python models."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from figgen.errors import InputError

Ask = Callable[[str, Any], Any]


def said(function: Callable[..., Any], *given: Any) -> Any:
    """Return what a function returns, or its error message and suggestions."""
    try:
        return function(*given)
    except InputError as error:
        return {"error": str(error), "nearest": list(error.nearest)}


def differing(cases: Any, shown: Any, expected: Any) -> list[Any]:
    """Return the cases that the page answers differently, with both answers; all lengths are
    checked."""
    expected = json.loads(json.dumps(expected))
    zipped = zip(cases, shown, expected, strict=True)
    return [(case, got, want) for case, got, want in zipped if got != want][:2]
