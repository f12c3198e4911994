"""Says what a rival cannot express, and defines the runs that all rivals are given."""

from __future__ import annotations

from collections.abc import Callable

from figgen.scenarios.runs.described import DescribedRun

Seconds = Callable[[DescribedRun, float], float]
"""A rival: returns seconds of a run's step for one constant.

Raises Refusal for what it cannot express.
"""


class Refusal(Exception):
    """A property of a run that a rival cannot express."""


def refuse(unsaid: bool, what: str) -> None:
    """Raise Refusal with `what` if `unsaid` is true."""
    if unsaid:
        raise Refusal(what)
