"""Sections of a page about a layout: its rank map, its groups, and what crosses nodes."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.generated.fences import figure
from figgen.models.machine.layout import ParallelLayout
from figgen.plotting.blocks import block_of

HEAVY_GRID = 384
"""Number of GPUs from which a smaller part represents the others, to keep the picture small."""


@dataclass(frozen=True, slots=True)
class Laid:
    """A layout, the parameters with which figures describe it, and its communicators."""

    parallel: ParallelLayout
    parameters: str
    communicators: tuple[str, ...]


def layout_sections(laid: Laid) -> str:
    """Return all sections, in order."""
    return "\n".join((_rank_map(laid), _groups(laid), _crossings(laid)))


def _rank_map(laid: Laid) -> str:
    parameters, block = laid.parameters, block_of(laid.parallel)
    if len(block.ranks) > HEAVY_GRID:
        smaller = block_of(laid.parallel, HEAVY_GRID)
        if len(smaller.ranks) > laid.parallel.gpus_per_node:
            parameters, block = f"{parameters}\nmost: {HEAVY_GRID}", smaller
        else:
            # Show whole pipelines, which are colored by their stages' groups.
            parameters += "\ncommunicators: [pp]\nfirst: pp"
    part = (
        ""
        if block.multiplicity == 1
        else " It shows {{ block }}, {{ shown }} of {{ world_size }} GPUs; the others repeat it."
    )
    return (
        "## Rank map { data-search-exclude }\n\n"
        "[](#fig-rank-grid) is colored by the groups of one communicator; choose it above the "
        "grid.\nGPUs with the same shade and the same number talk to each other.\n\n"
        + figure(
            "rank-grid",
            parameters,
            caption="{{ world_size }} GPUs on {{ nodes }} nodes as TP {{ tp }} · CP {{ cp }} · "
            f"DP {{{{ dp }}}} · PP {{{{ pp }}}}.{part}",
            alt="A grid of {{ shown }} GPUs in rows of {{ gpus_per_node }}, one row for each node, "
            "with ranks in order and colored by process group; the table of groups below says "
            "the same in words.",
        )
    )


def _groups(laid: Laid) -> str:
    return (
        "## Process groups { data-search-exclude }\n\n"
        "[](#fig-rank-groups) lists how many groups each communicator has and the first of them."
        "\n\n"
        + figure(
            "rank-groups",
            laid.parameters,
            caption="Groups times size is always {{ world_size }}; the stride is the distance in "
            "ranks between neighbours of a group.",
            alt="A table of communicators with their grid, the number of groups, GPUs in each, "
            "stride and the first groups, for {{ world_size }} GPUs.",
        )
    )


def _crossings(laid: Laid) -> str:
    return (
        "## What crosses nodes { data-search-exclude }\n\n"
        "[](#fig-node-crossings) says which groups leave their node, and how much the busiest "
        "adapter sends when every group all-reduces one gigabyte.\n\n"
        + figure(
            "node-crossings",
            laid.parameters,
            caption="Nodes that a group touches: {{ tp_nodes }} for TP, {{ dp_nodes }} for DP and "
            "{{ pp_nodes }} for PP.",
            alt="A table of communicators: GPUs and nodes of a group, groups that leave their "
            "node, share of their ring's links between nodes, and bytes per adapter.",
        )
    )
