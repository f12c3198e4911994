"""How long a schedule takes, whatever its passes take: the largest of a few linear functions.

A schedule lasts as long as the longest chain of actions that wait for each other, and a chain takes
its number of forwards, of gradients of inputs and of gradients of weights times what each takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from figgen.equations.ops import Number, maximum
from figgen.models.pipeline.carry import KIND_ORDER
from figgen.models.pipeline.order import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """A number for each pass of a microbatch: forward, gradients of inputs (with what is computed
    again before them), gradients of weights.

    As a split, their shares of a microbatch's time, which add up to 1. As a line, coefficients of
    a linear function of the split.
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
"""The splits that all splits lie between."""

SAME = 1e-9
"""Differences of rounding."""
_MOST = 2**17
"""More than actions of a chain; three such counts make a whole number that a page can hold."""


def line_at(line: Passes, split: Passes) -> Number:
    """The value of a linear function at a split."""
    return line.forward * split.forward + line.inputs * split.inputs + line.weights * split.weights


def largest(lines: Sequence[Passes], split: Passes) -> Number:
    """The largest of linear functions at a split."""
    found = line_at(lines[0], split)
    for line in lines[1:]:
        found = maximum(found, line_at(line, split))
    return found


def longest_chain(schedule: Schedule, split: Passes) -> Passes:
    """The actions of each kind in the longest chain, in microbatches' worth of a rank's work.

    A microbatch's work on a rank is dealt evenly to its stages. Raises InputError for an order that
    cannot be carried out.
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
    """All lines whose largest is a convex function; `line_of` says which is largest at a split.

    Where the largest of the lines found so far turns from one to another, the function lies above
    it unless they are all there.
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
    """`largest` at one split, without the cost of arrays."""
    return max([float(line_at(line, split)) for line in lines])


def _place(split: Passes) -> tuple[float, float]:
    return round(split.forward, 9), round(split.inputs, 9)


def _turns(lines: Sequence[Passes]) -> list[Passes]:
    """Splits at which two of the largest lines meet a third one, or none of one of the passes."""
    found: list[Passes] = []
    for first, line in enumerate(lines):
        for second in range(first + 1, len(lines)):
            apart = _less(line, lines[second])
            others = [_less(line, third) for third in lines[second + 1 :]]
            for other in (*others, *CORNERS):
                split = _meeting(apart, other)
                if split is not None and line_at(line, split) > _most(lines, split) - SAME:
                    found.append(split)
    return found


def _less(one: Passes, other: Passes) -> Passes:
    return Passes(
        forward=one.forward - other.forward,
        inputs=one.inputs - other.inputs,
        weights=one.weights - other.weights,
    )


def _meeting(one: Passes, other: Passes) -> Passes | None:
    """The split at which two linear functions are 0."""
    forward = one.inputs * other.weights - one.weights * other.inputs
    inputs = one.weights * other.forward - one.forward * other.weights
    weights = one.forward * other.inputs - one.inputs * other.forward
    whole = forward + inputs + weights
    if abs(whole) < SAME or min(forward / whole, inputs / whole, weights / whole) < 0:
        return None
    return Passes(forward=forward / whole, inputs=inputs / whole, weights=weights / whole)
