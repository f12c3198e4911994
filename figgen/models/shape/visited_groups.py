"""Groups of experts, such as ranks or nodes, that a token visits."""

from __future__ import annotations

from figgen.equations.ops import Number, power


def visited_groups(groups: Number, top_k: Number) -> Number:
    """Return how many of `groups` a token visits on average, if every choice may fall in any.

    Numbers or arrays; `groups` is at least 1.
    """
    return groups * (1 - power(1 - 1 / groups, top_k))
