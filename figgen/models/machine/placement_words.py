"""A layout in one sentence: which ranks share a group, and which groups send between nodes."""

from __future__ import annotations

from figgen.models.machine.layout import ParallelLayout, mesh_of
from figgen.models.machine.mesh import group_offsets
from figgen.models.machine.placement import communicator

LISTED = 4
"""The most ranks of a group that are listed one by one."""


def placement_sentence(parallel: ParallelLayout) -> str:
    """Return the answer about a layout: which groups stay inside a node, and which leave it."""
    names = ["tp", "cp", "dp", "pp"]
    if parallel.has_experts:
        names += ["ep"]
    inside: list[str] = []
    between: list[str] = []
    for name in names:
        summary = communicator(parallel, name)
        if summary.size == 1:
            continue
        said = f"{name.upper()} {summary.size:,} ({_members(parallel, name)})"
        if not summary.crossing_groups:
            inside.append(said)
        elif summary.crossing_groups == summary.group_count:
            between.append(said)
        else:
            part = f"{summary.crossing_groups:,} of {summary.group_count:,} groups"
            between.append(f"{said} in {part}")
    if not inside and not between:
        return "One GPU works alone and sends nothing."
    nodes = "one node" if parallel.nodes == 1 else f"{parallel.nodes:,} nodes"
    told = [f"groups of {_listed(inside)} stay inside a node"] if inside else []
    told += [f"groups of {_listed(between)} send between nodes"] if between else []
    return f"On {parallel.world_size:,} GPUs in {nodes}, {', and '.join(told)}."


def _members(parallel: ParallelLayout, name: str) -> str:
    """Return the ranks of rank 0's group."""
    ranks = group_offsets(mesh_of(parallel, name), name)
    if len(ranks) > 2 and ranks[-1] == len(ranks) - 1:
        return f"ranks 0 to {ranks[-1]:,}"
    if len(ranks) > LISTED:
        return f"ranks 0, {ranks[1]:,} … {ranks[-1]:,}"
    return f"ranks {_listed([f'{rank:,}' for rank in ranks])}"


def _listed(words: list[str]) -> str:
    """Return words with commas, and "and" before the last."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
