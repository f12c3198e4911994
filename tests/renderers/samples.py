"""A small chart of every kind, and the same charts with hostile texts."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from figgen.charts import (
    Axis,
    Bars,
    Box,
    Chart,
    Column,
    CommunicatorView,
    Curves,
    Diagram,
    DiagramLink,
    Frame,
    Mark,
    Named,
    RankCell,
    RankGrid,
    Rule,
    Segment,
    Series,
    Slot,
    Steps,
    Table,
    Timeline,
    Transfer,
)

HOSTILE = "</svg><script>alert('a & \"b\"')</script>\x00\x0b\t\ud800\ufffe ]]> \\ $x$ {{ y }}"

GRID = RankGrid(
    axes=("tp", "dp"),
    cells=tuple(
        RankCell(rank=rank, node=rank // 4, local_rank=rank % 4, coordinates=(rank % 2, rank // 2))
        for rank in range(8)
    ),
    communicators=(
        CommunicatorView(
            name="tp",
            label="TP",
            size=2,
            group_count=8,
            group_of_cell=tuple(rank // 2 for rank in range(8)),
            note="neighbours",
        ),
        CommunicatorView(
            name="dp",
            label="DP",
            size=8,
            group_count=2,
            group_of_cell=tuple(rank % 2 for rank in range(8)),
        ),
    ),
    gpus_per_node=4,
    world_size=16,
    multiplicity=2,
    values={"gpus": Named(16)},
)

TIMELINE = Timeline(
    lanes=("rank 0", "rank 1"),
    slots=(
        Slot(lane=0, start=0, end=1, role="forward", label="0"),
        Slot(lane=0, start=3, end=5, role="backward", label="0"),
        Slot(lane=1, start=1, end=2, role="forward", label="0", detail="the last stage"),
        Slot(lane=1, start=2, end=3, role="backward-input", label="0", chunk=1),
        Slot(lane=1, start=2, end=3, role="backward-weight", label="1"),
    ),
    end=6,
    time_label="time, in forward passes",
)

STEPS = Steps(
    ranks=2,
    chunk_count=2,
    frames=(
        Frame(
            title="step 1",
            phase="reduce-scatter",
            transfers=(
                Transfer(source=0, target=1, chunks=(0,), reduces=True),
                Transfer(source=1, target=0, chunks=(1,), reduces=True),
            ),
            contents=(((0,), (0,)), ((1,), (1,))),
        ),
        Frame(
            title="step 2",
            phase="all-gather",
            transfers=(
                Transfer(source=1, target=0, chunks=(0,), reduces=False),
                Transfer(source=0, target=1, chunks=(1,), reduces=False),
            ),
            contents=(((0,), (0, 1)), ((0, 1), (1,))),
        ),
        Frame(
            title="result",
            phase="all-gather",
            transfers=(),
            contents=(((0, 1), (0, 1)), ((0, 1), (0, 1))),
        ),
    ),
)

CURVES = Curves(
    x=Axis(label="message size", unit="B", scale="log10"),
    y=Axis(label="time", unit="s", scale="log10", spec="time"),
    series=(
        Series(name="ring", x=(1e3, 1e6, 1e9), y=(5e-5, 7e-5, 4e-3), role="series-1"),
        Series(name="tree", x=(1e3, 1e6, 1e9), y=(2e-5, 9e-5, 9e-3), role="tp", style="dashed"),
        Series(name="measured", x=(1e4, 1e7), y=(6e-5, math.nan), role="series-3", style="points"),
        Series(name="stairs", x=(1e3, 1e5, 1e9), y=(1e-5, 3e-5, 1e-3), role="dp", style="steps"),
    ),
    marks=(Mark(x=1e6, y=7e-5, label="crossover", role="ink"),),
    rules=(Rule(axis="x", at=2e6, label="eager limit"), Rule(axis="y", at=1e-3, label="1 ms")),
)

STACKED = Bars(
    labels=("TP 1", "TP 2"),
    segments=(
        Segment(name="weights", role="series-1", lengths=(40e9, 20e9)),
        Segment(name="activations", role="series-2", lengths=(10.5e9, 10.5e9)),
    ),
    axis=Axis(label="memory per GPU", unit="B"),
    rules=(Rule(axis="x", at=48e9, label="48 GB"),),
)

GROUPED = dataclasses.replace(STACKED, stacked=False, rules=())

DIAGRAM = Diagram(
    boxes=(
        Box(name="node", lines=("one node",), x=0, y=0, width=6, height=3, frame=True),
        Box(name="a", lines=("rank 0", "stage 0"), x=0.5, y=1, width=2, height=1, role="pp"),
        Box(name="b", lines=("rank 1",), x=3.5, y=1, width=2, height=1),
    ),
    links=(DiagramLink(source="a", target="b", label="send", role="exposed", both_ways=True),),
    width=6,
    height=3,
)

TABLE = Table(
    columns=(
        Column(label="GPU"),
        Column(label="memory", unit="B", spec="bytes"),
        Column(label="share", spec=".1%"),
        Column(label="ranks"),
        Column(label="time", unit="s"),
    ),
    rows=(
        ("A100", 80e9, 0.5, 16384, 1.5e-3),
        ("H100", 94e9, 1 / 3, 8, 2.25e-5),
        ("none", 0, 0.0, 0, math.nan),
    ),
)

SAMPLES: dict[str, Chart] = {
    "grid": GRID,
    "timeline": TIMELINE,
    "steps": STEPS,
    "curves": CURVES,
    "stacked": STACKED,
    "grouped": GROUPED,
    "diagram": DIAGRAM,
    "table": TABLE,
}

# Strings that are names of ours and never shown as a reader's text.
NAMES = {"role", "style", "scale", "spec", "unit", "time_unit", "axis", "values"}


def hostile(chart: Any, name: str = "") -> Any:
    """Return the chart with `HOSTILE` in front of every text in it."""
    if dataclasses.is_dataclass(chart) and not isinstance(chart, type):
        communicator = type(chart).__name__ == "CommunicatorView"
        changed = {
            field.name: hostile(getattr(chart, field.name), field.name)
            for field in dataclasses.fields(chart)
            if field.name not in NAMES and not (communicator and field.name == "name")
        }
        return dataclasses.replace(chart, **changed)
    if isinstance(chart, tuple):
        return tuple(hostile(part, name) for part in chart)
    return HOSTILE + chart if isinstance(chart, str) else chart
