"""How much of a large domain the tests cover: a part, or all with `THOROUGH=1 make test`.

A run for a commit has ten minutes; a scheduled one covers everything.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

THOROUGH = os.environ.get("THOROUGH", "").lower() not in ("", "0", "false")
Case = TypeVar("Case")


def drawn(usually: int, thoroughly: int) -> int:
    """Return how many random cases a test draws."""
    return thoroughly if THOROUGH else usually


def one_in(step: int, cases: Sequence[Case]) -> list[Case]:
    """Return every `step`-th of the listed cases, including the first; all of them in a thorough
    run."""
    return list(cases if THOROUGH else cases[::step])
