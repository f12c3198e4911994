"""Formulas that are registered for the duration of one test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from figgen.equations.definition import Formula
from figgen.equations.ops import Number
from figgen.formulas import FORMULAS
from figgen.formulas.notation import formula

Written = Callable[..., Number]
Register = Callable[[Written], Formula]


@pytest.fixture
def register() -> Iterator[Register]:
    """Registers a function for the duration of one test."""
    added = []

    def add(function: Written, **overrides: str) -> Formula:
        formula(**{"symbol": "X", "unit": "1", "source": "a test", **overrides})(function)
        added.append(function.__name__)
        return FORMULAS[function.__name__]

    yield add
    for name in added:
        del FORMULAS[name]
