"""Groups of experts, such as ranks or nodes, that a token visits."""

from __future__ import annotations

from figgen.equations.ops import Number, maximum, minimum, power


def visited_groups(groups: Number, top_k: Number) -> Number:
    """Return how many of `groups` a token visits on average, if every choice may fall in any.

    Numbers or arrays; `groups` is at least 1.
    """
    return groups * (1 - power(1 - 1 / groups, top_k))


def within_reach(parts: Number, groups: Number, reached: Number) -> Number:
    """Return the ranks or nodes, out of all `parts`, among which a token's experts are chosen.

    Groups of experts lie on equal, consecutive parts of the ranks, and a router may be limited to
    `reached` of `groups` of them; with one group it reaches all. If a part holds several groups,
    each reached group may lie on a different part. Source: DeepSeek-V2, arXiv:2405.04434, section
    2.2.2, and DeepSeek-V3, arXiv:2412.19437, 2.1.2.
    """
    return minimum(parts, maximum(reached, parts * reached / groups))
