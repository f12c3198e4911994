"""The time of a schedule for passes of any length, as the maximum of a few linear functions.

A schedule takes as long as its longest chain of actions that wait for each other. A chain has a
number of forwards, input gradients and weight gradients, so its time is linear in the times of the
three passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from figgen.equations.ops import Number, maximum
from figgen.models.pipeline.carry import KIND_ORDER
from figgen.models.pipeline.order import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """A number for each pass of a microbatch: forward, input gradients, weight gradients.

    Recomputation counts as part of the input gradients, which it precedes. A split holds the
    passes' shares of a microbatch's time, which add up to 1. A line holds the coefficients of a
    linear function of the split.
    """

    forward: Number
    inputs: Number
    weights: Number


Lines = Sequence[Passes]

CORNERS = (
    Passes(forward=1.0, inputs=0.0, weights=0.0),
    Passes(forward=0.0, inputs=1.0, weights=0.0),
    Passes(forward=0.0, inputs=0.0, weights=1.0),
)
"""The splits in which one pass takes all the time."""

SAME = 1e-9
"""Smaller differences are rounding errors."""
_MOST = 2**17
"""Exceeds the actions of any chain. Three such counts fit into one integer, in JavaScript too."""


def line_at(line: Passes, split: Passes) -> Number:
    """Return the value of a line at a split."""
    return line.forward * split.forward + line.inputs * split.inputs + line.weights * split.weights


def largest(lines: Sequence[Passes], split: Passes) -> Number:
    """Return the value of the largest of some lines at a split."""
    found = line_at(lines[0], split)
    for line in lines[1:]:
        found = maximum(found, line_at(line, split))
    return found


def less(one: Passes, other: Passes) -> Passes:
    """Return the difference of two lines, pass by pass."""
    return Passes(
        forward=one.forward - other.forward,
        inputs=one.inputs - other.inputs,
        weights=one.weights - other.weights,
    )


def longest_chain(schedule: Schedule, split: Passes) -> Passes:
    """Return the number of actions of each kind in the longest chain, in microbatches of a rank.

    The stages of a rank share the work of a microbatch evenly, so an action on one of two stages
    counts half. Raises InputError for an order that cannot be executed.
    """
    plan, placement = schedule.plan, schedule.placement
    times = {
        "F": split.forward, "B": split.inputs + split.weights,
        "I": split.inputs, "W": split.weights,
    }  # fmt: skip
    counts = {"F": 1, "B": _MOST + _MOST**2, "I": _MOST, "W": _MOST**2}
    took = [times[kind] for kind in KIND_ORDER for _ in range(placement.stages)]
    counted = [counts[kind] for kind in KIND_ORDER for _ in range(placement.stages)]
    there_s = [0.0 for _ in range(plan.outputs)]
    there = [0 for _ in range(plan.outputs)]
    free_s = [0.0 for _ in range(placement.ranks)]
    free = [0 for _ in range(placement.ranks)]
    for rank, half, partner in plan.steps:
        first, _, sent, _, made = half
        start_s, chain = free_s[rank], free[rank]
        if there_s[sent] > start_s:
            start_s, chain = there_s[sent], there[sent]
        if partner is not None:
            second, _, sent, _, also = partner
            if there_s[sent] > start_s:
                start_s, chain = there_s[sent], there[sent]
            start_s, chain = start_s + took[second], chain + counted[second]
            there_s[also], there[also] = start_s + took[first], chain + counted[first]
        start_s, chain = start_s + took[first], chain + counted[first]
        there_s[made], there[made] = start_s, chain
        free_s[rank], free[rank] = start_s, chain
    last = free[free_s.index(max(free_s))]
    each = placement.ranks * placement.pipes / placement.stages
    return Passes(
        forward=last % _MOST * each,
        inputs=last // _MOST % _MOST * each,
        weights=last // _MOST**2 * each,
    )


def lines_of(line_of: Callable[[Passes], Passes]) -> Lines:
    """Return all lines of a function that is the maximum of lines.

    `line_of` returns the largest line at a split. A line that is still missing lies above the
    others at one of the splits where these meet, so asking at all of them finds it.
    """
    found: list[Passes] = []
    asked: list[Passes] = list(CORNERS)
    known: dict[tuple[float, float], bool] = {}
    while asked:
        for split in asked:
            known[_place(split)] = True
            line = line_of(split)
            if not found or line_at(line, split) > _most(found, split) + SAME:
                found.append(line)
        asked = [split for split in _turns(found) if _place(split) not in known]
    return tuple(found)


def _most(lines: Sequence[Passes], split: Passes) -> float:
    """Return what `largest` returns at one split, without the cost of arrays."""
    return max([float(line_at(line, split)) for line in lines])


def _place(split: Passes) -> tuple[float, float]:
    return round(split.forward, 9), round(split.inputs, 9)


def _turns(lines: Sequence[Passes]) -> list[Passes]:
    """Return the splits where two of the largest lines meet a third, or a pass has no share."""
    found: list[Passes] = []
    for first, line in enumerate(lines):
        for second in range(first + 1, len(lines)):
            apart = less(line, lines[second])
            others = [less(line, third) for third in lines[second + 1 :]]
            for other in (*others, *CORNERS):
                split = _meeting(apart, other)
                if split is not None and line_at(line, split) > _most(lines, split) - SAME:
                    found.append(split)
    return found


def _meeting(one: Passes, other: Passes) -> Passes | None:
    """Return the split at which two lines are 0, or None."""
    forward = one.inputs * other.weights - one.weights * other.inputs
    inputs = one.weights * other.forward - one.forward * other.weights
    weights = one.forward * other.inputs - one.inputs * other.forward
    whole = forward + inputs + weights
    if abs(whole) < SAME or min(forward / whole, inputs / whole, weights / whole) < 0:
        return None
    return Passes(forward=forward / whole, inputs=inputs / whole, weights=weights / whole)
