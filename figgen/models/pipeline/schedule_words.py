"""Pipeline schedules in a sentence: which is fastest, when its ranks idle, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum

from figgen.models.pipeline.trace import Trace

EQUAL = 0.0005
"""Times that differ by a smaller share count as equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedOut:
    """A schedule with its title and time, and what its fullest rank holds, in words."""

    title: str
    trace: Trace
    held: str


@dataclass(frozen=True, slots=True)
class IdleShares:
    """Shares of wall time, over all ranks, that are idle before, between and after actions.

    They add up to the trace's `bubble_fraction`.
    """

    filling: float
    between: float
    draining: float


def idle_shares(trace: Trace) -> IdleShares:
    """Return the idle shares of a schedule before, between and after actions."""
    wall = trace.makespan * len(trace.busy)
    filling = fsum(starts[0] for starts in trace.starts) / wall
    draining = fsum(trace.makespan - ends[-1] for ends in trace.ends) / wall
    return IdleShares(filling, max(0.0, trace.bubble_fraction - filling - draining), draining)


def schedules_sentence(runs: Sequence[CarriedOut], write: Callable[[float], str]) -> str:
    """Return a sentence about one or more schedules; `write` formats a time.

    It describes the fastest, the first of equals, says how much longer the others take, and what
    bounds the idle time of those whose ranks never wait between actions.
    """
    best = runs[0]
    for run in runs:
        if run.trace.makespan < best.trace.makespan * (1 - EQUAL):
            best = run
    trace, idle = best.trace, idle_shares(best.trace)
    title = _capitalized(best.title)
    which = f"{title} takes" if len(runs) == 1 else f"{title} is fastest: it takes"
    text = f"{which} {write(trace.makespan)} and is idle for {trace.bubble_fraction:.1%} of it"
    parts = [
        f"{share:.1%} {when}"
        for share, when in (
            (idle.filling, "before a rank's first action"),
            (idle.between, "between actions"),
            (idle.draining, "after the last"),
        )
        if share >= EQUAL
    ]
    text += f" ({', '.join(parts)}); {best.held}." if parts else f"; {best.held}."
    others = [
        f"{run.title} takes {_longer(run.trace.makespan / trace.makespan - 1)}"
        for run in runs
        if run is not best
    ]
    if others:
        text += f" {_capitalized(', '.join(others))}."
    unbroken = [run.title for run in runs if _starts_and_ends_apart(run.trace)]
    if not unbroken:
        return text
    return (
        f"{text} No rank of {' or '.join(unbroken)} waits between its actions. Ranks only start "
        "and end one after another: with more microbatches that is a smaller share, and passes of "
        "the next step could fill it."
    )


def _starts_and_ends_apart(trace: Trace) -> bool:
    """Return whether ranks idle only before their first and after their last action."""
    return trace.bubble_fraction >= EQUAL > idle_shares(trace).between


def _capitalized(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def held_words(amount: str, rank: int) -> str:
    """Describe the activations of the rank that holds the most."""
    return f"rank {rank} holds most, {amount}"


def _longer(ratio: float) -> str:
    return "as long" if ratio < EQUAL else f"{ratio:.1%} longer"
