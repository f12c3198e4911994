"""The named layouts side by side: examples and published runs."""

from __future__ import annotations

from figgen import catalog
from figgen.charts import Column, Named, Table
from figgen.errors import InputError
from figgen.models.machine.layout import ParallelLayout
from figgen.models.machine.placement import communicator
from figgen.registry import figure
from figgen.scenarios.options.resolve import parallel_layout

SIZES = ("tp", "cp", "pp", "dp", "ep", "etp")


@figure("layout-presets")
def layout_presets(*, kinds: tuple[str, ...] = ("map", "training")) -> Table:
    """Every preset with a layout on whole nodes, and the nodes of a TP and a DP group.

    A published run that leaves sizes open, or that fills a part of its nodes, is left out.
    """
    found = [
        (preset.title, parallel)
        for preset in catalog.PRESETS.values()
        if preset.kind in kinds and (parallel := _layout(preset)) is not None
    ]
    if not found:
        raise InputError("kinds", expected="map or training among them", got=kinds)
    heads = ("configuration", "nodes", "GPUs each", *(name.upper() for name in SIZES))
    spans = ("nodes per TP group", "nodes per DP group")
    largest = max(parallel.world_size for _, parallel in found)
    return Table(
        columns=tuple(
            Column(label=head, spec="," if at else "") for at, head in enumerate((*heads, *spans))
        ),
        rows=tuple(_row(title, parallel) for title, parallel in found),
        values={"rows": Named(len(found)), "largest": Named(largest)},
    )


def _layout(preset: catalog.Preset) -> ParallelLayout | None:
    try:
        return parallel_layout(preset=preset.name, order="megatron")
    except InputError:
        return None


def _row(title: str, parallel: ParallelLayout) -> tuple[str | int, ...]:
    spans = (communicator(parallel, name).nodes_touched_max for name in ("tp", "dp"))
    sizes = (getattr(parallel, name) for name in SIZES)
    return (title, parallel.nodes, parallel.gpus_per_node, *sizes, *spans)
