"""What a rival cannot express, and the runs that all are asked about."""

from __future__ import annotations

from collections.abc import Callable

from figgen.scenarios.runs.described import DescribedRun

Seconds = Callable[[DescribedRun, float], float]
"""A rival: seconds of a run's step for one constant. Raises Refusal for what it cannot express."""


class Refusal(Exception):
    """What of a run a rival has no word for."""


def refuse(unsaid: bool, what: str) -> None:
    """Raises Refusal with `what` where `unsaid`."""
    if unsaid:
        raise Refusal(what)
