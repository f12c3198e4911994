"""The closed form in `figgen.formulas` that gives the time of each algorithm.

Timing the trace step by step gives the same result, except where `LIMITS` names what the formula
idealises. An algorithm that is missing here has no formula; its cost comes from its trace.
"""

from __future__ import annotations

CLOSED_FORMS: dict[tuple[str, str], str] = {
    ("all-reduce", "ring"): "ring_all_reduce_time",
    ("all-reduce", "naive"): "naive_all_reduce_time",
    ("all-reduce", "binomial-tree"): "tree_all_reduce_time",
    ("all-reduce", "double-binary-tree"): "double_binary_tree_all_reduce_time",
    ("all-reduce", "recursive-doubling"): "recursive_doubling_all_reduce_time",
    ("all-reduce", "recursive-halving-doubling"): "halving_doubling_all_reduce_time",
    ("all-reduce", "hierarchical"): "two_level_all_reduce_time",
    ("all-reduce", "hierarchical-leader"): "leader_all_reduce_time",
    ("reduce-scatter", "ring"): "ring_reduce_scatter_time",
    ("reduce-scatter", "recursive-halving"): "recursive_doubling_all_gather_time",
    ("all-gather", "ring"): "ring_all_gather_time",
    ("all-gather", "recursive-doubling"): "recursive_doubling_all_gather_time",
    ("broadcast", "binomial-tree"): "binomial_broadcast_time",
    ("broadcast", "chain"): "chain_broadcast_time",
    ("broadcast", "scatter-all-gather"): "scatter_all_gather_broadcast_time",
    ("reduce", "binomial-tree"): "binomial_broadcast_time",
    ("reduce", "chain"): "chain_broadcast_time",
    ("reduce", "reduce-scatter-gather"): "scatter_all_gather_broadcast_time",
    ("scatter", "binomial-tree"): "binomial_scatter_time",
    ("gather", "binomial-tree"): "binomial_scatter_time",
    ("all-to-all", "pairwise"): "pairwise_all_to_all_time",
    ("all-to-all", "bruck"): "bruck_all_to_all_time",
}
"""(collective, algorithm) -> the name of its formula."""

LIMITS: dict[tuple[str, str], str] = {
    ("all-reduce", "double-binary-tree"): "infinitely many segments in flight",
    ("all-reduce", "hierarchical-leader"): "chains within nodes pipelined without end",
    ("all-to-all", "bruck"): "half the buffer in every step, as for a power of two",
}
"""What a formula idealises, for each algorithm whose formula differs from its trace."""

BUS_BANDWIDTHS: dict[str, str] = {
    "all-reduce": "all_reduce_bus_bandwidth",
    "all-gather": "all_gather_bus_bandwidth",
    "reduce-scatter": "all_gather_bus_bandwidth",
    "all-to-all": "all_gather_bus_bandwidth",
    "broadcast": "algorithm_bandwidth",
    "reduce": "algorithm_bandwidth",
}
"""Collective -> the formula of what nccl-tests prints as its bus bandwidth."""
