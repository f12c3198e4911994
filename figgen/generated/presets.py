"""One page for each preset of a rank map or a published run, and the index of them all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape
from typing import TypeAlias

from figgen import catalog
from figgen.catalog import HardwarePreset, MapPreset, Preset, TrainingPreset
from figgen.generated.data_tables import Cell, Row, Sources, anchor, of_number, table
from figgen.generated.fences import figure
from figgen.generated.layout_sections import Laid, layout_sections
from figgen.generated.preset_training import training_sections
from figgen.models.machine.layout import layout
from figgen.plotting.blocks import shown_communicators
from figgen.scenarios.tools.data import layouts
from figgen.units import format_quantity

FOLDER = "reference/presets/"
RANK_MAP = "tools/rank-map.md"


Keep: TypeAlias = Callable[[str, str, Callable[[], str]], str]
"""Returns a cached result: (request, module of the code, make)."""


def preset_pages(tools: frozenset[str], keep: Keep = lambda _, __, make: make()) -> dict[str, str]:
    """Return each preset's page by path, and the index; `tools` are the tools that exist."""
    pages = {"reference/presets.md": keep("index of presets", __name__, _index)}
    offered = frozenset(found["name"] for found in layouts())
    for name, preset in catalog.PRESETS.items():
        if not isinstance(preset, HardwarePreset):
            live = tools if name in offered else tools - {RANK_MAP}
            request = f"page of preset {name} beside {sorted(live)}"
            make = partial(_page, name, live)
            pages[f"{FOLDER}{name}.md"] = keep(request, __name__, make)
    return pages


def _index() -> str:
    presets, sources = catalog.PRESETS.values(), Sources()
    steps = [p for p in presets if isinstance(p, TrainingPreset)]
    runs = table("Published runs", RUNS, [_run_row(p) for p in steps], sources)
    maps = [_map_row(p) for p in presets if isinstance(p, MapPreset)]
    nodes = [_node_row(p) for p in presets if isinstance(p, HardwarePreset)]
    return (
        "---\ndescription: Named configurations (rank maps, nodes, and the layouts of published "
        "runs), each with its own page.\n---\n\n# Presets\n\n"
        "A preset is a named configuration that you can use in every figure, tool and command.\n"
        "Each run and each map has a page with its rank map, its groups and their traffic.\n"
        "Click a heading to sort, and the # of a row for its address; a dash means that a value "
        f"was not published.\n\n## Published runs\n\n{runs}\n"
        "[](#fig-published-and-computed) compares each computed step with the published one."
        f"\n\n{_compared(steps)}\n"
        f"## Rank maps\n\n{table('Rank maps', MAPS, maps, sources)}\n"
        "## Nodes\n\nBandwidths are per GPU per direction.\n\n"
        f"{table('Nodes', NODES, nodes, sources)}\n"
        f"## Sources {{ data-search-exclude }}\n\n{sources.html()}"
    )


RUNS = ("run", "preset", "model", "accelerator", "GPUs", "TP", "CP", "PP", "DP", "EP")
MAPS = ("map", "preset", "nodes", "GPUs", "TP", "CP", "PP", "DP", "EP", "ETP", "EDP")
NODES = ("node", "preset", "GPUs", "inside the node", "between nodes")


def _run_row(preset: TrainingPreset) -> Row:
    run = preset.run
    sizes = (run.gpus, run.tp, run.cp, run.pp, run.dp, run.ep)
    named = (
        Cell(text=preset.title, link=f"{preset.name}/"),
        Cell(text=preset.name),
        Cell(text=run.model.title, link=f"../models/#{anchor(run.model.name)}"),
        Cell(text=run.accelerator.title, link=f"../hardware/#{anchor(run.accelerator.name)}"),
    )
    return Row(preset.name, (*named, *map(of_number, sizes)), run.source)


def _map_row(preset: MapPreset) -> Row:
    sizes = (preset.nodes, preset.world, preset.tp, preset.cp, preset.pp, preset.dp, preset.ep)
    named = (Cell(text=preset.title, link=f"{preset.name}/"), Cell(text=preset.name))
    cells = (*named, *map(of_number, (*sizes, preset.etp, preset.edp)))
    return Row(preset.name, cells, preset.source)


def _node_row(preset: HardwarePreset) -> Row:
    rates = (preset.scale_up_bandwidth_bytes_per_s, preset.network_bandwidth_bytes_per_s)
    shown = (Cell(text=format_quantity(rate, "B/s", "si"), key=rate) for rate in rates)
    named = (Cell(text=preset.title), Cell(text=preset.name), of_number(preset.gpus_per_node))
    return Row(preset.name, (*named, *shown), preset.source)


def _compared(steps: list[TrainingPreset]) -> str:
    names = ", ".join(preset.name for preset in steps)
    return figure(
        "published-and-computed",
        f"runs: [{names}]",
        caption="With one set of constants for all, computed steps are off by "
        "{{ least_difference:+.0%}} to {{ most_difference:+.0%}}; each preset's page says what "
        "was assumed. {{ overfull }} rows, marked †, do not fit their GPUs by our count. "
        "Utilization counts attention whole, except for {{ halved }}, which leaves out its masked "
        "half.",
        alt="A table of {{ runs }} published runs with their GPUs, the computed and the published "
        "time of a step, the difference, and both utilisations.",
    )


def _page(name: str, tools: frozenset[str]) -> str:
    preset = catalog.preset(name)
    if isinstance(preset, TrainingPreset):
        return (
            _head(
                preset,
                "How is this run laid out, what does a step send, and where do time and memory go?",
                f"{preset.title}, rank map, groups, schedule, memory, communication and time of "
                "a step, computed and as published.",
                tools,
            )
            + "\n"
            + training_sections(preset, tools)
        )
    assert isinstance(preset, MapPreset)
    return _map_page(preset, tools)


def _head(preset: Preset, question: str, about: str, tools: frozenset[str]) -> str:
    opened = [
        f"[Open it in the {name}](../../{path}?preset={preset.name})"
        for name, path in (("rank map", RANK_MAP), ("modeler", "tools/modeler.md"))
        if path in tools
    ]
    links = " · ".join([*opened, "[All presets](../presets.md)"])
    title = escape(preset.title, quote=False)
    return (
        f"---\ndescription: {about}\n---\n\n# {title}\n\n**{question}**\n\n"
        f"Preset `{preset.name}`: {links}\n"
    )


def _map_page(preset: MapPreset, tools: frozenset[str]) -> str:
    parallel = layout(
        nodes=preset.nodes,
        gpus_per_node=preset.gpus_per_node,
        tp=preset.tp,
        cp=preset.cp,
        pp=preset.pp,
        ep=preset.ep,
        etp=preset.etp,
    )
    laid = Laid(parallel, f"preset: {preset.name}", shown_communicators(parallel))
    parts = [
        _head(
            preset,
            "Which GPU holds which part, and which groups leave their node?",
            f"Rank map of {preset.title}, groups of every communicator and what crosses nodes.",
            tools,
        ),
        layout_sections(laid),
    ]
    if preset.note:
        parts.append(f"Note: {escape(preset.note)}\n")
    return "\n".join(parts)
