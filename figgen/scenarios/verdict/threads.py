"""Verdicts on solved threads, and whether they name the true cause among the first reasons."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.catalog.slow_threads import SlowThread, slow_threads
from figgen.lookups import remembered
from figgen.scenarios.options.resolve import training_step
from figgen.scenarios.verdict.verdict import Verdict, verdict_of_step

FIRST = 3
"""Number of top-ranked reasons in which the true cause counts as named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedThread:
    """A thread with its verdict; `place` is the rank of the true cause, counted from 1."""

    thread: SlowThread
    verdict: Verdict
    place: int

    @property
    def found(self) -> bool:
        """Whether the true cause is among the first reasons."""
        return self.place <= FIRST


@remembered(2)
def judged_threads(apart: bool) -> tuple[JudgedThread, ...]:
    """Return the held-out threads (`apart`), or else all other threads, each with its verdict."""
    found = []
    for thread in slow_threads(apart=apart):
        verdict = verdict_of_step(training_step(**thread.job), thread.measured)
        places = [at for at, one in enumerate(verdict.reasons, 1) if one.name in thread.causes]
        place = min(places, default=len(verdict.reasons) + 1)
        found.append(JudgedThread(thread=thread, verdict=verdict, place=place))
    return tuple(found)
