"""Orders written as phases: a few actions, repeated, for a rank that holds two stages."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Iterable
from typing import cast

from figgen.models.pipeline.action import Action, Kind, Order

Phase = tuple[str, int]


def write_order(
    phases: Iterable[Phase],
    stages: tuple[int, int],
    first_microbatch: tuple[int, int] = (0, 0),
    microbatches: int | None = None,
) -> tuple[Order, frozenset[Action]]:
    """Return the order that `phases` spell out, and the forwards in it that overlap a backward.

    A phase is a string of words and its number of repeats. `F0` is the next forward of the first of
    the two `stages`, `I1` the next input gradient of the second, B likewise, and `F0&B1` an
    overlapped pair. A bare `W` is the oldest pending weight gradient. Actions beyond `microbatches`
    are left out.
    """
    done: Counter[str] = Counter()
    owed: deque[Action] = deque()
    order: list[Action] = []
    overlapped: list[Action] = []
    for line, repeats in phases:
        words = [[_read_word(part) for part in word.split("&")] for word in line.split()]
        for repeat in range(repeats):
            before = len(order)
            for word in words:
                for kind, side, count in word:
                    if side < 0:
                        order.append(owed.popleft())
                        continue
                    microbatch = first_microbatch[side] + done[count]
                    done[count] += 1
                    if microbatches is not None and microbatch >= microbatches:
                        continue
                    order.append(Action(stages[side], kind, microbatch))
                    if kind == "I":
                        owed.append(Action(stages[side], "W", microbatch))
                if len(word) > 1:
                    overlapped.append(order[-2])
            if len(order) == before:
                # Microbatches only increase, so further repeats write nothing either.
                for _, _, count in itertools.chain.from_iterable(words):
                    done[count] += repeats - repeat - 1
                break
    return tuple(order), frozenset(overlapped)


def _read_word(part: str) -> tuple[Kind, int, str]:
    """Return a word's kind, its stage (−1 for the oldest pending W), and its counter's key."""
    kind = cast(Kind, part[0])
    if part == "W":
        return kind, -1, ""
    # B and I share a counter: either is the backward of its microbatch.
    return kind, int(part[1]), (kind if kind in "FW" else "B") + part[1]
