"""Groups of experts, such as ranks or nodes, that a token visits."""

from __future__ import annotations

from figgen.equations.ops import Number, maximum, minimum, power


def visited_groups(groups: Number, top_k: Number) -> Number:
    """Return how many of `groups` a token visits on average, if every choice may fall in any.

    Numbers or arrays; `groups` is at least 1.
    """
    return groups * (1 - power(1 - 1 / groups, top_k))


def within_reach(parts: Number, groups: Number, reached: Number) -> Number:
    """Return the ranks or nodes, of all `parts`, among which a token's experts are chosen.

    A router that is limited to `reached` of `groups` of experts, which lie on equal parts of all
    ranks in their order, leaves the others out; with one group it reaches all. Where a part holds
    several groups, each of those reached may lie on another one.
    Source: DeepSeek-V2, arXiv:2405.04434, section 2.2.2, and DeepSeek-V3, arXiv:2412.19437, 2.1.2.
    """
    return minimum(parts, maximum(reached, parts * reached / groups))
