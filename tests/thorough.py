"""How much of a large domain the tests look at: a part of it, or all with `THOROUGH=1 make test`.

A run of every commit has ten minutes; a scheduled one looks at all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

THOROUGH = os.environ.get("THOROUGH", "").lower() not in ("", "0", "false")
Case = TypeVar("Case")


def drawn(usually: int, thoroughly: int) -> int:
    """How many random cases a test draws."""
    return thoroughly if THOROUGH else usually


def one_in(step: int, cases: Sequence[Case]) -> list[Case]:
    """Every `step`-th of listed cases, the first among them; all of them in a thorough run."""
    return list(cases if THOROUGH else cases[::step])
